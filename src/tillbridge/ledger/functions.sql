-- SQLite's functions for JSON, as far as the ledger's queries use them. Text that is no JSON, as of
-- a pruned order, has no values; \u0000, which jsonb refuses, becomes U+FFFD.

CREATE OR REPLACE FUNCTION json_of(source text) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF source = '' THEN
        RETURN NULL;
    END IF;
    RETURN source::jsonb;
EXCEPTION WHEN others THEN
    BEGIN
        RETURN replace(source, '\u0000', '\ufffd')::jsonb;
    EXCEPTION WHEN others THEN
        RETURN NULL;
    END;
END $$;

CREATE OR REPLACE FUNCTION json_at(source text, path text) RETURNS jsonb LANGUAGE sql IMMUTABLE
AS $$ SELECT jsonb_path_query_first(json_of(source), path::jsonpath) $$;

CREATE OR REPLACE FUNCTION json_text(value jsonb) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE value WHEN 'true' THEN '1' WHEN 'false' THEN '0' ELSE value #>> '{}' END
$$;

CREATE OR REPLACE FUNCTION json_valid(source text) RETURNS integer LANGUAGE sql IMMUTABLE
AS $$ SELECT (json_of(source) IS NOT NULL)::integer $$;

CREATE OR REPLACE FUNCTION json_extract(source text, path text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$ SELECT json_text(json_at(source, path)) $$;

CREATE OR REPLACE FUNCTION json_type(source text, path text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE jsonb_typeof(value)
        WHEN 'number' THEN CASE
            WHEN value::text ~ '^-?[0-9]{1,18}$' THEN 'integer' ELSE 'real' END
        WHEN 'string' THEN 'text'
        WHEN 'boolean' THEN value::text
        ELSE jsonb_typeof(value) END
    FROM json_at(source, path) AS value
$$;

CREATE OR REPLACE FUNCTION json_array_length(source text, path text) RETURNS integer
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN jsonb_typeof(value) = 'array' THEN jsonb_array_length(value)
        WHEN value IS NOT NULL THEN 0 END
    FROM json_at(source, path) AS value
$$;

CREATE OR REPLACE FUNCTION json_each(source text, path text) RETURNS TABLE (value text)
LANGUAGE sql IMMUTABLE AS $$
    SELECT json_text(each) FROM json_at(source, path) AS list, jsonb_array_elements(
        CASE jsonb_typeof(list) WHEN 'array' THEN list ELSE '[]' END) AS each
$$;

CREATE OR REPLACE FUNCTION json_tree(source text, path text) RETURNS TABLE (key text, atom text)
LANGUAGE sql IMMUTABLE AS $$
    WITH RECURSIVE inside(key, value) AS (
        SELECT NULL, json_at(source, path)
        UNION ALL
        SELECT next.key, next.value FROM inside, LATERAL (
            SELECT pair.key, pair.value FROM jsonb_each(
                CASE jsonb_typeof(inside.value) WHEN 'object' THEN inside.value ELSE '{}' END
            ) AS pair
            UNION ALL
            SELECT NULL, element FROM jsonb_array_elements(
                CASE jsonb_typeof(inside.value) WHEN 'array' THEN inside.value ELSE '[]' END
            ) AS element
        ) AS next
    )
    SELECT key, CASE WHEN jsonb_typeof(value) IN ('object', 'array') THEN NULL
        ELSE json_text(value) END FROM inside
$$;

CREATE OR REPLACE FUNCTION instr(source text, part text) RETURNS integer
LANGUAGE sql IMMUTABLE AS $$ SELECT strpos(source, part) $$;
