-- Copies everything of a session that a backup keeps, at one moment, so that it can be read in parts while the session goes
-- on. The copies expire by themselves.
-- KEYS: index of sessions, counts of summaries, marks of forgotten sessions, then the session's keys, then as many copies.
-- ARGV: session id, the session's field among the marks, milliseconds that a copy lives, then the type of each key.
-- Answers {when it was last active, the count of summaries, the mark, milliseconds to live of each key: -1 for ever, -2 none,
-- the type of each key that is there and of another one, which is left out}.
local kept = (#KEYS - 3) / 2
local lives, others = {}, {}
for i = 1, kept do
  local source, copy = KEYS[3 + i], KEYS[3 + kept + i]
  local held = redis.call('TYPE', source).ok
  lives[i], others[i] = redis.call('PTTL', source), ''
  if held ~= 'none' and held ~= ARGV[3 + i] then
    lives[i], others[i] = -2, held
  elseif redis.call('COPY', source, copy, 'REPLACE') == 1 then
    redis.call('PEXPIRE', copy, ARGV[3])
  end
end
return {redis.call('ZSCORE', KEYS[1], ARGV[1]), redis.call('HGET', KEYS[2], ARGV[1]), redis.call('HGET', KEYS[3], ARGV[2]),
  lives, others}
