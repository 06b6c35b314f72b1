CREATE TABLE dish (plu TEXT, label TEXT, price TEXT, shop TEXT);
