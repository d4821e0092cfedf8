-- Which commit Redis holds: {revision, writer, mark of the last time that the session was forgotten}.
-- KEYS: checkpoint, marks of forgotten sessions. ARGV: the session's field among the marks.
local held = redis.call('HMGET', KEYS[1], 'revision', 'by')
return {held[1] or '0', held[2] or '', redis.call('HGET', KEYS[2], ARGV[1]) or ''}
