-- Give the lease back, unless somebody else holds it by now. The mark that the session was forgotten goes too: this
-- was the owner that it was for.
local present = redis.call('GET', KEYS[1])
if not present then
  return 0
end
local read, held = pcall(cjson.decode, present)
held = read and type(held) == 'table' and held or {}
if present == ARGV[1] or held.forgotten and not held.in_part then -- who forgot it in part is told so
  return redis.call('DEL', KEYS[1])
end
return 0
