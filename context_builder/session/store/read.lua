-- The ends of lists: of each, at most so many items, at its right end, oldest last, or at its left end, oldest first.
-- Together they are at most ARGV[1] bytes and ARGV[2] items. Only the first that is not empty is cut where that would be
-- more, after one item at least; for others without room the answer is nothing, and for what is no list, an error.
-- Before a list's items, of its session's checkpoint at this moment: the position in the input, revision and writer.
-- An item that is larger than is wanted of its list is {its beginning, its bytes, its digest}.
-- KEYS: for each list, itself and the checkpoint.
-- ARGV: bytes, items, bytes of a beginning, then for each list how many, 'left' or 'right', and the most bytes of an item.
local bytes_left, items_left, beginning, is_first = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), true

local function items_of(list, checkpoint, most, from_left, largest)
  local held = redis.pcall('HMGET', checkpoint, 'position', 'revision', 'by')
  if held.err then
    return held
  end
  local items, bytes, count = {held[1] or '', held[2] or '0', held[3] or ''}, 0, 0
  while count < most do
    local item = redis.pcall('LINDEX', list, from_left and count or -1 - count)
    if not item then
      break
    end
    if type(item) == 'table' then
      return item
    end
    local has_room = bytes + #item <= bytes_left and count < items_left
    if not has_room and not is_first then
      return false
    end
    if not has_room and count > 0 then
      break
    end
    bytes, count = bytes + #item, count + 1
    items[count + 3] = #item <= largest and item or {string.sub(item, 1, beginning), #item, redis.sha1hex(item)}
  end
  bytes_left, items_left = bytes_left - bytes, items_left - count
  is_first = is_first and count == 0
  return items
end

local answers = {}
for i = 1, #KEYS / 2 do
  local most, from, largest = unpack(ARGV, 3 * i + 1, 3 * i + 3)
  answers[i] = items_of(KEYS[2 * i - 1], KEYS[2 * i], tonumber(most), from == 'left', tonumber(largest))
end
return answers
