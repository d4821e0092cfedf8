-- One commit of a session: checks the lease, and that Redis holds what the commit builds on (the writer's revision, and the
-- mark of the last time that the session was forgotten), then writes state, checkpoint, outbox and the rest, and
-- acknowledges the deliveries they came from. Redis runs a script alone, so a crash falls before or after it, never inside.
--
-- Answers {status, input length, outbox length, memory outbox length, control request, state key present, detail}.
-- status: ok (detail: the position in the input) | fenced (detail: the present owner) | diverged (detail: the present
-- revision) | input_changed

local owner, input, state, conversation, checkpoint = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local pending, seen, outbox, memory_outbox, dead = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local control, recent, sessions, forgotten = KEYS[11], KEYS[12], KEYS[13], KEYS[14]
local message_index, packages = KEYS[15], KEYS[16]

local at = 0
local function take()
  at = at + 1
  return ARGV[at]
end

local token, lease_ms, writer, forgotten_field = take(), take(), take(), take()
local state_ttl_ms, conversation_ttl_ms, session_id = take(), take(), take()
local dead_max, dead_max_bytes, recent_max, recent_ttl_ms = tonumber(take()), tonumber(take()), tonumber(take()), take()
-- Until here the arguments are those of every commit under the lease.
local from_revision, from_writer, to_revision, from_mark, mark = take(), take(), take(), take(), take()
local state_json, state_length, state_mark, state_edits = take(), tonumber(take()), take(), tonumber(take())
local state_edits_at = at
at = at + 3 * state_edits
local conversation_json, silent_for = take(), tonumber(take())
local acknowledged, oldest_digest, newest_digest = tonumber(take()), take(), take()
local from_position, to_position = take(), take()
local pending_trimmed, pending_left, rewrite = tonumber(take()), tonumber(take()), take()
local package_key, signature_key = take(), take()
local indexed_from, most_speakers = tonumber(take()), tonumber(take())

-- What somebody else made of another type is told by name before anything is written: a script that fails half-way has
-- written the first half. State and conversation state are strings that are overwritten whatever they are.
local types = {'string', 'list', '', '', 'hash', 'list', 'set', 'list', 'list', 'list', 'string', 'list', 'zset', 'hash',
  'hash', 'set'}
for i, expected in ipairs(types) do
  local held = expected ~= '' and redis.call('TYPE', KEYS[i]).ok or 'none'
  if held ~= 'none' and held ~= expected then
    return redis.error_reply('WRONGTYPE ' .. KEYS[i] .. ' is a ' .. held .. ', not a ' .. expected)
  end
end

local present = redis.call('GET', owner)
if present ~= token then
  return {'fenced', 0, 0, 0, '', 0, present or ''}
end
redis.call('PEXPIRE', owner, lease_ms)

-- Sends ARGV's next `count` values to a command, in pieces that fit Lua's stack.
local function send(command, key, count)
  local last = at + count
  while at < last do
    local stop = math.min(at + 4000, last)
    redis.call(command, key, unpack(ARGV, at + 1, stop))
    at = stop
  end
end

-- How many of ARGV's next `count` values a list does not have yet, which is all of them unless they are what the writer
-- remembers after a fall-back; those up to the newest one that is there are passed over.
local function missing(key, newest, count)
  local last = at + count
  local present = rewrite == '1' and redis.call('LINDEX', key, newest)
  if present then
    for i = last, at + 1, -1 do
      if ARGV[i] == present then
        at = i
        break
      end
    end
  end
  return last - at
end

-- Puts something else in the place of pending messages: of ARGV's next `count` values, how each begins, which is its id, and
-- what it is to be.
local function blank(count)
  local blanks = {}
  for _ = 1, count / 2 do
    local begins = take()
    blanks[begins] = take()
  end
  local length = count > 0 and redis.call('LLEN', pending) or 0
  for start = 0, length - 1, 500 do
    for offset, item in ipairs(redis.call('LRANGE', pending, start, start + 499)) do
      local blanked = blanks[string.match(item, '^{"id":%d+,')]
      if blanked then
        redis.call('LSET', pending, start + offset - 1, blanked)
      end
    end
  end
end

-- Makes a range of numbers hold another one, too.
local function widen(ranges, name, number)
  local range = ranges[name] or {number, number}
  ranges[name] = {math.min(range[1], number), math.max(range[2], number)}
end

-- What a field of the message index holds, a table; an empty one where it is no JSON, which must not stop a commit half-way.
local function indexed(field)
  local read, held = pcall(cjson.decode, redis.call('HGET', message_index, field) or '[]')
  return read and type(held) == 'table' and held or {}
end

-- Drops from the message index what is known of up to `most` messages with ids below `indexed_from`, and notes which they
-- were. What was struck is known for good, with the messages of the same number.
local function drop_indexed(most)
  local dropped = indexed('dropped')
  dropped.below = tonumber(dropped.below) or 1
  local first, last = dropped.below, math.min(indexed_from, dropped.below + most) - 1
  if last < first then
    return
  end
  for id = first, last do
    local value = redis.call('HGET', message_index, 'i:' .. id)
    if value and value ~= '"struck"' then
      local _, number, consilience, said_at, _, speaker = unpack(indexed('i:' .. id))
      if type(said_at) == 'number' then
        widen(dropped, 'time', said_at)
      end
      if type(number) == 'number' then
        local kind = consilience and 'c' or 'n'
        widen(dropped, kind, number)
        local field = string.format('%s:%.0f', kind, number)
        local needed = false
        for _, namesake in ipairs(indexed(field)) do
          local other = type(namesake) == 'table' and tonumber(namesake[1]) or 0
          needed = needed or other > id or redis.call('HGET', message_index, 'i:' .. other) == '"struck"'
        end
        if not needed then
          redis.call('HDEL', message_index, field)
        end
      end
      if type(speaker) == 'string' and (tonumber(redis.call('HGET', message_index, 'speakers')) or 0) < most_speakers
          and redis.call('HSETNX', message_index, 's:' .. redis.sha1hex(speaker), '') == 1 then
        redis.call('HINCRBY', message_index, 'speakers', 1)
      end
      redis.call('HDEL', message_index, 'i:' .. id)
    end
  end
  dropped.below = last + 1
  local ranges = ''
  for _, name in ipairs({'n', 'c', 'time'}) do
    if dropped[name] then
      ranges = ranges .. string.format(',"%s":[%.6f,%.6f]', name, dropped[name][1], dropped[name][2])
    end
  end
  redis.call('HSET', message_index, 'dropped', string.format('{"below":%.0f%s}', dropped.below, ranges))
end

-- A number alone says little: after a fall-back another writer may have come to the same one.
local held = redis.call('HMGET', checkpoint, 'revision', 'by', 'position')
local revision, by, position = held[1] or '0', held[2] or '', held[3] or ''
local written = revision == to_revision and by == writer
if (redis.call('HGET', forgotten, forgotten_field) or '') ~= from_mark
    or not written and (revision ~= from_revision or by ~= from_writer) then
  return {'diverged', 0, 0, 0, '', 0, revision}
end
-- A commit that is written already was sent again because its answer was lost. Where the revision stays, there is nothing
-- to write: the state is published and what expires is refreshed.
if not written and to_revision ~= from_revision then
  if acknowledged > 0 then
    -- A fall-back may leave other deliveries in the input. The first and the last one tell, without all being sent here.
    local oldest, newest = redis.call('LINDEX', input, -1), redis.call('LINDEX', input, -acknowledged)
    if position ~= from_position or not newest
        or redis.sha1hex(oldest) ~= oldest_digest or redis.sha1hex(newest) ~= newest_digest then
      return {'input_changed', 0, 0, 0, '', 0, ''}
    end
  end
  local dead_bytes = redis.call('HGET', checkpoint, 'dead_bytes') or 0
  if rewrite == '1' then -- what follows is all there is; a field that a lost commit dropped must not come back
    redis.call('DEL', checkpoint)
    redis.call('HSET', checkpoint, 'dead_bytes', dead_bytes)
    if mark ~= '' then
      redis.call('HSET', forgotten, forgotten_field, mark)
    end
  end
  send('HSET', checkpoint, tonumber(take()))
  send('HDEL', checkpoint, tonumber(take()))
  send('RPUSH', pending, missing(pending, -1, tonumber(take())))
  if rewrite == '1' then -- what was summarized since is the oldest
    pending_trimmed = math.max(0, redis.call('LLEN', pending) - pending_left)
  end
  if pending_trimmed > 0 then
    redis.call('LTRIM', pending, pending_trimmed, -1)
  end
  local identities = tonumber(take())
  local identities_at = at
  send('SADD', seen, identities)
  if identities > 0 then
    at = identities_at
    send('RPUSH', recent, identities)
    redis.call('LTRIM', recent, -recent_max, -1)
    redis.call('PEXPIRE', recent, recent_ttl_ms)
  end
  send('RPUSH', outbox, missing(outbox, -1, tonumber(take())))
  send('RPUSH', memory_outbox, missing(memory_outbox, -1, tonumber(take())))
  local dead_items = tonumber(take())
  local dead_at = at
  local dead_count = missing(dead, 0, dead_items)
  if dead_count > 0 then
    for i = at + 1, at + dead_count do
      dead_bytes = dead_bytes + #ARGV[i]
    end
    send('LPUSH', dead, dead_count)
    local kept = redis.call('LLEN', dead)
    while kept > dead_max or (dead_bytes > dead_max_bytes and kept > 1) do
      dead_bytes = dead_bytes - #redis.call('RPOP', dead)
      kept = kept - 1
    end
    redis.call('HSET', checkpoint, 'dead_bytes', dead_bytes)
  end
  at = dead_at + dead_items
  local index_parts = tonumber(take())
  send('HSET', message_index, index_parts)
  for _ = 1, tonumber(take()) / 2 do -- what a commit wrote that Redis has lost
    redis.call('HSETNX', message_index, take(), take())
  end
  if index_parts > 0 then
    drop_indexed(index_parts + 100)
  end
  blank(tonumber(take()))
  if package_key ~= '' then -- cached packages show what was said otherwise
    for _, id in ipairs(redis.call('SMEMBERS', packages)) do
      redis.call('DEL', package_key .. id, signature_key .. id)
    end
    redis.call('DEL', packages)
  end
  -- By this clock, which is the same for all, and never back: a process whose own was wrong may have written before.
  local time, before = redis.call('TIME'), tonumber(redis.call('ZSCORE', sessions, session_id) or 0)
  local now = time[1] + time[2] / 1000000
  local spoke_at = before <= now and math.max(before, now - silent_for) or now
  redis.call('ZADD', sessions, string.format('%.6f', spoke_at), session_id)
  -- Last, because Redis does not take back what a script wrote before one of its commands failed: until here
  -- the deliveries are still in the input, and the same commit may be sent again.
  if acknowledged > 0 then
    position = to_position
  end
  if rewrite == '1' and redis.call('LLEN', input) == acknowledged then -- nothing comes again: what follows is new
    position = redis.sha1hex(writer .. to_revision)
  end
  redis.call('HSET', checkpoint, 'revision', to_revision, 'by', writer, 'position', position)
  redis.call('LTRIM', input, 0, -(acknowledged + 1))
end

-- The published state is a long text of which a message changes little, so edits are sent instead: places in the text that
-- is there, each with spaces and what stands after them. Its length and its end show whether it is that text.
local state_present = 1
if state_json ~= '' then
  redis.call('SET', state, state_json, 'PX', state_ttl_ms)
elseif redis.call('TYPE', state).ok ~= 'string' or state_edits > 0 and
    (redis.call('STRLEN', state) ~= state_length or redis.call('GETRANGE', state, -#state_mark, -1) ~= state_mark) then
  state_present = 0 -- there is none, or another text than the edits are of; the owner publishes all of it next
else
  for i = state_edits_at + 1, state_edits_at + 3 * state_edits, 3 do -- where, how many spaces, and what after them
    redis.call('SETRANGE', state, ARGV[i], string.rep(' ', tonumber(ARGV[i + 1])) .. ARGV[i + 2])
  end
  state_present = redis.call('PEXPIRE', state, state_ttl_ms)
end
redis.call('SET', conversation, conversation_json, 'PX', conversation_ttl_ms)

return {'ok', redis.call('LLEN', input), redis.call('LLEN', outbox), redis.call('LLEN', memory_outbox),
  redis.call('GET', control) or '', state_present, position}
