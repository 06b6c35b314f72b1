CREATE TABLE dish (plu TEXT, label TEXT, price NUMERIC, vat TEXT, off INTEGER, place INTEGER);
INSERT INTO dish VALUES ('10', 'Iced tea', NULL, 'low', 0, 1), ('11', 'Burger', '9.50', 'full', 0, 2),
                        ('12', 'Soup', '4.20', 'low', 1, 3);
CREATE TABLE size (plu TEXT, code TEXT, label TEXT, price NUMERIC);
INSERT INTO size VALUES ('10', '10-S', 'Small', '3.20'), ('10', '10-L', 'Large', '4.10');
CREATE TABLE heading (id INTEGER, label TEXT);
INSERT INTO heading VALUES (1, 'Drinks'), (2, 'Mains'), (3, 'Lunch'), (4, 'Nobody names it');
CREATE TABLE under (plu TEXT, heading INTEGER);
INSERT INTO under VALUES ('10', 1), ('11', 2), ('11', 3), ('12', 3);
CREATE TABLE extra (id INTEGER, label TEXT, price NUMERIC, choice INTEGER);
INSERT INTO extra VALUES (7, 'Cheese', '1.00', 1), (8, 'Bacon', '1.50', 1), (9, 'Rare', '0', 2);
CREATE TABLE choice (id INTEGER, label TEXT, least INTEGER, most INTEGER);
INSERT INTO choice VALUES (1, 'Toppings', 0, 2), (2, 'Done', 1, 1), (3, 'Empty', 0, 0);
CREATE TABLE asks (plu TEXT, choice INTEGER);
INSERT INTO asks VALUES ('11', 2), ('11', 1), ('11', 3);
CREATE TABLE vat (code TEXT, label TEXT, part TEXT, rate NUMERIC);
INSERT INTO vat VALUES ('full', 'VAT', 'State', 7.25), ('full', 'VAT', 'City', 1.5), ('low', 'Low', '', 5);
