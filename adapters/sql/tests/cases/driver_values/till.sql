CREATE TABLE dish (id INTEGER, label TEXT, price REAL, shown BLOB);
INSERT INTO dish VALUES (1, 'Ramen      ', 980.0, X'01'), (2, 'Gyōza' || char(9) || '餃子', 449.9999999999, X'00'),
                        (3, 'Crème' || char(7) || 'brûlée', 600, NULL);
CREATE TABLE places (id REAL, label TEXT, storey TEXT);
INSERT INTO places VALUES (4.0, 'Window', '1F'), (5.0, 'Roof', 'RF');
