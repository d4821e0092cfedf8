-- Refresh what expires of many sessions that have nothing to commit: the conversation state always, lease and published
-- state where asked to. A session is refreshed only while its lease and the commit that Redis holds are the caller's.
-- KEYS: eight for each session: owner, checkpoint, conversation state, state, outbox, memory outbox, control, input.
-- ARGV: milliseconds to live of lease, state and conversation state; then five for each session: lease, revision, writer,
-- conversation state, and 1 where lease and state are to live on.
-- Answers a number for each session: 0 when all is well, 1 when a commit is called for, 2 when its input is not empty. An
-- outbox that is not empty calls for a commit too, which tells the relay.

local lease_ms, state_ms, conversation_ms = ARGV[1], ARGV[2], ARGV[3]
local verdicts = {}
local function refresh(key, arg)
  if redis.pcall('GET', KEYS[key + 1]) ~= ARGV[arg + 1] then
    return 1
  end
  local held = redis.pcall('HMGET', KEYS[key + 2], 'revision', 'by')
  if held.err or (held[1] or '0') ~= ARGV[arg + 2] or (held[2] or '') ~= ARGV[arg + 3] then
    return 1
  end
  redis.call('SET', KEYS[key + 3], ARGV[arg + 4], 'PX', conversation_ms)
  if ARGV[arg + 5] == '1' then
    redis.call('PEXPIRE', KEYS[key + 1], lease_ms)
    redis.call('PEXPIRE', KEYS[key + 4], state_ms)
  end
  if redis.call('TYPE', KEYS[key + 4]).ok ~= 'string'
      or redis.call('EXISTS', KEYS[key + 5], KEYS[key + 6], KEYS[key + 7]) > 0 then
    return 1
  end
  return redis.call('EXISTS', KEYS[key + 8]) * 2
end
-- Deletes nothing; but a Redis that is full refuses a script only until its first write, and what follows takes no memory.
redis.pcall('HDEL', KEYS[2], '')
for i = 1, #KEYS / 8 do
  verdicts[i] = refresh(8 * (i - 1), 3 + 5 * (i - 1))
end
return verdicts
