-- Which of a part of the sessions nobody runs though something waits in them: for a summary, the archive or the memory.
-- KEYS: sessions by the time of their last message, those whose receivers were away by when to try again.
-- ARGV: the first and the last to look at, newest first; messages that a summary leaves in the buffer.
-- Answers {how many sessions there are, those found}
local sessions, postponed = KEYS[1], KEYS[2]
local keep_last, now = tonumber(ARGV[3]), tonumber(redis.call('TIME')[1])

local function has_work(session)
  if redis.call('EXISTS', session .. 'owner') == 1 then
    return false
  end
  if redis.call('EXISTS', session .. 'pending', session .. 'outbox', session .. 'memory_outbox') > 0 then
    return true
  end
  local order = redis.pcall('HGET', session .. 'checkpoint', 'order') -- a list of numbers in JSON
  if type(order) ~= 'string' or #order <= 2 then
    return false
  end
  local _, commas = string.gsub(order, ',', '')
  return commas + 1 > keep_last
end

local found = {}
for _, id in ipairs(redis.call('ZREVRANGE', sessions, ARGV[1], ARGV[2])) do
  if has_work('context_builder:' .. id .. ':') and tonumber(redis.call('ZSCORE', postponed, id) or 0) <= now then
    found[#found + 1] = id
  end
end
return {redis.call('ZCARD', sessions), found}
