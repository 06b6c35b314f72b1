BEGIN TRANSACTION;
CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num));
INSERT INTO "alembic_version" VALUES('0006');
CREATE TABLE audit (
	id INTEGER NOT NULL, 
	at INTEGER NOT NULL, 
	who TEXT NOT NULL, 
	role TEXT DEFAULT '' NOT NULL, 
	action TEXT NOT NULL, 
	store TEXT DEFAULT '' NOT NULL, 
	target TEXT DEFAULT '' NOT NULL, 
	detail TEXT DEFAULT '{}' NOT NULL, 
	previous TEXT NOT NULL, 
	hash TEXT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "audit" VALUES(1,1790000000001,'command:anna','technician','order.retry','main','ord_1','{"ok":true}','0000000000000000000000000000000000000000000000000000000000000000','295e884667ab81aec33c3835cae42a717b6ec9a80cd306e1a1230344ff867460');
INSERT INTO "audit" VALUES(2,1790000000002,'page:chef','staff','item.86','main','burger','{"ok":true,"until_ms":1790000600000}','295e884667ab81aec33c3835cae42a717b6ec9a80cd306e1a1230344ff867460','01567fb45353a6e8fb10795ccfbed781ab4a12c01d4efef0647524ee69f8bfb5');
CREATE TABLE bridges (
	name TEXT NOT NULL, 
	holder TEXT NOT NULL, 
	url TEXT DEFAULT '' NOT NULL, 
	version TEXT DEFAULT '' NOT NULL, 
	started_at INTEGER NOT NULL, 
	seen_at INTEGER NOT NULL, 
	detail TEXT DEFAULT '{}' NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO "bridges" VALUES('kitchen','holder','https://kitchen.example','0.1.0',1790000000001,1790000000001,'{"stores": ["main"]}');
INSERT INTO "bridges" VALUES('kitchen-2','holder-2','https://kitchen.example','0.1.0',1790000000002,1790000000002,'{"stores": ["main"]}');
CREATE TABLE community_children (
	community TEXT NOT NULL, 
	order_id TEXT NOT NULL, 
	parent_id TEXT NOT NULL, 
	store_id TEXT DEFAULT '' NOT NULL, 
	store_name TEXT DEFAULT '' NOT NULL, 
	status TEXT DEFAULT '' NOT NULL, 
	subtotal INTEGER, 
	PRIMARY KEY (community, order_id)
);
INSERT INTO "community_children" VALUES('communities/hall','ord_c1','ord_1','st_main','Store 1','pending',450);
INSERT INTO "community_children" VALUES('communities/hall-2','ord_c2','ord_2','st_main','Store 2','pending',450);
CREATE TABLE community_orders (
	community TEXT NOT NULL, 
	order_id TEXT NOT NULL, 
	order_number TEXT DEFAULT '' NOT NULL, 
	status TEXT NOT NULL, 
	updated_at INTEGER, 
	payload TEXT NOT NULL, 
	received_at INTEGER NOT NULL, 
	changed_at INTEGER NOT NULL, 
	PRIMARY KEY (community, order_id)
);
INSERT INTO "community_orders" VALUES('communities/hall','ord_1','101','pending',1790000000001,'{"order_id": "ord_1"}',1790000000001,1790000000001);
INSERT INTO "community_orders" VALUES('communities/hall-2','ord_2','102','pending',1790000000002,'{"order_id": "ord_2"}',1790000000002,1790000000002);
CREATE TABLE community_records (
	community TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	record_id TEXT NOT NULL, 
	store_id TEXT DEFAULT '' NOT NULL, 
	name TEXT DEFAULT '' NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (community, kind, record_id)
);
INSERT INTO "community_records" VALUES('communities/hall','item','itm_1','st_main','Dish 1','{"item_id": "itm_1"}');
INSERT INTO "community_records" VALUES('communities/hall-2','item','itm_2','st_main','Dish 2','{"item_id": "itm_2"}');
CREATE TABLE community_words (
	community TEXT NOT NULL, 
	item_id TEXT NOT NULL, 
	available BOOLEAN NOT NULL, 
	until INTEGER, 
	"by" TEXT NOT NULL, 
	at INTEGER NOT NULL, 
	told_at INTEGER, 
	PRIMARY KEY (community, item_id)
);
INSERT INTO "community_words" VALUES('communities/hall','itm_1',0,1790000000001,'staff 1',1790000000001,1790000000001);
INSERT INTO "community_words" VALUES('communities/hall-2','itm_2',0,1790000000002,'staff 2',1790000000002,1790000000002);
CREATE TABLE facts (
	store TEXT NOT NULL, 
	name TEXT NOT NULL, 
	value TEXT NOT NULL, 
	at INTEGER NOT NULL, 
	PRIMARY KEY (store, name)
);
INSERT INTO "facts" VALUES('main','service_store_id','"st_main"',1790000000001);
INSERT INTO "facts" VALUES('main-2','service_store_id-2','"st_main"',1790000000002);
INSERT INTO "facts" VALUES('','audit_head','{"id": 2, "hash": "01567fb45353a6e8fb10795ccfbed781ab4a12c01d4efef0647524ee69f8bfb5"}',1790000000002);
CREATE TABLE holds (
	store TEXT NOT NULL, 
	digest TEXT NOT NULL, 
	since INTEGER NOT NULL, 
	reasons TEXT NOT NULL, 
	summary TEXT NOT NULL, 
	approved_digest TEXT, 
	PRIMARY KEY (store)
);
INSERT INTO "holds" VALUES('main','digest 1',1790000000001,'["12 items would be removed"]','{}','approved_digest 1');
INSERT INTO "holds" VALUES('main-2','digest 2',1790000000002,'["12 items would be removed"]','{}','approved_digest 2');
CREATE TABLE inbox (
	id INTEGER NOT NULL, 
	store TEXT NOT NULL, 
	delivery_id TEXT NOT NULL, 
	event_id TEXT NOT NULL, 
	event_type TEXT NOT NULL, 
	received_at INTEGER NOT NULL, 
	body BLOB NOT NULL, 
	handled_at INTEGER, 
	outcome TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (id), 
	CONSTRAINT uq_inbox_event UNIQUE (store, event_id)
);
INSERT INTO "inbox" VALUES(1,'main','delivery_id 1','event_id 1','order.created',1790000000001,X'7B226576656E745F74797065223A20226F726465722E63726561746564227D',1790000000001,'outcome 1');
INSERT INTO "inbox" VALUES(2,'main-2','delivery_id 2','event_id 2','order.created',1790000000002,X'7B226576656E745F74797065223A20226F726465722E63726561746564227D',1790000000002,'outcome 2');
CREATE TABLE leases (
	store TEXT NOT NULL, 
	holder TEXT DEFAULT '' NOT NULL, 
	token INTEGER DEFAULT '0' NOT NULL, 
	since INTEGER NOT NULL, 
	pinned TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (store)
);
INSERT INTO "leases" VALUES('main','holder',1,1790000000001,'');
INSERT INTO "leases" VALUES('main-2','holder-2',2,1790000000002,'');
CREATE TABLE menu_items (
	store TEXT NOT NULL, 
	external_id TEXT NOT NULL, 
	body TEXT NOT NULL, 
	fingerprint INTEGER, 
	pos_available BOOLEAN NOT NULL, 
	overlaid BOOLEAN DEFAULT 0 NOT NULL, 
	PRIMARY KEY (store, external_id)
);
INSERT INTO "menu_items" VALUES('main','burger','{"external_id": "burger", "name": "Burger", "price": 950}',1790000000001,0,0);
INSERT INTO "menu_items" VALUES('main-2','burger-2','{"external_id": "burger", "name": "Burger", "price": 950}',1790000000002,1,1);
CREATE TABLE menu_parts (
	store TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	external_id TEXT NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (store, kind, external_id)
);
INSERT INTO "menu_parts" VALUES('main','full','burger','{"external_id": "burger", "name": "Burger", "price": 950}');
INSERT INTO "menu_parts" VALUES('main-2','full','burger-2','{"external_id": "burger", "name": "Burger", "price": 950}');
CREATE TABLE menu_past (
	store TEXT NOT NULL, 
	external_id TEXT NOT NULL, 
	until_ms INTEGER NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (store, external_id, until_ms)
);
INSERT INTO "menu_past" VALUES('main','p1',1790000000500,'{"external_id":"p1","name":"Dish 1","price":100}');
INSERT INTO "menu_past" VALUES('main','p9',1790000000900,'');
CREATE TABLE menu_prices (
	store TEXT NOT NULL, 
	external_id TEXT NOT NULL, 
	from_ms INTEGER NOT NULL, 
	price INTEGER NOT NULL, 
	PRIMARY KEY (store, external_id, from_ms)
);
INSERT INTO "menu_prices" VALUES('main','burger',1790000000001,1790000000001);
INSERT INTO "menu_prices" VALUES('main-2','burger-2',1790000000002,1790000000002);
CREATE TABLE menu_refused (
	store TEXT NOT NULL, 
	external_id TEXT NOT NULL, 
	fingerprint INTEGER NOT NULL, 
	reason TEXT NOT NULL, 
	at INTEGER NOT NULL, 
	PRIMARY KEY (store, external_id)
);
INSERT INTO "menu_refused" VALUES('main','burger',1790000000001,'reason 1',1790000000001);
INSERT INTO "menu_refused" VALUES('main-2','burger-2',1790000000002,'reason 2',1790000000002);
CREATE TABLE order_log (
	id INTEGER NOT NULL, 
	store TEXT NOT NULL, 
	order_id TEXT NOT NULL, 
	at INTEGER NOT NULL, 
	event TEXT NOT NULL, 
	detail TEXT DEFAULT '{}' NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "order_log" VALUES(1,'main','ord_1',1790000000001,'event 1','{"detail": "switched off"}');
INSERT INTO "order_log" VALUES(2,'main-2','ord_1-2',1790000000002,'event 2','{"detail": "switched off"}');
CREATE TABLE orders (
	store TEXT NOT NULL, 
	order_id TEXT NOT NULL, 
	order_number TEXT DEFAULT '' NOT NULL, 
	payload TEXT NOT NULL, 
	placed_at INTEGER, 
	received_at INTEGER NOT NULL, 
	ticket TEXT NOT NULL, 
	ticket_reference TEXT DEFAULT '' NOT NULL, 
	written_at INTEGER, 
	attempts INTEGER DEFAULT '0' NOT NULL, 
	last_failure TEXT DEFAULT '' NOT NULL, 
	wanted TEXT NOT NULL, 
	told TEXT NOT NULL, 
	reason_code TEXT, 
	message TEXT DEFAULT '' NOT NULL, 
	closed_at INTEGER, 
	updated_at INTEGER NOT NULL, refused TEXT DEFAULT '{}' NOT NULL, unseen TEXT DEFAULT '{}' NOT NULL, 
	PRIMARY KEY (store, order_id)
);
INSERT INTO "orders" VALUES('main','ord_1','order_number 1','{"id": "ord_1"}',1790000000001,1790000000001,'written','ticket_reference 1',1790000000001,1790000000001,'last_failure 1','accepted','accepted','reason_code 1','message 1',1790000000001,1790000000001,'{}','{}');
INSERT INTO "orders" VALUES('main-2','ord_1-2','order_number 2','{"id": "ord_1"}',1790000000002,1790000000002,'written','ticket_reference 2',1790000000002,1790000000002,'last_failure 2','accepted','accepted','reason_code 2','message 2',1790000000002,1790000000002,'{}','{}');
CREATE TABLE overrides (
	store TEXT NOT NULL, 
	external_id TEXT NOT NULL, 
	until INTEGER, 
	"by" TEXT NOT NULL, 
	at INTEGER NOT NULL, told_at INTEGER, 
	PRIMARY KEY (store, external_id)
);
INSERT INTO "overrides" VALUES('main','burger',1790000000001,'by 1',1790000000001,1790000001801);
INSERT INTO "overrides" VALUES('main-2','burger-2',1790000000002,'by 2',1790000000002,1790000001802);
CREATE TABLE problem_history (
	id INTEGER NOT NULL, 
	code TEXT NOT NULL, 
	store TEXT DEFAULT '' NOT NULL, 
	subject TEXT DEFAULT '' NOT NULL, 
	since INTEGER NOT NULL, 
	until INTEGER NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "problem_history" VALUES(1,'pos.offline','main','',1790000000001,1790000060001);
CREATE TABLE problems (
	code TEXT NOT NULL, 
	store TEXT NOT NULL, 
	subject TEXT DEFAULT '' NOT NULL, 
	since INTEGER NOT NULL, 
	detail TEXT DEFAULT '{}' NOT NULL, 
	PRIMARY KEY (code, store, subject)
);
INSERT INTO "problems" VALUES('pos.offline','main','subject 1',1790000000001,'{"detail": "switched off"}');
INSERT INTO "problems" VALUES('pos.offline','main-2','subject 2',1790000000002,'{"detail": "switched off"}');
CREATE TABLE pushes (
	id INTEGER NOT NULL, 
	store TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	started_at INTEGER NOT NULL, 
	finished_at INTEGER, 
	state TEXT NOT NULL, 
	summary TEXT DEFAULT '{}' NOT NULL, 
	message TEXT DEFAULT '' NOT NULL, 
	job_id TEXT, 
	poll_url TEXT, 
	pending TEXT, 
	PRIMARY KEY (id)
);
INSERT INTO "pushes" VALUES(1,'main','full',1790000000001,1790000000001,'success','{}','message 1','job_id 1','poll_url 1','pending 1');
INSERT INTO "pushes" VALUES(2,'main-2','full',1790000000002,1790000000002,'success','{}','message 2','job_id 2','poll_url 2','pending 2');
CREATE TABLE requests (
	id TEXT NOT NULL, 
	holder TEXT NOT NULL, 
	name TEXT NOT NULL, 
	arguments TEXT DEFAULT '{}' NOT NULL, 
	actor TEXT DEFAULT '{}' NOT NULL, 
	at INTEGER NOT NULL, 
	answer TEXT, 
	failure TEXT, 
	done_at INTEGER, 
	PRIMARY KEY (id)
);
INSERT INTO "requests" VALUES('request','holder','item.86','{"store": "main"}','{"name": "command:anna"}',1790000000001,'{"done": true}','null',1790000000001);
INSERT INTO "requests" VALUES('request-2','holder-2','item.86','{"store": "main"}','{"name": "command:anna"}',1790000000002,'{"done": true}','null',1790000000002);
CREATE TABLE secrets (
	name TEXT NOT NULL, 
	value TEXT NOT NULL, 
	changed_at INTEGER NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO "secrets" VALUES('main/api_key','gAAAAA',1790000000001);
INSERT INTO "secrets" VALUES('main-2/api_key','gAAAAA',1790000000002);
CREATE TABLE tables (
	store TEXT NOT NULL, 
	external_id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	seats INTEGER, 
	zone TEXT DEFAULT '' NOT NULL, 
	table_id TEXT DEFAULT '' NOT NULL, 
	qr_token TEXT DEFAULT '' NOT NULL, 
	qr_url TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (store, external_id)
);
INSERT INTO "tables" VALUES('main','burger','service_store_id',1790000000001,'zone 1','table_id 1','qr_token 1','qr_url 1');
INSERT INTO "tables" VALUES('main-2','burger-2','service_store_id-2',1790000000002,'zone 2','table_id 2','qr_token 2','qr_url 2');
CREATE INDEX ix_inbox_open ON inbox (id) WHERE handled_at IS NULL;
CREATE INDEX ix_orders_open ON orders (store, received_at) WHERE closed_at IS NULL;
CREATE INDEX ix_orders_received ON orders (received_at);
CREATE INDEX ix_orders_told ON orders (store, told);
CREATE INDEX ix_order_log_order ON order_log (store, order_id, id);
CREATE INDEX ix_menu_items_fingerprint ON menu_items (store, fingerprint);
CREATE INDEX ix_menu_items_overlaid ON menu_items (store) WHERE overlaid;
CREATE INDEX ix_pushes_started ON pushes (started_at);
CREATE INDEX ix_pushes_running ON pushes (store) WHERE state = 'running';
CREATE INDEX ix_community_orders_received ON community_orders (community, received_at);
CREATE INDEX ix_community_children_parent ON community_children (community, parent_id);
CREATE INDEX ix_community_children_order ON community_children (order_id);
CREATE INDEX ix_problem_history_until ON problem_history (until);
CREATE INDEX ix_menu_past_until ON menu_past (until_ms);
CREATE INDEX ix_orders_number ON orders (order_number);
CREATE INDEX ix_orders_unseen ON orders (store) WHERE unseen <> '{}';
COMMIT;
