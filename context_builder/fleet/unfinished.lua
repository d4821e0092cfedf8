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
  local fields = redis.pcall('HLEN', session .. 'checkpoint') -- an error, if the key is of another type
  if type(fields) ~= 'number' or fields <= keep_last then
    return false
  end
  local buffered = 0
  for _, field in ipairs(redis.call('HKEYS', session .. 'checkpoint')) do
    if string.sub(field, 1, 2) == 'm:' then
      buffered = buffered + 1
    end
  end
  return buffered > keep_last
end

local found = {}
for _, id in ipairs(redis.call('ZREVRANGE', sessions, ARGV[1], ARGV[2])) do
  if tonumber(redis.call('ZSCORE', postponed, id) or 0) <= now and has_work('context_builder:' .. id .. ':') then
    found[#found + 1] = id
  end
end
return {redis.call('ZCARD', sessions), found}
