"""Statements are taken only where nothing can be put into their text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.dialects import mysql, postgresql, sqlite

from tillbridge_sql.queries import NAMES, STEPS, Queries, read_queries
from tillbridge_sql.statements import StatementError, Use, statement_of
from tillbridge_sql.tokens import tokens_of


def reads(sql: str) -> frozenset[str]:
    return statement_of("items", sql, place="q.sql", line=1, use=Use.READS).parameters


def writes(sql: str) -> frozenset[str]:
    return statement_of("order", sql, place="q.sql", line=1, use=Use.WRITES).parameters


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT * FROM a WHERE b = '{key}'", "{..."),
        ("SELECT * FROM a WHERE b = '${key}'", "{..."),
        ("SELECT * FROM a WHERE b = '%(key)s'", "%(..."),
        ("SELECT * FROM a WHERE b = ':key'", ":key"),
        ("SELECT * FROM a WHERE b = 'x :key y'", ":key"),
        ('SELECT * FROM "table_{store}"', "{..."),
        ("SELECT * FROM `:store`", ":store"),
        ("SELECT * FROM a WHERE b = {key}", "{"),
        ("SELECT * FROM a WHERE b = %s", "%"),
        ("SELECT * FROM a WHERE b = %(key)s", "%"),
        ("SELECT * FROM a WHERE b = ?", "?"),
        ("SELECT * FROM a WHERE b = $1", "$"),
        ("SELECT * FROM a WHERE b = @key", "@"),
        ("SELECT 1; SELECT 2", "more than one"),
        ("SELECT 'a\\' OR 1=1 --'", "backslash"),
        ("SELECT 1 # it's", "#"),
        ("WITH x AS (DELETE FROM a RETURNING b) SELECT * FROM x", "DELETE"),
        ("SELECT * INTO b FROM a", "INTO"),
        ("SELECT * FROM a FOR UPDATE", "UPDATE"),
        ("SELECT * FROM a INTO OUTFILE 'f'", "OUTFILE"),
        ("INSERT INTO a VALUES (1)", "INSERT"),
        ("UPDATE a SET b = 1", "UPDATE"),
        ("CALL f()", "CALL"),
        ("DO $$ BEGIN DELETE FROM a; END $$", "DO"),
        ("PREPARE x FROM 'DELETE FROM a'", "PREPARE"),
        ("SELECT pg_sleep(100)", "PG_SLEEP"),
        ("SELECT query_to_xml('DELETE FROM a', true, true, '')", "QUERY_TO_XML"),
        ("", "empty"),
        ("-- only words", "empty"),
    ],
)
def test_a_reading_query_that_could_do_more_is_refused_with_its_place(sql: str, says: str) -> None:
    with pytest.raises(StatementError) as refused:
        reads(sql)
    assert says in refused.value.text
    assert refused.value.place.startswith("q.sql, line 1")
    assert refused.value.fix


@pytest.mark.parametrize(
    ("sql", "parameters"),
    [
        ("SELECT a AS external_id FROM b WHERE c = :store", {"store"}),
        ("SELECT a::text, '12:30', 'it''s 50% {' || b FROM c", set()),
        ("SELECT REPLACE(name, 'a', 'b') FROM c WHERE name LIKE '%s' -- :no", set()),
        ('SELECT x.update, "delete", c.start FROM c /* DELETE; */', set()),
        ("WITH t AS (SELECT 1 AS n) SELECT n FROM t WHERE n = :decimals;", {"decimals"}),
        ("SELECT data #>> a, data #- b FROM c", set()),
        ("SELECT 5 % n FROM c", set()),
    ],
)
def test_a_plain_select_is_taken(sql: str, parameters: set[str]) -> None:
    assert reads(sql) == parameters


def test_a_step_may_change_the_till_and_nothing_else() -> None:
    assert writes("INSERT INTO a (b) VALUES (:key)") == {"key"}
    assert writes("SELECT id FROM a WHERE b = :key FOR UPDATE") == {"key"}
    for sql in ("DROP TABLE a", "COMMIT", "INSERT INTO a VALUES ('{key}')", "GRANT ALL ON a TO b"):
        with pytest.raises(StatementError):
            writes(sql)


def test_the_place_of_what_is_wrong_is_its_own_line() -> None:
    text = "-- name: tables\nSELECT 1 AS a\n-- name: items\nSELECT a\nFROM b\nWHERE c = '{d}'"
    with pytest.raises(StatementError, match=r"q\.sql, line 6, items"):
        read_queries(text, "q.sql", "sqlite")


def test_values_are_bound_whatever_is_in_them() -> None:
    sql = "SELECT a FROM b WHERE c = :store AND d = '10:30' AND e LIKE '5%'"
    clause = statement_of("items", sql, place="q", line=1, use=Use.READS).clause
    for dialect in (postgresql.dialect(), mysql.dialect(), sqlite.dialect()):  # type: ignore[no-untyped-call] # SQLAlchemy's
        compiled = clause.compile(dialect=dialect)
        assert set(compiled.params) == {"store"}
        assert "'10:30'" in str(compiled)


@given(st.text(alphabet="aZ_0 ;:'\"`$-/*\n{}%?@#\\()", max_size=60))
def test_nothing_of_a_text_is_lost_between_its_tokens(text: str) -> None:
    position = 0
    for token in tokens_of(text):
        start = text.index(token.text, position)
        assert not text[position:start].strip()
        assert token.line == text[:start].count("\n")
        position = start + len(token.text)
    assert not text[position:].strip()


@given(st.text(alphabet="ab '\"`:{}%;-\n", max_size=40))
def test_whatever_is_taken_has_no_parameter_that_is_not_bound(text: str) -> None:
    try:
        statement = statement_of("items", f"SELECT {text}", place="q", line=1, use=Use.READS)
    except StatementError:
        return
    assert set(statement.clause.compile().params) == statement.parameters


def test_a_parameter_that_nobody_gives_is_told_when_the_file_is_loaded() -> None:
    queries = read_queries("-- name: items\nSELECT 1 WHERE a = :floor", "q.sql", "sqlite")
    with pytest.raises(StatementError, match=r"Nobody gives :floor"):
        queries.with_parameters({})
    assert queries.with_parameters({"floor": 1}).parameters == {"floor": 1}
    own = read_queries("-- parameter: floor = 1F\n-- name: items\nSELECT :floor", "q", "sqlite")
    assert own.with_parameters({}).parameters == {"floor": "1F"}


def test_what_a_select_gives_is_known_to_the_steps_that_follow() -> None:
    text = (
        "-- name: order\nINSERT INTO a VALUES (:key)\n-- name: order\nSELECT id AS ticket FROM a\n"
        "-- name: line\nINSERT INTO b VALUES (:ticket, :line_name)\n"
    )
    assert read_queries(text, "q", "sqlite").with_parameters({}).has("order", "line")
    with pytest.raises(StatementError, match="ticket"):
        read_queries(text.replace("AS ticket", ""), "q", "sqlite").with_parameters({})


def test_a_query_of_another_database_does_not_count() -> None:
    text = "-- name: items [mysql]\nSELECT 1\n-- name: items [postgresql, sqlite]\nSELECT 2"
    assert read_queries(text, "q", "mysql").all("items")[0].sql == "SELECT 1"
    assert read_queries(text, "q", "sqlite").all("items")[0].sql == "SELECT 2"
    with pytest.raises(StatementError, match="no database oracle"):
        read_queries("-- name: items [oracle]\nSELECT 1", "q", "sqlite")


def test_a_file_lies_over_a_profile_name_by_name() -> None:
    under = read_queries("-- name: items\nSELECT 1\n-- name: tables\nSELECT 2", "p", "sqlite")
    over = read_queries("-- name: items\nSELECT 3\n-- name: tables\n-- none", "q", "sqlite")
    found = over.over(under)
    assert found.all("items")[0].sql == "SELECT 3"
    assert not found.has("tables")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("SELECT 1", "names no query"),
        ("SELECT 1\n-- name: items\nSELECT 2", "has no name"),
        ("-- name: dishes\nSELECT 1", "no query dishes"),
        ("-- name: items\nSELECT 1\n-- name: items\nSELECT 2", "appears twice"),
    ],
)
def test_a_file_that_is_none_is_refused(text: str, says: str) -> None:
    with pytest.raises(StatementError, match=says):
        read_queries(text, "q.sql", "sqlite")


def test_steps_are_left_out_where_no_orders_are_written() -> None:
    assert not Queries(dict.fromkeys(NAMES, ())).without(STEPS).statements.keys() & set(STEPS)
