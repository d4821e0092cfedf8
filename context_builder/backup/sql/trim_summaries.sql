-- Deletes what the archive has of sessions from after their copy was taken. $1: as in trim_messages.sql
DELETE FROM context_summaries AS a
USING jsonb_to_recordset($1::jsonb) AS s (tenant text, session text, message bigint, summary bigint, point bigint)
WHERE a.session_id = s.session AND a.summary_seq > s.summary
