-- Move an entry of an outbox, which its receiver will never take, to the dead letters of that outbox.
-- KEYS: outbox, dead letters, checkpoint. ARGV: the entry, its letter, most letters and bytes to keep, the
-- checkpoint's fields for how many there have been and for the bytes kept.
-- Answers how many there have been. Repeated, because its answer was lost, it changes nothing.
local outbox, dead, checkpoint = KEYS[1], KEYS[2], KEYS[3]
local entry, letter, most, most_bytes = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local count_field, bytes_field = ARGV[5], ARGV[6]

if not redis.call('LPOS', outbox, entry) then
  return tonumber(redis.call('HGET', checkpoint, count_field) or 0)
end

local bytes = redis.call('HGET', checkpoint, bytes_field)
if not bytes then -- none yet, or the checkpoint was written anew
  bytes = 0
  for _, kept in ipairs(redis.call('LRANGE', dead, 0, -1)) do
    bytes = bytes + #kept
  end
end
bytes = bytes + #letter
local kept = redis.call('LPUSH', dead, letter)
while kept > most or (bytes > most_bytes and kept > 1) do
  bytes = bytes - #redis.call('RPOP', dead)
  kept = kept - 1
end
redis.call('HSET', checkpoint, bytes_field, bytes)
local count = redis.call('HINCRBY', checkpoint, count_field, 1)
redis.call('LREM', outbox, 1, entry) -- last, because Redis does not take back what a script that fails wrote before
return count
