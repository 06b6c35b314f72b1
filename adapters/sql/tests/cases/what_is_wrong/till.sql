CREATE TABLE dish (plu TEXT, label TEXT, price TEXT, open_price INTEGER);
INSERT INTO dish VALUES ('1', 'Good', '4.50', 0), ('1', 'Twice', '5.00', 0), ('2', '', '1.00', 0),
                        ('3', 'By mouth', 'ask', 0), ('4', 'Too fine', '1.005', 0),
                        ('5', 'Weighed', '0', 1), ('6', 'With sizes', '3.00', 0), ('', 'Nameless', '1', 0);
CREATE TABLE size (plu TEXT, code TEXT, label TEXT, price TEXT);
INSERT INTO size VALUES ('6', '6-S', 'Small', '3.00'), ('6', '6-L', 'Large', '-1');
CREATE TABLE gone (plu TEXT, until TEXT);
INSERT INTO gone VALUES ('1', '2026-01-02T18:00:00Z'), ('2', 'tomorrow');
CREATE TABLE floor (id TEXT, label TEXT, chairs TEXT);
INSERT INTO floor VALUES ('t1', 'Table 1', '4'), ('t2', 'Table 2', 'many'), ('t1', 'Again', '2');
