-- Put an item in the place of another one in a list, or remove that one, where it is still there.
-- KEYS: list. ARGV: the item, and what takes its place, empty for nothing.
if ARGV[2] == '' then
  return redis.call('LREM', KEYS[1], 1, ARGV[1])
end
local at = redis.call('LPOS', KEYS[1], ARGV[1])
if at then
  redis.call('LSET', KEYS[1], at, ARGV[2])
  return 1
end
return 0
