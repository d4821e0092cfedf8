-- Take the lease of a session: when it is free, when its holder is the dead one named by the caller,
-- or by force. The token is counted up once and never again given to anybody else. Who holds the lease already, known
-- by the nonce, is given it again: its answer was lost.
-- Answers {1, the lease value} or {0, the present holder's lease value}.

local owner, fence = KEYS[1], KEYS[2]
local holder, lease_ms, expected, force, nonce = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

for i, expected in ipairs({'string', 'hash'}) do
  local held = redis.call('TYPE', KEYS[i]).ok
  if held ~= 'none' and held ~= expected then
    return redis.error_reply('WRONGTYPE ' .. KEYS[i] .. ' is a ' .. held .. ', not a ' .. expected)
  end
end
local present = redis.call('GET', owner)
if present and string.find(present, '"nonce":"' .. nonce .. '"', 1, true) then
  redis.call('PEXPIRE', owner, lease_ms)
  return {1, present}
end
if present and force ~= '1' and present ~= expected then
  return {0, present}
end
-- Every commit names its token, so one of an earlier owner that comes late is refused.
local token = redis.call('HINCRBY', fence, 'token', 1)
local value = '{"token":' .. token .. ',' .. string.sub(holder, 2)
redis.call('SET', owner, value, 'PX', lease_ms)
return {1, value}
