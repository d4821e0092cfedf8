-- Tell who forgot the session that something of it may still be delivered, unless somebody has begun it anew.
-- KEYS: owner. ARGV: the tombstone that was left, the one to put in its place, its milliseconds to live.
if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
end
