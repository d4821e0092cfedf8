-- Deletes what the memory has of sessions from after their copy was taken: it is in no session any more, and is said or
-- summed up again. $1: [{tenant, session, message, summary, point}]
DELETE FROM context_memories AS m
USING jsonb_to_recordset($1::jsonb) AS s (tenant text, session text, message bigint, summary bigint, point bigint)
WHERE m.tenant_id = s.tenant AND m.session_id = s.session
  AND (m.kind = 'message' AND m.position > s.message
       OR m.kind = 'point' AND context_session_point(m.session_id, m.id) > s.point)
