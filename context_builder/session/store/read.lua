-- The ends of lists: of each, at most so many items, at its right end, oldest last, or at its left end, oldest first.
-- All are at most ARGV[1] bytes together, but one item at least. Before a list's items, of its session's checkpoint at
-- this moment: the position in the input, the revision and the writer. Answers nothing for lists that the bytes do not
-- reach, and an error for those that are something else.
-- KEYS: for each list, itself and the checkpoint. ARGV: the bytes, then for each list the number of items, and 'left' or
-- 'right'.
local budget, read = tonumber(ARGV[1]), 0

local function items_of(list, checkpoint, most, from_left)
  local held = redis.pcall('HMGET', checkpoint, 'position', 'revision', 'by')
  if held.err then
    return held
  end
  local items = {held[1] or '', held[2] or '0', held[3] or ''}
  for i = 1, most do
    local item = redis.pcall('LINDEX', list, from_left and i - 1 or -i)
    if not item then
      break
    end
    if type(item) == 'table' then
      return item
    end
    if read > 0 and read + #item > budget then
      return i > 1 and items
    end
    read = read + #item
    items[i + 3] = item
  end
  return items
end

local answers = {}
for i = 1, #KEYS, 2 do
  answers[#answers + 1] = items_of(KEYS[i], KEYS[i + 1], tonumber(ARGV[i + 1]), ARGV[i + 2] == 'left')
end
return answers
