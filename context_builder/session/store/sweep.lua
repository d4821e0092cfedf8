-- Delete a session that outlived its retention, unless something still waits in it or somebody runs it. How many
-- summaries it had made is left behind.
-- KEYS: owner, index of sessions, counts of summaries, input, pending, outbox, memory outbox, checkpoint, everything else to delete.
-- ARGV: session id, newest activity (epoch seconds) that counts as outlived, messages that a summary leaves in the buffer.
local active_at = redis.call('ZSCORE', KEYS[2], ARGV[1])
if active_at and tonumber(active_at) > tonumber(ARGV[2]) then
  return 0
end
if redis.call('EXISTS', KEYS[1], KEYS[4], KEYS[5], KEYS[6], KEYS[7]) > 0 then
  return 0
end
local buffered = 0
for _, field in ipairs(redis.call('HKEYS', KEYS[8])) do
  if string.sub(field, 1, 2) == 'm:' then
    buffered = buffered + 1
  end
end
if buffered > tonumber(ARGV[3]) then
  return 0
end
local summary = redis.call('HGET', KEYS[8], 'summary')
local seq = summary and cjson.decode(summary).seq
-- Deletes come first: a Redis that is full refuses a script only at its first command that may need memory.
for i = 8, #KEYS do
  redis.call('DEL', KEYS[i])
end
redis.call('ZREM', KEYS[2], ARGV[1])
if seq then
  redis.call('HSET', KEYS[3], ARGV[1], seq)
end
return 1
