-- uniCenta oPOS 4 and 5, on PostgreSQL and MySQL or MariaDB (its own scripts PostgreSQL-create.sql and MySQL-create.sql).
--
-- An order becomes a closed receipt of the open cash session, as the till itself saves one: RECEIPTS, TICKETS, TICKETLINES,
-- TAXLINES, PAYMENTS, and the stock. It cannot become an open ticket: SHAREDTICKETS.CONTENT is a serialized Java object.
--
-- :host is the terminal (CLOSEDCASH.HOST) whose session takes the orders. It has no default.
-- parameter: person = 0
-- parameter: location = 0
-- parameter: payment = online
-- parameter: extra_tax = 000
-- parameter: stock_location =

-- name: fingerprint [postgresql]
SELECT (SELECT md5(string_agg(concat_ws('|', p.id, p.name, p.pricesell, p.category, p.taxcat, p.iscom, p.isvprice, k.catorder),
                              '/' ORDER BY p.id))
        FROM products p LEFT JOIN products_cat k ON k.product = p.id) AS products,
       (SELECT md5(string_agg(concat_ws('|', id, name, catorder), '/' ORDER BY id)) FROM categories) AS headings,
       (SELECT md5(string_agg(concat_ws('|', id, name, category, custcategory, rate), '/' ORDER BY id)) FROM taxes) AS taxes,
       (SELECT md5(string_agg(concat_ws('|', product, product2), '/' ORDER BY id)) FROM products_com) AS auxiliaries

-- name: fingerprint [mysql]
SELECT (SELECT concat_ws('|', count(*), sum(crc32(concat_ws('|', p.id, p.name, p.pricesell, p.category, p.taxcat, p.iscom + 0,
                              p.isvprice + 0, k.catorder))))
        FROM products p LEFT JOIN products_cat k ON k.product = p.id) AS products,
       (SELECT concat_ws('|', count(*), sum(crc32(concat_ws('|', id, name, catorder)))) FROM categories) AS headings,
       (SELECT concat_ws('|', count(*), sum(crc32(concat_ws('|', id, name, category, custcategory, rate)))) FROM taxes) AS taxes,
       (SELECT concat_ws('|', count(*), sum(crc32(concat_ws('|', product, product2)))) FROM products_com) AS auxiliaries

-- Prices are kept without tax. The tax of a product is the first of its category that is not for certain customers.
-- Two products belong to the program: a line that a cashier types freely, and the service charge.
-- name: items
SELECT p.id AS external_id, p.name,
       p.pricesell * (1 + :tax_included * COALESCE((SELECT t.rate FROM taxes t WHERE t.category = p.taxcat
           AND t.custcategory IS NULL ORDER BY COALESCE(t.rateorder, 0), t.id LIMIT 1), 0)) AS price,
       p.category AS category_id, p.taxcat AS tax_id,
       CASE WHEN p.isvprice THEN 'Its price is entered at the till.' END AS refused,
       p.id IN ('xxx999_999xxx_x9x9x9', 'xxx998_998xxx_x8x8x8') AS no_dish
FROM products p JOIN products_cat k ON k.product = p.id
WHERE NOT p.iscom
ORDER BY COALESCE(k.catorder, 0), p.name, p.id

-- name: categories
SELECT id AS external_id, name FROM categories ORDER BY catorder, name

-- name: taxes
SELECT t.category AS external_id, t.name, t.rate * 100 AS rate
FROM taxes t
WHERE t.id = (SELECT o.id FROM taxes o WHERE o.category = t.category AND o.custcategory IS NULL
              ORDER BY COALESCE(o.rateorder, 0), o.id LIMIT 1)

-- Auxiliary products are the modifiers: of a product, those of one category are a group.
-- name: addon_groups
SELECT DISTINCT CONCAT(x.product, '/', a.category) AS external_id, c.name, 0 AS min_select, 0 AS max_select
FROM products_com x JOIN products a ON a.id = x.product2 JOIN categories c ON c.id = a.category

-- name: addons
SELECT a.id AS external_id, a.name,
       a.pricesell * (1 + :tax_included * COALESCE((SELECT t.rate FROM taxes t WHERE t.category = a.taxcat
           AND t.custcategory IS NULL ORDER BY COALESCE(t.rateorder, 0), t.id LIMIT 1), 0)) AS price,
       CONCAT(x.product, '/', a.category) AS group_id
FROM products_com x JOIN products a ON a.id = x.product2
ORDER BY a.name, a.id

-- name: item_addon_groups
SELECT DISTINCT x.product AS item_id, CONCAT(x.product, '/', a.category) AS group_id
FROM products_com x JOIN products a ON a.id = x.product2
ORDER BY x.product, group_id

-- Sold out by stock, where :stock_location names the warehouse that is counted ('0' is the first one); else nothing is.
-- A product counts once it was received there: of others the till counts sales too, into the negative.
-- name: availability
SELECT s.product AS external_id, 0 AS available
FROM stockcurrent s JOIN products p ON p.id = s.product
WHERE s.location = :stock_location AND NOT p.isservice
  AND EXISTS (SELECT 1 FROM stockdiary d WHERE d.product = s.product AND d.location = s.location AND d.reason IN (1, 4))
GROUP BY s.product
HAVING SUM(s.units) <= 0

-- name: tables
SELECT p.id AS external_id, p.name, f.name AS zone
FROM places p JOIN floors f ON f.id = p.floor
ORDER BY f.name, p.name, p.id

-- name: find_order
SELECT ticketid AS reference FROM tickets WHERE id = :key

-- name: check_session
SELECT money FROM closedcash WHERE host = :host AND dateend IS NULL ORDER BY hostsequence DESC LIMIT 1

-- name: check_item
SELECT p.id AS product, t.id AS tax, t.rate
FROM products p JOIN taxes t ON t.category = p.taxcat AND t.custcategory IS NULL
WHERE p.id = :product_id
ORDER BY COALESCE(t.rateorder, 0), t.id LIMIT 1

-- name: check_option
SELECT p.id AS extra_product, t.id AS extra_product_tax, t.rate AS extra_rate
FROM products p JOIN taxes t ON t.category = p.taxcat AND t.custcategory IS NULL
WHERE p.id = :option_id
ORDER BY COALESCE(t.rateorder, 0), t.id LIMIT 1

-- name: order [postgresql]
SELECT nextval('ticketsnum') AS ticket_number
-- name: order [mysql]
UPDATE ticketsnum SET id = LAST_INSERT_ID(id + 1)
-- name: order [mysql]
SELECT LAST_INSERT_ID() AS ticket_number
-- name: order
INSERT INTO receipts (id, money, datenew, person) VALUES (:key, :money, :now, :person)
-- name: order
INSERT INTO tickets (id, tickettype, ticketid, person, status) VALUES (:key, 0, :ticket_number, :person, 0)

-- name: line
INSERT INTO ticketlines (ticket, line, product, units, price, taxid, attributes)
VALUES (:key, :row, :product, :line_quantity, :line_price / (1 + :order_tax_included * :rate), :tax, :line_xml)
-- name: line
INSERT INTO taxlines (id, receipt, taxid, base, amount)
VALUES (:row_key, :key, :tax, :line_quantity * :line_price / (1 + :order_tax_included * :rate),
        :line_quantity * :line_price / (1 + :order_tax_included * :rate) * :rate)
-- name: line
INSERT INTO stockdiary (id, datenew, reason, location, product, units, price, appuser)
SELECT :row_key, :now, -1, :location, p.id, -1 * :line_quantity, p.pricesell, 'tillbridge'
FROM products p WHERE p.id = :product AND NOT p.isservice
-- name: line
INSERT INTO stockcurrent (location, product, units)
SELECT w.id, p.id, 0 FROM products p JOIN locations w ON w.id = :location
WHERE p.id = :product AND NOT p.isservice AND NOT EXISTS (
    SELECT 1 FROM stockcurrent s WHERE s.location = w.id AND s.product = p.id AND s.attributesetinstance_id IS NULL)
-- name: line
UPDATE stockcurrent SET units = units - :line_quantity
WHERE location = :location AND product = :product AND attributesetinstance_id IS NULL
  AND EXISTS (SELECT 1 FROM products p WHERE p.id = :product AND NOT p.isservice)

-- name: option
INSERT INTO ticketlines (ticket, line, product, units, price, taxid, attributes)
VALUES (:key, :row, :extra_product, :line_quantity * :option_quantity, :option_price / (1 + :order_tax_included * :extra_rate),
        :extra_product_tax, :option_xml)
-- name: option
INSERT INTO taxlines (id, receipt, taxid, base, amount)
VALUES (:row_key, :key, :extra_product_tax,
        :line_quantity * :option_quantity * :option_price / (1 + :order_tax_included * :extra_rate),
        :line_quantity * :option_quantity * :option_price / (1 + :order_tax_included * :extra_rate) * :extra_rate)

-- name: payment
INSERT INTO payments (id, receipt, payment, total, tendered, transid)
VALUES (:key, :key, :payment, :order_total, :order_total, :order_number)

-- Delivery, tip and discount are a line without a product, so that the receipt adds up to what was paid.
-- name: order_end
INSERT INTO ticketlines (ticket, line, units, price, taxid, attributes)
SELECT t.id, :extra_row, 1, :order_extra, :extra_tax, :extra_xml FROM tickets t WHERE t.id = :key AND :order_extra <> 0

-- A receipt that stands is never removed. Cancelling writes a refund of it, as the till does.
-- name: find_cancelled
SELECT ticketid AS refund FROM tickets WHERE id = :cancel_key

-- name: cancel [postgresql]
SELECT nextval('ticketsnum_refund') AS refund_number
-- name: cancel [mysql]
UPDATE ticketsnum_refund SET id = LAST_INSERT_ID(id + 1)
-- name: cancel [mysql]
SELECT LAST_INSERT_ID() AS refund_number
-- name: cancel
INSERT INTO receipts (id, money, datenew, person) VALUES (:cancel_key, :money, :now, :person)
-- name: cancel
INSERT INTO tickets (id, tickettype, ticketid, person, status) VALUES (:cancel_key, 1, :refund_number, :person, 0)
-- name: cancel
INSERT INTO ticketlines (ticket, line, product, units, price, taxid, attributes)
SELECT :cancel_key, line, product, -1 * units, price, taxid, attributes FROM ticketlines WHERE ticket = :key
-- name: cancel
INSERT INTO taxlines (id, receipt, taxid, base, amount)
SELECT CONCAT(id, '/cancelled'), :cancel_key, taxid, -1 * base, -1 * amount FROM taxlines WHERE receipt = :key
-- name: cancel
INSERT INTO payments (id, receipt, payment, total, tendered, transid)
SELECT CONCAT(id, '/cancelled'), :cancel_key, payment, -1 * total, -1 * tendered, transid FROM payments WHERE receipt = :key
-- name: cancel
UPDATE stockcurrent SET units = units + (
    SELECT -1 * SUM(d.units) FROM stockdiary d JOIN ticketlines l ON d.id = CONCAT(l.ticket, '/', l.line)
    WHERE l.ticket = :key AND d.product = stockcurrent.product)
WHERE location = :location AND attributesetinstance_id IS NULL AND product IN (
    SELECT d.product FROM stockdiary d JOIN ticketlines l ON d.id = CONCAT(l.ticket, '/', l.line) WHERE l.ticket = :key)
-- name: cancel
INSERT INTO stockdiary (id, datenew, reason, location, product, units, price, appuser)
SELECT CONCAT(d.id, '/cancelled'), :now, 2, d.location, d.product, -1 * d.units, d.price, 'tillbridge'
FROM stockdiary d JOIN ticketlines l ON d.id = CONCAT(l.ticket, '/', l.line) WHERE l.ticket = :key
