-- name: items
SELECT id AS external_id, label AS name, price, shown AS available, '12:30 only' AS description FROM dish
-- name: tables
SELECT id AS external_id, label AS name, storey AS zone FROM places WHERE storey = :floor
