CREATE TABLE categories (id varchar(255) PRIMARY KEY, name varchar(255) NOT NULL UNIQUE, parentid varchar(255),
    catorder varchar(255));
CREATE TABLE taxcategories (id varchar(255) PRIMARY KEY, name varchar(255) NOT NULL UNIQUE);
CREATE TABLE taxes (id varchar(255) PRIMARY KEY, name varchar(255) NOT NULL UNIQUE, category varchar(255) NOT NULL,
    custcategory varchar(255), parentid varchar(255), rate {double} NOT NULL, ratecascade {flag} NOT NULL, rateorder int,
    FOREIGN KEY (category) REFERENCES taxcategories (id));
CREATE TABLE products (id varchar(255) PRIMARY KEY, reference varchar(255) NOT NULL UNIQUE, code varchar(255) NOT NULL UNIQUE,
    name varchar(255) NOT NULL, pricebuy {double} NOT NULL, pricesell {double} NOT NULL, category varchar(255) NOT NULL,
    taxcat varchar(255) NOT NULL, iscom {flag} NOT NULL, isscale {flag} NOT NULL, isservice {flag} NOT NULL,
    isvprice {vflag} NOT NULL, image {blob}, attributes {blob},
    FOREIGN KEY (category) REFERENCES categories (id), FOREIGN KEY (taxcat) REFERENCES taxcategories (id));
CREATE TABLE products_cat (product varchar(255) PRIMARY KEY, catorder int, FOREIGN KEY (product) REFERENCES products (id));
CREATE TABLE products_com (id varchar(255) PRIMARY KEY, product varchar(255) NOT NULL, product2 varchar(255) NOT NULL,
    FOREIGN KEY (product) REFERENCES products (id), FOREIGN KEY (product2) REFERENCES products (id));
CREATE TABLE locations (id varchar(255) PRIMARY KEY, name varchar(255) NOT NULL);
CREATE TABLE stockdiary (id varchar(255) PRIMARY KEY, datenew {moment} NOT NULL, reason int NOT NULL,
    location varchar(255) NOT NULL, product varchar(255) NOT NULL, attributesetinstance_id varchar(255), units {double} NOT NULL,
    price {double} NOT NULL, appuser varchar(255),
    FOREIGN KEY (product) REFERENCES products (id), FOREIGN KEY (location) REFERENCES locations (id));
CREATE TABLE stockcurrent (location varchar(255) NOT NULL, product varchar(255) NOT NULL, attributesetinstance_id varchar(255),
    units {double} NOT NULL,
    FOREIGN KEY (product) REFERENCES products (id), FOREIGN KEY (location) REFERENCES locations (id));
CREATE TABLE people (id varchar(255) PRIMARY KEY, name varchar(255) NOT NULL);
CREATE TABLE closedcash (money varchar(255) PRIMARY KEY, host varchar(255) NOT NULL, hostsequence int NOT NULL,
    datestart {moment} NOT NULL, dateend {moment}, nosales int DEFAULT 0 NOT NULL);
CREATE TABLE receipts (id varchar(255) PRIMARY KEY, money varchar(255) NOT NULL, datenew {moment} NOT NULL, attributes {blob},
    person varchar(255), FOREIGN KEY (money) REFERENCES closedcash (money));
CREATE TABLE tickets (id varchar(255) PRIMARY KEY, tickettype int DEFAULT 0 NOT NULL, ticketid int NOT NULL,
    person varchar(255) NOT NULL, customer varchar(255), status int DEFAULT 0 NOT NULL,
    FOREIGN KEY (id) REFERENCES receipts (id), FOREIGN KEY (person) REFERENCES people (id));
CREATE TABLE ticketlines (ticket varchar(255) NOT NULL, line int NOT NULL, product varchar(255),
    attributesetinstance_id varchar(255), units {double} NOT NULL, price {double} NOT NULL, taxid varchar(255) NOT NULL,
    attributes {blob}, PRIMARY KEY (ticket, line), FOREIGN KEY (ticket) REFERENCES tickets (id),
    FOREIGN KEY (product) REFERENCES products (id), FOREIGN KEY (taxid) REFERENCES taxes (id));
CREATE TABLE payments (id varchar(255) PRIMARY KEY, receipt varchar(255) NOT NULL, payment varchar(255) NOT NULL,
    total {double} NOT NULL, transid varchar(255), notes varchar(255), tendered {double} DEFAULT 0 NOT NULL,
    FOREIGN KEY (receipt) REFERENCES receipts (id));
CREATE TABLE taxlines (id varchar(255) PRIMARY KEY, receipt varchar(255) NOT NULL, taxid varchar(255) NOT NULL,
    base {double} NOT NULL, amount {double} NOT NULL,
    FOREIGN KEY (taxid) REFERENCES taxes (id), FOREIGN KEY (receipt) REFERENCES receipts (id));
CREATE TABLE floors (id varchar(255) PRIMARY KEY, name varchar(255) NOT NULL UNIQUE);
CREATE TABLE places (id varchar(255) PRIMARY KEY, name varchar(255) NOT NULL UNIQUE, x int NOT NULL, y int NOT NULL,
    floor varchar(255) NOT NULL);
INSERT INTO categories (id, name, catorder) VALUES ('000', 'Mains', '1'), ('001', 'Sauces', '2');
INSERT INTO taxcategories (id, name) VALUES ('000', 'Tax Exempt'), ('001', 'Tax Standard');
INSERT INTO taxes (id, name, category, rate, ratecascade) VALUES ('000', 'Tax Exempt', '000', 0, {no}),
    ('001', 'Tax Standard', '001', 0.10, {no});
INSERT INTO locations (id, name) VALUES ('0', 'General');
INSERT INTO people (id, name) VALUES ('0', 'Administrator');
INSERT INTO closedcash (money, host, hostsequence, datestart, dateend) VALUES
    ('yesterday', 'till-1', 1, '2026-01-01 08:00:00', '2026-01-01 23:00:00'),
    ('today', 'till-1', 2, '2026-01-02 08:00:00', NULL), ('elsewhere', 'till-2', 1, '2026-01-02 08:00:00', NULL)
