-- Our tables among the names $1, with their columns that are stored and not generated, and what they are partitioned by.
SELECT c.relname AS name,
       coalesce(pg_get_partkeydef(c.oid) LIKE 'RANGE%', false) AS daily,
       ARRAY(SELECT a.attname FROM pg_attribute AS a
             WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
             ORDER BY a.attnum) AS columns,
       ARRAY(SELECT a.attname FROM pg_attribute AS a
             WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attidentity <> '') AS identities
FROM pg_class AS c
WHERE c.relname = ANY ($1) AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND pg_table_is_visible(c.oid)
ORDER BY c.relname
