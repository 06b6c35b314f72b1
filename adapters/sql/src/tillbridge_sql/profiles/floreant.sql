-- Floreant POS 1.4 and later, on PostgreSQL and MySQL or MariaDB (the tables as its Hibernate mappings name them).
--
-- An order becomes an open ticket that is paid: it stands among the open tickets, and whoever opens it sends it to the kitchen
-- and settles it. Floreant prints for a kitchen only from a terminal.
--
-- :terminal is the number of the terminal (TERMINAL.ID) whose drawer takes the orders. It has no default.
-- parameter: ticket_type = TAKE OUT
-- parameter: payment = Online

-- name: fingerprint [postgresql]
SELECT (SELECT md5(string_agg(concat_ws('|', ID, NAME, DESCRIPTION, PRICE, VISIBLE, SORT_ORDER, GROUP_ID, TAX_GROUP_ID, PIZZA_TYPE),
                              '/' ORDER BY ID)) FROM MENU_ITEM) AS items,
       (SELECT md5(string_agg(concat_ws('|', g.ID, g.NAME, g.VISIBLE, g.SORT_ORDER, c.VISIBLE, c.SORT_ORDER), '/' ORDER BY g.ID))
        FROM MENU_GROUP g JOIN MENU_CATEGORY c ON c.ID = g.CATEGORY_ID) AS headings,
       (SELECT md5(string_agg(concat_ws('|', ID, NAME, PRICE, GROUP_ID, SORT_ORDER), '/' ORDER BY ID)) FROM MENU_MODIFIER)
           AS modifiers,
       (SELECT md5(string_agg(concat_ws('|', l.ID, l.MIN_QUANTITY, l.MAX_QUANTITY, l.MODIFIER_GROUP, l.MENUITEM_MODIFIERGROUP_ID,
                                        l.SORT_ORDER, g.NAME), '/' ORDER BY l.ID))
        FROM MENUITEM_MODIFIERGROUP l JOIN MENU_MODIFIER_GROUP g ON g.ID = l.MODIFIER_GROUP) AS choices,
       (SELECT md5(string_agg(concat_ws('|', x.GROUP_ID, t.NAME, t.RATE), '/' ORDER BY x.GROUP_ID, t.ID))
        FROM GROUP_TAXES x JOIN TAX t ON t.ID = x.ELT) AS taxes

-- name: fingerprint [mysql]
SELECT (SELECT concat_ws('|', count(*), sum(crc32(concat_ws('|', ID, NAME, DESCRIPTION, PRICE, VISIBLE + 0, SORT_ORDER, GROUP_ID,
                              TAX_GROUP_ID, PIZZA_TYPE + 0)))) FROM MENU_ITEM) AS items,
       (SELECT concat_ws('|', count(*), sum(crc32(concat_ws('|', g.ID, g.NAME, g.VISIBLE + 0, g.SORT_ORDER, c.VISIBLE + 0,
                              c.SORT_ORDER)))) FROM MENU_GROUP g JOIN MENU_CATEGORY c ON c.ID = g.CATEGORY_ID) AS headings,
       (SELECT concat_ws('|', count(*), sum(crc32(concat_ws('|', ID, NAME, PRICE, GROUP_ID, SORT_ORDER))))
        FROM MENU_MODIFIER) AS modifiers,
       (SELECT concat_ws('|', count(*), sum(crc32(concat_ws('|', l.ID, l.MIN_QUANTITY, l.MAX_QUANTITY, l.MODIFIER_GROUP,
                              l.MENUITEM_MODIFIERGROUP_ID, l.SORT_ORDER, g.NAME))))
        FROM MENUITEM_MODIFIERGROUP l JOIN MENU_MODIFIER_GROUP g ON g.ID = l.MODIFIER_GROUP) AS choices,
       (SELECT concat_ws('|', count(*), sum(crc32(concat_ws('|', x.GROUP_ID, t.NAME, t.RATE))))
        FROM GROUP_TAXES x JOIN TAX t ON t.ID = x.ELT) AS taxes

-- name: items
SELECT i.ID AS external_id, i.NAME AS name, i.PRICE AS price, i.DESCRIPTION AS description,
       CONCAT('g', i.GROUP_ID) AS category_id, i.TAX_GROUP_ID AS tax_id,
       CASE WHEN i.PIZZA_TYPE THEN 'It is a pizza, whose prices depend on size and crust.' END AS refused
FROM MENU_ITEM i JOIN MENU_GROUP g ON g.ID = i.GROUP_ID JOIN MENU_CATEGORY c ON c.ID = g.CATEGORY_ID
WHERE (i.VISIBLE IS NULL OR i.VISIBLE) AND (g.VISIBLE IS NULL OR g.VISIBLE) AND (c.VISIBLE IS NULL OR c.VISIBLE)
ORDER BY COALESCE(c.SORT_ORDER, 0), COALESCE(g.SORT_ORDER, 0), COALESCE(i.SORT_ORDER, 0), i.ID

-- name: categories
SELECT CONCAT('g', g.ID) AS external_id, g.NAME AS name
FROM MENU_GROUP g JOIN MENU_CATEGORY c ON c.ID = g.CATEGORY_ID
ORDER BY COALESCE(c.SORT_ORDER, 0), COALESCE(g.SORT_ORDER, 0), g.ID

-- name: taxes
SELECT x.GROUP_ID AS external_id, g.NAME AS name, t.NAME AS component, t.RATE AS rate
FROM GROUP_TAXES x JOIN TAX_GROUP g ON g.ID = x.GROUP_ID JOIN TAX t ON t.ID = x.ELT
ORDER BY t.ID

-- A group of modifiers as one item asks for it: how many are taken stands with the item.
-- ENABLED and ENABLE are 0 in most databases, and the till offers these modifiers all the same: it never asks.
-- name: addon_groups
SELECT CONCAT('c', l.ID) AS external_id, g.NAME AS name, l.MIN_QUANTITY AS min_select, l.MAX_QUANTITY AS max_select
FROM MENUITEM_MODIFIERGROUP l JOIN MENU_MODIFIER_GROUP g ON g.ID = l.MODIFIER_GROUP

-- name: addons
SELECT CONCAT('m', m.ID) AS external_id, m.NAME AS name, COALESCE(m.PRICE, 0) AS price, CONCAT('c', l.ID) AS group_id
FROM MENU_MODIFIER m JOIN MENUITEM_MODIFIERGROUP l ON l.MODIFIER_GROUP = m.GROUP_ID
ORDER BY COALESCE(m.SORT_ORDER, 0), m.ID

-- name: item_addon_groups
SELECT MENUITEM_MODIFIERGROUP_ID AS item_id, CONCAT('c', ID) AS group_id
FROM MENUITEM_MODIFIERGROUP WHERE MENUITEM_MODIFIERGROUP_ID IS NOT NULL
ORDER BY MENUITEM_MODIFIERGROUP_ID, COALESCE(SORT_ORDER, 0), ID

-- name: availability
SELECT ID AS external_id, 0 AS available FROM MENU_ITEM
WHERE DISABLE_WHEN_STOCK_AMOUNT_IS_ZERO AND COALESCE(STOCK_AMOUNT, 0) <= 0

-- name: tables
SELECT t.ID AS external_id, COALESCE(NULLIF(t.NAME, ''), CONCAT('Table ', t.ID)) AS name, t.CAPACITY AS seats, f.NAME AS zone
FROM SHOP_TABLE t LEFT JOIN SHOP_FLOOR f ON f.ID = t.FLOOR_ID
ORDER BY t.ID

-- GLOBAL_ID is unique and has sixteen characters; the whole key is a property of the ticket.
-- name: find_order
SELECT ID AS reference, ID AS ticket FROM TICKET WHERE GLOBAL_ID = :key16

-- name: check_session
SELECT ID AS drawer, ASSIGNED_USER AS cashier FROM TERMINAL WHERE ID = :terminal AND ASSIGNED_USER IS NOT NULL

-- name: check_item
SELECT i.ID AS item, g.NAME AS group_name, c.NAME AS category_name, c.BEVERAGE AS beverage,
       COALESCE((SELECT SUM(t.RATE) FROM GROUP_TAXES x JOIN TAX t ON t.ID = x.ELT WHERE x.GROUP_ID = i.TAX_GROUP_ID), 0) AS rate
FROM MENU_ITEM i LEFT JOIN MENU_GROUP g ON g.ID = i.GROUP_ID LEFT JOIN MENU_CATEGORY c ON c.ID = g.CATEGORY_ID
WHERE CONCAT(i.ID) = :product_id

-- name: check_option
SELECT m.ID AS modifier, COALESCE(t.RATE, 0) AS modifier_rate
FROM MENU_MODIFIER m LEFT JOIN TAX t ON t.ID = m.TAX_ID
WHERE CONCAT('m', m.ID) = :option_id

-- name: order
INSERT INTO TICKET (VERSION_NO, GLOBAL_ID, CREATE_DATE, ACTIVE_DATE, CREATION_HOUR, PAID, VOIDED, WASTED, REFUNDED, SETTLED,
    DRAWER_RESETTED, SUB_TOTAL, TOTAL_DISCOUNT, TOTAL_TAX, TOTAL_PRICE, PAID_AMOUNT, DUE_AMOUNT, ADVANCE_AMOUNT,
    ADJUSTMENT_AMOUNT, NUMBER_OF_GUESTS, BAR_TAB, IS_TAX_EXEMPT, IS_RE_OPENED, SERVICE_CHARGE, DELIVERY_CHARGE,
    CUSTOMER_PICKEUP, DELIVERY_EXTRA_INFO, TICKET_TYPE, OWNER_ID, TERMINAL_ID)
VALUES (0, :key16, :now, :now, EXTRACT(HOUR FROM CAST(:now AS TIME)), :order_paid, FALSE, FALSE, FALSE, FALSE,
    FALSE, :order_subtotal, :order_discount, :order_tax, :order_total,
    CASE WHEN :order_paid THEN :order_total ELSE 0 END, CASE WHEN :order_paid THEN 0 ELSE :order_total END, 0,
    0, 1, FALSE, FALSE, FALSE, 0, :order_delivery_fee,
    TRUE, :order_note, :ticket_type, :cashier, :drawer)
-- name: order
SELECT ID AS ticket FROM TICKET WHERE GLOBAL_ID = :key16
-- name: order
INSERT INTO TICKET_PROPERTIES (id, property_name, property_value) VALUES (:ticket, 'tillbridge_order', :key)
-- name: order
INSERT INTO TICKET_PROPERTIES (id, property_name, property_value) VALUES (:ticket, 'tillbridge_number', :order_number)

-- name: line
INSERT INTO TICKET_ITEM (TICKET_ID, ITEM_ID, ITEM_COUNT, ITEM_QUANTITY, ITEM_NAME, GROUP_NAME, CATEGORY_NAME, ITEM_PRICE,
    ITEM_TAX_RATE, SUB_TOTAL, SUB_TOTAL_WITHOUT_MODIFIERS, DISCOUNT, TAX_AMOUNT, TAX_AMOUNT_WITHOUT_MODIFIERS, TOTAL_PRICE,
    TOTAL_PRICE_WITHOUT_MODIFIERS, BEVERAGE, INVENTORY_HANDLED, PRINT_TO_KITCHEN, TREAT_AS_SEAT, SEAT_NUMBER, FRACTIONAL_UNIT,
    HAS_MODIIERS, PRINTED_TO_KITCHEN, STOCK_AMOUNT_ADJUSTED, PIZZA_TYPE)
VALUES (:ticket, :item, :line_quantity, 0, :line_name, :group_name, :category_name, :line_price,
    :rate, :line_subtotal, :line_quantity * :line_price, 0, :line_tax, :line_tax, :line_subtotal,
    :line_quantity * :line_price, FALSE, FALSE, TRUE, FALSE, 0, FALSE,
    :line_options <> '', FALSE, FALSE, FALSE)
-- name: line
SELECT MAX(ID) AS ticket_item FROM TICKET_ITEM WHERE TICKET_ID = :ticket

-- name: option
INSERT INTO TICKET_ITEM_MODIFIER (TICKET_ITEM_ID, ITEM_ID, ITEM_COUNT, MODIFIER_NAME, MODIFIER_PRICE, MODIFIER_TAX_RATE,
    MODIFIER_TYPE, SUBTOTAL_PRICE, TOTAL_PRICE, TAX_AMOUNT, INFO_ONLY, PRINT_TO_KITCHEN, SECTION_WISE_PRICING,
    PRINTED_TO_KITCHEN)
VALUES (:ticket_item, :modifier, :line_quantity * :option_quantity, :option_name, :option_price, :modifier_rate,
    1, :line_quantity * :option_quantity * :option_price, :line_quantity * :option_quantity * :option_price, 0, FALSE, TRUE, FALSE,
    FALSE)
-- name: option
SELECT MAX(ID) AS ticket_item_modifier FROM TICKET_ITEM_MODIFIER WHERE TICKET_ITEM_ID = :ticket_item
-- name: option
INSERT INTO TICKET_ITEM_MODIFIER_RELATION (TICKET_ITEM_ID, MODIFIER_ID, LIST_ORDER)
VALUES (:ticket_item, :ticket_item_modifier, :option)

-- name: payment
INSERT INTO TRANSACTIONS (PAYMENT_TYPE, GLOBAL_ID, TRANSACTION_TIME, AMOUNT, TIPS_AMOUNT, TIPS_EXCEED_AMOUNT, TENDER_AMOUNT,
    TRANSACTION_TYPE, CUSTOM_PAYMENT_NAME, CUSTOM_PAYMENT_REF, PAYMENT_SUB_TYPE, CAPTURED, VOIDED, AUTHORIZABLE,
    DRAWER_RESETTED, TERMINAL_ID, TICKET_ID, USER_ID)
VALUES ('CUSTOM_PAYMENT', :key16, :now, :order_total, 0, 0, :order_total,
    'CREDIT', :payment, :order_number, 'CUSTOM PAYMENT', TRUE, FALSE, FALSE,
    FALSE, :drawer, :ticket, :cashier)

-- name: find_cancelled
SELECT ID AS voided FROM TICKET WHERE GLOBAL_ID = :key16 AND VOIDED

-- name: cancel
UPDATE TICKET SET VOIDED = TRUE, SETTLED = TRUE, VOID_REASON = :cancel_reason, CLOSING_DATE = :now, VERSION_NO = VERSION_NO + 1
WHERE GLOBAL_ID = :key16
-- name: cancel
UPDATE TRANSACTIONS SET VOIDED = TRUE WHERE TICKET_ID = :ticket

-- name: cancel
INSERT INTO TICKET_PROPERTIES (id, property_name, property_value) VALUES (:ticket, 'tillbridge_told', 'cancelled')

-- What the till has done with a ticket of ours and we have not told yet: settled is completed, voided by staff is refused.
-- name: news
SELECT CONCAT(t.ID, CASE WHEN t.VOIDED THEN '/rejected' ELSE '/completed' END) AS news_key, k.property_value AS order_id,
       CASE WHEN t.VOIDED THEN 'rejected' ELSE 'completed' END AS status,
       CASE WHEN t.VOIDED THEN 'other' END AS reason, t.VOID_REASON AS message
FROM TICKET t JOIN TICKET_PROPERTIES k ON k.id = t.ID AND k.property_name = 'tillbridge_order'
WHERE t.SETTLED AND NOT EXISTS (
    SELECT 1 FROM TICKET_PROPERTIES d WHERE d.id = t.ID AND d.property_name = 'tillbridge_told')
ORDER BY t.ID

-- name: news_handled
INSERT INTO TICKET_PROPERTIES (id, property_name, property_value)
SELECT t.ID, 'tillbridge_told', :news_status FROM TICKET t
WHERE t.GLOBAL_ID = :key16 AND NOT EXISTS (
    SELECT 1 FROM TICKET_PROPERTIES d WHERE d.id = t.ID AND d.property_name = 'tillbridge_told')
