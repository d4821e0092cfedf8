-- Which of the KEYS, input lists, are not empty: their places, from 1.
local filled = {}
for first = 1, #KEYS, 100 do
  local last = math.min(first + 99, #KEYS)
  if redis.call('EXISTS', unpack(KEYS, first, last)) > 0 then
    for i = first, last do
      if redis.call('EXISTS', KEYS[i]) == 1 then
        filled[#filled + 1] = i
      end
    end
  end
end
return filled
