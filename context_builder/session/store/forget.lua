-- Delete everything of a session, and leave the mark that keeps whoever loaded it before from restoring it. A tombstone in
-- place of a lease that somebody holds refuses the commits of an owner that still runs, which thereby learns of it at
-- once; whoever comes next takes it like a free lease.
-- KEYS: owner, index of sessions, counts of summaries, marks of forgotten sessions, ids of cached packages that show what was
-- said, everything else to delete.
-- ARGV: tombstone, its milliseconds to live, session id, the session's field among the marks, what is put before its
-- mark so that it is like none before, the longest that a mark may be, and what the key of a cached package begins with.
-- Deletes come first: a Redis that is full refuses a script only at its first command that may need memory.
redis.call('ZREM', KEYS[2], ARGV[3])
redis.call('HDEL', KEYS[3], ARGV[3])
local packages = redis.pcall('SMEMBERS', KEYS[5])
for _, id in ipairs(packages) do -- none where somebody made something else of the key
  redis.call('DEL', ARGV[7] .. id)
end
redis.call('DEL', KEYS[5])
local deleted = 0
for i = 6, #KEYS do
  deleted = deleted + redis.call('DEL', KEYS[i])
end
if redis.call('EXISTS', KEYS[1]) == 1 then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
end
local before = redis.call('HGET', KEYS[4], ARGV[4])
redis.call('HSET', KEYS[4], ARGV[4], string.sub(before and ARGV[5] .. ' ' .. before or ARGV[5], 1, ARGV[6]))
return deleted
