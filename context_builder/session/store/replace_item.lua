-- Put an item in the place of another one in a list, or remove that one, where it is still there.
-- KEYS: list, checkpoint. ARGV: the item, what takes its place, empty for nothing, and the checkpoint's field that counts
-- the list's bytes, empty where none does.
local replaced = 0
if ARGV[2] == '' then
  replaced = redis.call('LREM', KEYS[1], 1, ARGV[1])
else
  local at = redis.call('LPOS', KEYS[1], ARGV[1])
  if at then
    redis.call('LSET', KEYS[1], at, ARGV[2])
    replaced = 1
  end
end
if replaced == 1 and ARGV[3] ~= '' and redis.call('HGET', KEYS[2], ARGV[3]) then
  redis.call('HINCRBY', KEYS[2], ARGV[3], #ARGV[2] - #ARGV[1])
end
return replaced
