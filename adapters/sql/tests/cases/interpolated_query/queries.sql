-- name: items
SELECT plu AS external_id, label AS name, price
FROM dish
WHERE shop = '{location_id}'
