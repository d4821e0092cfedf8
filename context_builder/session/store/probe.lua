-- Push to a list that nobody else knows, and delete it: Redis announces the push, if it announces any.
redis.call('LPUSH', KEYS[1], '')
return redis.call('DEL', KEYS[1])
