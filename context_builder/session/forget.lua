-- Delete everything of a session. A tombstone in place of the lease refuses the commits of an owner that
-- still runs, which thereby learns of it. KEYS: owner, index of sessions, everything else to delete.
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
redis.call('ZREM', KEYS[2], ARGV[3])
local deleted = 0
for i = 3, #KEYS do
  deleted = deleted + redis.call('DEL', KEYS[i])
end
return deleted
