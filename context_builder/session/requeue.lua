-- Move one dead letter back into the input. KEYS: dead, input, checkpoint. ARGV: the letter, its delivery.
-- Answers whether the letter was still there.
local removed = redis.call('LREM', KEYS[1], -1, ARGV[1])
if removed == 1 then
  redis.call('HINCRBY', KEYS[3], 'dead_bytes', -#ARGV[1])
  redis.call('LPUSH', KEYS[2], ARGV[2])
end
return removed
