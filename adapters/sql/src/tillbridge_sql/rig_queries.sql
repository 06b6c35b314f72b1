-- Queries for a small till that could be anybody's: an example for your own.
-- What each may give and use stands in README.md.

-- name: fingerprint [postgresql]
SELECT count(*), md5(string_agg(id || '|' || name || '|' || price || '|' || place, '/' ORDER BY id))
FROM items

-- name: fingerprint [mysql]
SELECT count(*), sum(crc32(concat_ws('|', id, name, price, place))),
       bit_xor(crc32(concat_ws('|', id, name, price, place)))
FROM items

-- name: items
SELECT id AS external_id, name, price FROM items ORDER BY place

-- name: availability
SELECT id AS external_id, 0 AS available FROM items WHERE sold_out = 1

-- name: tables
SELECT id AS external_id, name, seats, zone FROM places ORDER BY id

-- name: find_order
SELECT number AS reference FROM orders WHERE order_key = :key

-- name: check_session
SELECT id AS session FROM sessions WHERE closed_at IS NULL ORDER BY id DESC LIMIT 1

-- name: check_item
SELECT id AS item FROM items WHERE id = :product_id

-- name: order
INSERT INTO orders (order_key, session, note, total, placed_at)
VALUES (:key, :session, :order_note, :order_total, :order_placed_at)

-- name: order
SELECT number FROM orders WHERE order_key = :key

-- name: line
INSERT INTO order_lines (number, line_row, item, name, quantity, price)
VALUES (:number, :row, :item, :line_name, :line_quantity, :line_price)

-- name: option
INSERT INTO order_lines (number, line_row, item, name, quantity, price)
VALUES (:number, :row, NULL, :option_name, :option_quantity, :option_price)

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
