-- name: items
SELECT plu, label AS name, price FROM dish
-- name: tables
SELECT id AS external_id, label AS name FROM no_such_table
