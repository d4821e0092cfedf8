-- Puts a session from a backup in its place, in one step, from copies that were made beside it. It leaves a mark like a
-- forgotten session's, so that no process that loaded the session before can write what it remembers over it.
-- KEYS: owner, index of sessions, counts of summaries, marks of forgotten sessions, then the session's keys, then as many copies.
-- ARGV: session id, when it was last active or '', the count of summaries or '', the session's field among the marks, the mark,
-- then the milliseconds to live of each key, or -1.
-- Answers 1, or 0 when there is such a session.
local kept = (#KEYS - 4) / 2
if redis.call('EXISTS', KEYS[1]) == 1 then
  return 0
end
for i = 1, kept do
  if redis.call('EXISTS', KEYS[4 + i]) == 1 then
    return 0
  end
end
for i = 1, kept do
  local key, copy = KEYS[4 + i], KEYS[4 + kept + i]
  if redis.call('EXISTS', copy) == 1 then
    redis.call('RENAME', copy, key)
    if tonumber(ARGV[5 + i]) > 0 then
      redis.call('PEXPIRE', key, ARGV[5 + i])
    else
      redis.call('PERSIST', key)
    end
  end
end
if ARGV[2] ~= '' then
  redis.call('ZADD', KEYS[2], ARGV[2], ARGV[1])
end
if ARGV[3] ~= '' then
  redis.call('HSET', KEYS[3], ARGV[1], ARGV[3])
end
redis.call('HSET', KEYS[4], ARGV[4], ARGV[5])
return 1
