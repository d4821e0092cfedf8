-- Everything of a session that its next owner continues from, at one moment.
-- KEYS: checkpoint, recent, pending, outbox, memory outbox, dead, counts of summaries, marks of forgotten sessions.
-- ARGV: session id, the session's field among the marks.
-- Answers {the checkpoint's fields and values, recent, the count of summaries, the mark, four lengths}.
for i, expected in ipairs({'hash', 'list', 'list', 'list', 'list', 'list', 'hash', 'hash'}) do
  local held = redis.call('TYPE', KEYS[i]).ok
  if held ~= 'none' and held ~= expected then
    return redis.error_reply('WRONGTYPE ' .. KEYS[i] .. ' is a ' .. held .. ', not a ' .. expected)
  end
end
return {redis.call('HGETALL', KEYS[1]), redis.call('LRANGE', KEYS[2], 0, -1), redis.call('HGET', KEYS[7], ARGV[1]),
  redis.call('HGET', KEYS[8], ARGV[2]), redis.call('LLEN', KEYS[3]), redis.call('LLEN', KEYS[4]),
  redis.call('LLEN', KEYS[5]), redis.call('LLEN', KEYS[6])}
