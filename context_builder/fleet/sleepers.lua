-- Keep the conversation states of a part of the sleeping sessions fresh, if this worker is the one that does so; which it
-- becomes when nobody is. Only the time since the last message changes while nobody runs a session.
-- KEYS: who does it, the sleepers by the time of their last message. ARGV: this worker, for how long it does it (ms), how
-- long a conversation state lives (ms), seconds after the last message that it is kept, the first and the last sleeper to
-- look at.
-- Answers {1 if this worker does it, how many sleepers there are, those whose state has been lost}
local keeper, sleepers = KEYS[1], KEYS[2]
local worker, keeper_ms, ttl_ms, longest = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000

local present = redis.call('GET', keeper)
if present and present ~= worker then
  return {0, 0, {}}
end
redis.call('ZREMRANGEBYSCORE', sleepers, '-inf', '(' .. (now - longest)) -- first, so that a Redis that is full goes on
redis.call('SET', keeper, worker, 'PX', keeper_ms)

local lost = {}
local looked_at = redis.call('ZRANGE', sleepers, ARGV[5], ARGV[6], 'WITHSCORES')
for i = 1, #looked_at, 2 do
  local id = looked_at[i]
  if redis.call('EXISTS', 'context_builder:' .. id .. ':owner') == 1
      or redis.call('EXISTS', 'context_builder:' .. id .. ':checkpoint') == 0 then -- somebody runs it, or has forgotten it
    redis.call('ZREM', sleepers, id)
  else
    local state = redis.pcall('GET', 'conversation_state:' .. id)
    if type(state) == 'string' then
      local since = string.format('"time_since_last_message":%.3f', math.max(0, now - tonumber(looked_at[i + 1])))
      state = string.gsub(state, '"time_since_last_message":[^,}]*', since, 1)
      redis.call('SET', 'conversation_state:' .. id, state, 'PX', ttl_ms)
    else
      lost[#lost + 1] = id
    end
  end
end
return {1, redis.call('ZCARD', sleepers), lost}
