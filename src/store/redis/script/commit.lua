-- SPDX-License-Identifier: ISC
--
-- Outcomes, all in one go: nothing else happens on the server between the first and the last. Of many
-- cells each is called once.
--
-- commit lease visit_n visit_id entry_id alone plain {shard n {due id}... {id was front line}...}...
--   more {id was front line what ...}... hosts {shard id ok cool pace others}...
-- visit_id, entry_id: the last numbers below, -1: none was taken; "": the visits' are taken here.
-- alone: no other cell has a part, and so many new entries are all: when they are stored their numbers
-- are not `taken` any more. was: what a row of `state` began with when it was read, "shard host 0
-- due"; front: what it is from now on, up to its rest. line: the row of the visit from its run on.
-- plain: visits alone, of different feeds that stay active, under a lease.
-- what: "kind seen groups entries address"; kind v: a visit, f: a first one without a lease, n: only
-- the state, p: a push. seen: the time of the visit that must not be there yet. Behind it follow
-- {group bytes}... {key "hash date" row}... of changed entries, {key "hash date entry" ""}... of new
-- ones, whose rows are there (commit.c); [address "shard host"]; address 1: only the host
-- changes, 2: it is adopting that address.
-- Answers "lost", "floor" (take numbers anew), or {index, text, ...}: "gone", "before", "merging"
-- (later), or "new changed[ address]", for all others 0 0 was to be said. address: the one before,
-- or "taken": another feed has the new one.

local SKEW_MS, STEPS = 3600000, 100
local PUSHED = '17' -- FW_VISIT_PUSHED
local lease, visit_id, entry_id, t, merging
local numbered          -- numbers were taken before (meta.lua)
local stored_n          -- new entries
local shards            -- whose schedule changed
local chunk, chunk_name -- of visits that are not written yet
local chunks, names     -- those that are full

local function chunk_close()
	if #chunk > 0 then
		chunks[#chunks + 1], chunks[#chunks + 2] = chunk_name, table.concat(chunk)
		names[#names + 1], names[#names + 2] = chunk_name, chunk_name
		chunk = {}
	end
end

local function chunks_write()
	chunk_close()
	many('HSET', P .. 'visits', chunks)
	many('ZADD', P .. 'visit_ids', names)
	chunks, names = {}, {}
end

-- Its number, as it stands in a row of `state`.
local function visit_put(id, before, counts, line)
	local c, n, v = chunk, #chunk, nil
	if n == 8 * CHUNK then
		chunk_close()
		c, n = chunk, 0
	end
	visit_id = visit_id + 1
	v = fmt(NUMBER, visit_id)
	if n == 0 then
		chunk_name = int(visit_id)
	end
	c[n + 1], c[n + 2], c[n + 3], c[n + 4], c[n + 5], c[n + 6], c[n + 7], c[n + 8] = v, ' ', id, ' ', before, counts, line, '\n'
	return v
end

-- Entries of a feed that seemed new or changed. Counts those that are.
local function entries_put(id, n)
	local args, keys, put, new_n, changed_n = ARGV, {}, entries_new(), 0, 0
	for i = 1, n do
		keys[i] = args[at + 3 * i - 2]
	end
	local known = ask('HMGET', P .. 'keys:' .. id, keys)
	for i = 1, n do
		local key, row = keys[i], args[at + 3 * i]
		local hash, dated, own = match(args[at + 3 * i - 1], '^(%S+) (%S+) ?(%d*)$')
		local hash_was, entry = known_split(known[i])
		if not entry and own ~= '' then
			new_n = new_n + 1
			entry_add(put, key, hash, own, dated)
		elseif entry == '0' and hash_was ~= hash then -- retention took it: it stays away
			call('HSET', P .. 'keys:' .. id, key, hash .. ' 0')
		elseif entry and hash_was ~= hash then
			local seen, revision = match(call('HGET', P .. 'entries', entry), '^%d+ (%S+) %S+ (%d+) ')
			if own ~= '' then -- somebody else was first
				row = match(call('HGET', P .. 'entries', own), '^%S+ %S+ %S+ %S+ (.*)$')
			end
			changed_n = changed_n + 1
			entry_add(put, key, hash, entry, dated ~= '-' and tonumber(dated) < tonumber(seen) and dated or seen,
				fmt('%s %s %d %d ', id, seen, t, revision + 1) .. row)
		end
	end
	at = at + 3 * n
	stored_n = stored_n + new_n
	entries_write(id, put)
	return new_n, changed_n
end

-- Is a push of that time among the feed's visits?
local function was_pushed(last, at_ms)
	local n, found = 0, false
	chunks_write()
	history(last, function(row)
		local ms, kind = match(row, '^%d+ %d+ %d+ %d+ %d+ %S+ (%S+) (%d+)')
		found, n = tonumber(ms) == at_ms and kind == PUSHED, n + 1
		return found or n == STEPS or tonumber(ms) < at_ms - SKEW_MS
	end)
	return found
end

-- What a push tells, where nobody has told it yet.
local function told_add(was, told)
	local from = 1
	while from <= #told do
		local _, last, name, len = find(told, '^([%w_]+)=(%d+):', from)
		if (part(was, name, 1) or '') == '' then
			was = was .. sub(told, from, last + len + 1)
		end
		from = last + len + 2
	end
	return was
end

-- Another host, or another address: 'taken' where that is another feed's.
local function address_put(id, s, groups, only_host)
	local value, to = take(), take()
	if not only_host and call('HGET', P .. 'adopting', id) ~= url_of(value) then
		return 'taken'
	end
	local old = groups[ADDRESS]
	groups[ADDRESS] = value
	call('HDEL', P .. 'adopting', id)
	if to ~= s.shard .. ' ' .. s.host then
		call('ZREM', P .. 'due:' .. s.shard, id)
		shards[s.shard] = true
		s.shard, s.host = match(to, '^(%d+) (%S+)$')
		shards[s.shard] = true
	end
	return old
end

-- May it be stored? nil, or what is answered.
local function refused(id, s, was, kind, seen)
	if not s or (kind ~= 'p' and s.shard ~= sub(was, 1, 4)) or (kind == 'f' and tonumber(s.visit) ~= 0 and s.visit ~= seen) then
		return 'gone'
	elseif merging and call('HEXISTS', P .. 'merging', id) == 1 then
		return 'merging'
	end
	return kind ~= 'p' and s.visit == seen and 'before' or nil
end

-- The state as the visit leaves it: what was changed meanwhile stays.
local function visited(s, was, front)
	local status, due, visit, fail, crash, rest = match(front, '^%d+ %S+ (%d) (%S+) (%S+) (%d+) (%d+) (.*)$')
	s.status = s.status == '0' and status or s.status
	s.due = s.due == sub(was, 29) and due or s.due
	s.fail, s.crash, s.visit, s.rest = fail, crash, visit, rest
end

-- An outcome that brings more than a visit, or of a feed that was changed meanwhile. Returns what
-- is answered, nil: nothing.
local function outcome_put(id, was, front, line, what)
	local kind, seen, group_n, entry_n, address = match(what, '^(%a) (%S+) (%d+) (%d+) (%d)$')
	local s, new_n, changed_n, old = state_get(id), 0, 0, nil
	local why, groups = refused(id, s, was, kind, seen), nil
	group_n, entry_n = tonumber(group_n), tonumber(entry_n)
	if why then
		at = at + 2 * group_n + 3 * entry_n + (address ~= '0' and 2 or 0)
		return why
	end
	groups = (group_n > 0 or address ~= '0') and groups_get(id)
	for _ = 1, group_n do
		local i, bytes = take_n(), take()
		groups[i] = kind == 'p' and told_add(groups[i], bytes) or bytes
	end
	if entry_n > 0 then
		new_n, changed_n = entries_put(id, entry_n)
	end
	if kind ~= 'p' then
		visited(s, was, front)
		shards[s.shard] = shards[s.shard] or kind == 'f' or nil
	elseif new_n + changed_n == 0 and was_pushed(s.last, tonumber(seen)) then
		line = ''
	end
	if line ~= '' then
		s.last = visit_put(id, s.last, fmt(' %d %d ', new_n, changed_n), line)
	end
	s.new = new_n > 0 and fmt(TIME, t) or s.new
	if address ~= '0' then
		old = address_put(id, s, groups, address == '1')
	end
	if groups then
		groups_put(id, groups)
	end
	state_put(id, s)
	return (new_n > 0 or changed_n > 0 or old) and new_n .. ' ' .. changed_n .. (old and ' ' .. url_of(old) or '') or nil
end

-- Most outcomes bring a visit alone, to a feed that nobody has changed: these are the lines that
-- count. Of one shard, whose schedule is one command as it came unless one of these was changed.
local function plain_put(shard, ids, had, first, states, later)
	local args, from, n = ARGV, at + 2 * #ids + 1, #later
	for i = 1, #ids do
		local row, a = had[first + i], from + 4 * i - 4
		local front = args[a + 2]
		if row and find(row, args[a + 1], 1, true) == 1 and find(row, sub(front, VISIT, VISIT_END), VISIT, true) ~= VISIT then
			local k, id = #states, ids[i]
			states[k + 1], states[k + 2] = id, front .. sub(row, KEPT, LAST - 1) .. visit_put(id, sub(row, LAST), ' 0 0 ', args[a + 3])
		else
			later[#later + 1] = {first + i, a}
		end
	end
	if #later == n then
		for i = at + 1, from - 1, 4000 do
			call('ZADD', P .. 'due:' .. shard, unpack(args, i, math.min(i + 3999, from - 1)))
		end
	else
		for i = n + 1, #later do
			ids[later[i][1] - first] = false
		end
		for i, id in ipairs(ids) do
			if id then
				call('ZADD', P .. 'due:' .. shard, args[at + 2 * i - 1], id)
			end
		end
	end
	at = from + 4 * #ids - 1
end

local function plains_put(answer, n)
	local all, parts, from, states, later = {}, {}, at, {}, {}
	while #all < n do
		local shard, m, ids = take(), take_n(), {}
		for i = 1, m do
			ids[i] = ARGV[at + 2 * i]
			all[#all + 1] = ids[i]
		end
		parts[#parts + 1] = {shard, ids}
		at = at + 6 * m
	end
	local had, first = merging and {} or ask('HMGET', P .. 'state', all), 0
	at = from
	for _, part in ipairs(parts) do
		at = at + 2
		plain_put(part[1], part[2], had, first, states, later)
		first = first + #part[2]
	end
	many('HSET', P .. 'state', states)
	from = at
	for _, one in ipairs(later) do
		local i, a = one[1], one[2]
		local front = ARGV[a + 2]
		local text = outcome_put(ARGV[a], ARGV[a + 1], front, ARGV[a + 3], 'v ' .. sub(front, VISIT, VISIT_END) .. ' 0 0 0')
		if text then
			answer[#answer + 1], answer[#answer + 2] = i, text
		end
	end
	at = from
end

local function hosts_put()
	for _ = 1, take_n() do
		local shard, id, ok, cool, pace, others = match(take(), '^(%d+) (%S+) (%S+) (%S+) (%S+) (%d)$')
		if others == '1' then -- the later times count, the pace stays
			local was_ok, was_cool, was_pace = match(call('HGET', P .. 'hosts:' .. shard, id) or '', '^(%S+) (%S+) (%S+)$')
			ok = was_ok and tonumber(was_ok) > tonumber(ok) and was_ok or ok
			cool = was_cool and tonumber(was_cool) > tonumber(cool) and was_cool or cool
			pace = was_pace or pace
			shards[shard] = true
		end
		call('HSET', P .. 'hosts:' .. shard, id, ok .. ' ' .. cool .. ' ' .. pace)
	end
end

function ops.commit()
	local answer, visit_n, alone = {}, nil, nil
	lease, visit_n, visit_id, entry_id, alone, t = take(), take_n(), tonumber(take()), tonumber(take()), take_n(), now()
	merging = call('EXISTS', P .. 'merging') == 1
	shards, chunk, chunks, names = {}, {}, {}, {}
	numbered, stored_n = visit_id ~= nil, 0
	if numbered and entry_id >= 0 and entry_id < tonumber(call('HGET', P .. 'meta', 'floor') or 0) then
		return 'floor'
	elseif lease ~= '0' and call('HEXISTS', P .. 'workers', lease) == 0 then
		return 'lost'
	end
	if not numbered and visit_n > 0 then
		visit_id = call('HINCRBY', P .. 'meta', 'visit_id', visit_n) - visit_n
	end
	local first = visit_id
	local n = take_n()
	plains_put(answer, n)
	for i = n + 1, n + take_n() do
		local text = outcome_put(take(), take(), take(), take(), take())
		if text then
			answer[#answer + 1], answer[#answer + 2] = i, text
		end
	end
	chunks_write()
	if first and visit_id > first then
		call('HINCRBY', P .. 'meta', 'visit_n', visit_id - first)
	end
	if alone > 0 and stored_n == alone then
		call('HDEL', P .. 'taken', int(entry_id))
	end
	hosts_put()
	changed(shards)
	return answer
end
