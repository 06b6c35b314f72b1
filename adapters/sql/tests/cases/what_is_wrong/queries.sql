-- name: items
SELECT plu AS external_id, label AS name, price,
       CASE WHEN open_price THEN 'Its price is entered at the till.' END AS refused
FROM dish
-- name: variants
SELECT plu AS item_id, code AS external_id, label AS variant_name, price FROM size
-- name: availability
SELECT plu AS external_id, 0 AS available, until AS snooze_until FROM gone
-- name: tables
SELECT id AS external_id, label AS name, chairs AS seats FROM floor
