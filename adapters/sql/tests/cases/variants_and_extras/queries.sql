-- name: items
SELECT plu AS external_id, label AS name, price, vat AS tax_id, NOT off AS available FROM dish ORDER BY place
-- name: variants
SELECT plu AS item_id, code AS external_id, label AS variant_name, price FROM size ORDER BY price
-- name: categories
SELECT id AS external_id, label AS name FROM heading ORDER BY id
-- name: item_categories
SELECT plu AS item_id, heading AS category_id FROM under ORDER BY heading
-- name: addons
SELECT id AS external_id, label AS name, price, choice AS group_id FROM extra ORDER BY id
-- name: addon_groups
SELECT id AS external_id, label AS name, least AS min_select, most AS max_select FROM choice
-- name: item_addon_groups
SELECT plu AS item_id, choice AS group_id FROM asks ORDER BY rowid
-- name: taxes
SELECT code AS external_id, label AS name, part AS component, rate FROM vat
