-- Queries for a small till that could be anybody's: an example for your own.
-- What each may give and use stands in README.md.

-- name: fingerprint [postgresql]
SELECT count(*), md5(string_agg(id || '|' || name || '|' || price || '|' || place, '/' ORDER BY id)),
       (SELECT md5(string_agg(id || '|' || name || '|' || price, '/' ORDER BY id)) FROM sizes) AS sizes,
       (SELECT md5(string_agg(id || '|' || name || '|' || price, '/' ORDER BY id)) FROM extras) AS extras
FROM items

-- name: fingerprint [mysql]
SELECT count(*), sum(crc32(concat_ws('|', id, name, price, place))),
       bit_xor(crc32(concat_ws('|', id, name, price, place))),
       (SELECT bit_xor(crc32(concat_ws('|', id, name, price))) FROM sizes) AS sizes,
       (SELECT bit_xor(crc32(concat_ws('|', id, name, price))) FROM extras) AS extras
FROM items

-- name: items
SELECT id AS external_id, name, price FROM items ORDER BY place

-- name: variants
SELECT item AS item_id, id AS external_id, name AS variant_name, price FROM sizes ORDER BY place

-- name: addon_groups
SELECT id AS external_id, name, 0 AS min_select, most AS max_select FROM extra_groups ORDER BY id

-- name: addons
SELECT id AS external_id, name, price, group_id FROM extras ORDER BY place

-- name: item_addon_groups
SELECT id AS item_id, extras AS group_id FROM items WHERE extras IS NOT NULL

-- name: availability
SELECT id AS external_id, 0 AS available, sold_out_until AS snooze_until
FROM items WHERE sold_out = 1

-- name: tables
SELECT id AS external_id, name, seats, zone FROM places ORDER BY id

-- name: find_order
SELECT number AS reference FROM orders WHERE order_key = :key

-- name: check_session
SELECT id AS session FROM sessions WHERE closed_at IS NULL ORDER BY id DESC LIMIT 1

-- name: check_item
SELECT id AS item FROM items WHERE id = :item_id

-- name: order
INSERT INTO orders (order_key, session, kind, note, total, tax, placed_at)
VALUES (:key, :session, :order_type, :order_note, :order_total, :order_tax, :order_placed_at)

-- name: order
SELECT number FROM orders WHERE order_key = :key

-- name: line
INSERT INTO order_lines (number, line_row, line, item, size, name, quantity, price)
VALUES (:number, :row, :line, :item, :variant_id, :line_name, :line_quantity, :line_price)

-- name: option
INSERT INTO order_lines (number, line_row, line, extra, name, quantity, price)
VALUES (:number, :row, :line, :option_id, :option_name, :option_quantity, :option_price)

-- name: payment
INSERT INTO payments (number, total) VALUES (:number, :order_total)

-- name: find_cancelled
SELECT number FROM orders WHERE order_key = :key AND cancelled = 1

-- name: cancel
UPDATE orders SET cancelled = 1, note = :cancel_reason WHERE order_key = :key

-- name: news
SELECT id AS news_key, order_key AS order_id, status, reason, external_ids
FROM order_news WHERE handled = 0 ORDER BY id

-- name: news_handled
UPDATE order_news SET handled = 1 WHERE id = CAST(:news_key AS DECIMAL(20))
