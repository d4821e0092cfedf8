-- Give the lease back, unless somebody else holds it by now. The mark that the session was forgotten goes too: this
-- was the owner that it was for.
local present = redis.call('GET', KEYS[1])
if present and (present == ARGV[1] or cjson.decode(present).forgotten) then
  return redis.call('DEL', KEYS[1])
end
return 0
