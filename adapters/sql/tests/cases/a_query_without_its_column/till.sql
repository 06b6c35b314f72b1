CREATE TABLE dish (plu TEXT, label TEXT, price TEXT); INSERT INTO dish VALUES ('1', 'Soup', '4.20');
