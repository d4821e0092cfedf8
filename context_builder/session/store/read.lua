-- The oldest items of a list: at most ARGV[1] of them and ARGV[2] bytes together, but at least one. They are at its
-- right end, oldest last, or with ARGV[3] at its left end, oldest first. Before them, of the checkpoint at this moment:
-- its position in the input, its revision and its writer.
-- KEYS: the list, checkpoint.
local held = redis.call('HMGET', KEYS[2], 'position', 'revision', 'by')
local items, bytes = {held[1] or '', held[2] or '0', held[3] or ''}, 0
for i = 1, tonumber(ARGV[1]) do
  local item = redis.call('LINDEX', KEYS[1], ARGV[3] == 'left' and i - 1 or -i)
  if not item then
    break
  end
  bytes = bytes + #item
  if i > 1 and bytes > tonumber(ARGV[2]) then
    break
  end
  items[i + 3] = item
end
return items
