-- The oldest deliveries, oldest first: at most ARGV[1] of them and ARGV[2] bytes together, but at least one.
local deliveries, bytes = {}, 0
for i = 1, tonumber(ARGV[1]) do
  local delivery = redis.call('LINDEX', KEYS[1], -i)
  if not delivery then
    break
  end
  bytes = bytes + #delivery
  if i > 1 and bytes > tonumber(ARGV[2]) then
    break
  end
  deliveries[i] = delivery
end
return deliveries
