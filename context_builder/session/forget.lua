-- Delete everything of a session. A tombstone in place of a lease that somebody holds refuses the commits of an
-- owner that still runs, which thereby learns of it; whoever comes next takes it like a free lease.
-- KEYS: owner, index of sessions, counts of summaries, everything else to delete.
if redis.call('EXISTS', KEYS[1]) == 1 then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
end
redis.call('ZREM', KEYS[2], ARGV[3])
redis.call('HDEL', KEYS[3], ARGV[3])
local deleted = 0
for i = 4, #KEYS do
  deleted = deleted + redis.call('DEL', KEYS[i])
end
return deleted
