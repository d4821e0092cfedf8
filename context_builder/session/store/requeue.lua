-- Move one dead letter back to where it came from. KEYS: dead letters, the list it came from, checkpoint.
-- ARGV: the letter, what is put back, the push that makes it the newest there, the checkpoint's field for the bytes of
-- letters kept, the revision at which this is right, or '' for any.
-- Answers whether the letter was still there; -1 when the session has another revision by now.
if ARGV[5] ~= '' and (redis.call('HGET', KEYS[3], 'revision') or '0') ~= ARGV[5] then
  return -1
end
local removed = redis.call('LREM', KEYS[1], -1, ARGV[1])
if removed == 1 then
  redis.call('HINCRBY', KEYS[3], ARGV[4], -#ARGV[1])
  redis.call(ARGV[3], KEYS[2], ARGV[2])
end
return removed
