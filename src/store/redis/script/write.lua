-- SPDX-License-Identifier: ISC
--
-- Feeds of one cell as they come, change, move and go.

local function due_put(id, status, due, shard)
	if status == '0' then
		call('ZADD', P .. 'due:' .. shard, due, id)
	else
		call('ZREM', P .. 'due:' .. shard, id)
	end
end

local function feed_put(id, state, groups, from)
	local status, _, _, due, _, _, shard = state_split(state)
	call('HSET', P .. 'state', id, state)
	for i, name in ipairs(GROUPS) do
		if groups[from + i] ~= '' then
			call('HSET', P .. name, id, groups[from + i])
		end
	end
	due_put(id, status, due, shard)
	return shard
end

-- create {id state address own error validators meta rhythm redirect}... -> 1 for each that is
-- there now, 0: somebody has taken the address away from it before it was there (void)
function ops.create()
	local answer, shards = {}, {}
	for i = 1, take_n() do
		local id, state = take(), take()
		answer[i] = 1
		if call('SISMEMBER', P .. 'void', id) == 1 then
			answer[i] = 0
		elseif call('HEXISTS', P .. 'state', id) == 0 then
			shards[feed_put(id, state, ARGV, at)] = true
		end
		at = at + #GROUPS
	end
	changed(P, shards)
	return answer
end

-- adopting id address: a commit will bring it, unless it is void by then
function ops.adopting()
	local id, url = take(), take()
	call('HSET', P .. 'adopting', id, url)
end

-- void id address -> 1: it is there and has this address; 0: it does not, and will not
function ops.void()
	local id, url = take(), take()
	local address = call('HGET', P .. 'address', id)
	if address and match(address, '^[^\n]*') == url then
		return 1
	elseif not address then
		call('SADD', P .. 'void', id)
	elseif call('HGET', P .. 'adopting', id) == url then
		call('HDEL', P .. 'adopting', id)
	end
	return 0
end

-- Who has this address. claim address id was: it becomes id's, if it is was's ("": nobody's) ->
-- whose it is now
function ops.claim()
	local url, id, was = take(), take(), take()
	local is = call('HGET', P .. 'urls', url) or ''
	if is == was then
		call('HSET', P .. 'urls', url, id)
		return id
	end
	return is
end

-- unclaim address id
function ops.unclaim()
	local url, id = take(), take()
	return call('HGET', P .. 'urls', url) == id and call('HDEL', P .. 'urls', url) or 0
end

-- unplace bucket id
function ops.unplace()
	call('HDEL', P .. 'place:' .. take(), take())
end

-- place bucket {id shard moves}...: where feeds lie; of two that say so the later move counts
function ops.place()
	local key = P .. 'place:' .. take()
	for _ = 1, take_n() do
		local id, shard, moves = take(), take(), take()
		local was = match(call('HGET', key, id) or '', '%d+$')
		if not was or tonumber(was) < tonumber(moves) then
			call('HSET', key, id, shard .. ' ' .. moves)
		end
	end
end

-- set id status due crash own_was own: "" leaves it -> 0: no such feed, -1: own is another by now,
-- -2: it is moving
function ops.set()
	local id, s_status, s_due, s_crash, own_was, own = take(), take(), take(), take(), take(), take()
	local row = call('HGET', P .. 'state', id)
	if not row then
		return 0
	elseif call('HEXISTS', P .. 'moving', id) == 1 then
		return -2
	elseif own ~= own_was then
		if (call('HGET', P .. 'own', id) or '') ~= own_was then
			return -1
		elseif own == '' then
			call('HDEL', P .. 'own', id)
		else
			call('HSET', P .. 'own', id, own)
		end
	end
	local status, fail, crash, due, visit, new, shard, host, moves, last, rest = state_split(row)
	status, due = s_status ~= '' and s_status or status, s_due ~= '' and s_due or due
	crash = s_crash ~= '' and s_crash or crash
	call('HSET', P .. 'state', id, state_make(status, fail, crash, due, visit, new, shard, host, moves, last, rest))
	due_put(id, status, due, shard)
	if s_status ~= '' or s_due ~= '' then
		changed(P, {[shard] = true})
	end
	return 1
end

-- crashed id max: its visit killed a worker
function ops.crashed()
	local id, max = take(), take_n()
	local row = call('HGET', P .. 'state', id)
	if not row then
		return 0
	end
	local status, fail, crash, due, visit, new, shard, host, moves, last, rest = state_split(row)
	crash = crash + 1
	status = status == '0' and crash >= max and '3' or status -- FW_FEED_QUARANTINED
	call('HSET', P .. 'state', id, state_make(status, fail, crash, due, visit, new, shard, host, moves, last, rest))
	due_put(id, status, due, shard)
	changed(P, {[shard] = true})
	return 1
end

-- ---- entries and visits ------------------------------------------------------------------------

local function entry_put(id, key, hash, entry, date, row)
	call('HSET', P .. 'keys:' .. id, key, hash .. ' ' .. entry .. ' ' .. date)
	call('HSET', P .. 'entries', entry, row)
	call('ZADD', P .. 'entry_ids', entry, entry)
	call('ZADD', P .. 'entry_dates', date, entry)
end

local function entry_drop(entry)
	call('HDEL', P .. 'entries', entry)
	call('ZREM', P .. 'entry_ids', entry)
	call('ZREM', P .. 'entry_dates', entry)
end

local function key_split(value)
	return match(value, '^(%S+) (%d+) ?(%S*)$')
end

-- load_entries {feed key hash entry date row}...: entry 0 is a key alone. What is there is passed
-- over.
function ops.load_entries()
	for _ = 1, take_n() do
		local id, key, hash, entry, date, row = take(), take(), take(), take(), take(), take()
		if call('HEXISTS', P .. 'keys:' .. id, key) == 1 or call('HEXISTS', P .. 'entries', entry) == 1 then
			-- passed over
		elseif entry == '0' then
			call('HSET', P .. 'keys:' .. id, key, hash .. ' 0')
		else
			entry_put(id, key, hash, entry, date, row)
		end
	end
end

-- load_visits {feed visit counts line}...
function ops.load_visits()
	for _ = 1, take_n() do
		local id, visit, counts, line = take(), take(), take(), take()
		local row = call('HGET', P .. 'state', id)
		if row and call('HEXISTS', P .. 'visits', visit) == 0 then
			local status, fail, crash, due, at_ms, new, shard, host, moves, last, rest = state_split(row)
			call('HSET', P .. 'visits', visit, id .. ' ' .. fmt(TIME, last) .. ' ' .. counts .. ' ' .. line)
			call('ZADD', P .. 'visit_ids', visit, visit)
			call('HSET', P .. 'state', id, state_make(status, fail, crash, due, at_ms, new, shard, host, moves, visit, rest))
		end
	end
end

-- raise {name n}...: numbers go on above
function ops.raise()
	for _ = 1, take_n() do
		local name, n = take(), take()
		if tonumber(call('HGET', P .. 'meta', name) or 0) < tonumber(n) then
			call('HSET', P .. 'meta', name, n)
		end
	end
end

-- ---- to another cell, or away -------------------------------------------------------------------

-- merge id into -> 0: no such feed, -1: it is moving; from here on it is not due, and commits wait
function ops.merge()
	local id, into = take(), take()
	local row, moving = call('HGET', P .. 'state', id), call('HGET', P .. 'moving', id)
	if not row then
		return 0
	elseif moving then
		return moving == 'into ' .. into and 1 or -1
	end
	local _, _, _, _, _, _, shard = state_split(row)
	call('HSET', P .. 'moving', id, 'into ' .. into)
	call('ZREM', P .. 'due:' .. shard, id)
	return 1
end

-- unmerge id: nothing came of it
function ops.unmerge()
	local id = take()
	local row = call('HGET', P .. 'state', id)
	if row and match(call('HGET', P .. 'moving', id) or '', '^into ') then
		local status, _, _, due, _, _, shard = state_split(row)
		call('HDEL', P .. 'moving', id)
		due_put(id, status, due, shard)
		changed(P, {[shard] = true})
	end
end

-- import id state {groups} keys {key value}... entries {entry row}... visits {visit row}... -> 0:
-- it was here before, and went on
function ops.import()
	local id, state = take(), take()
	local moves, groups = select(9, state_split(state)), at
	at = at + #GROUPS
	if call('HEXISTS', P .. 'state', id) == 1 or tonumber(call('HGET', P .. 'left', id) or -1) >= moves then
		return 0
	end
	local key, row = {}, {}
	for _ = 1, take_n() do
		local name, value = take(), take()
		local _, entry = key_split(value)
		call('HSET', P .. 'keys:' .. id, name, value)
		key[entry] = name
	end
	for _ = 1, take_n() do
		local entry, bytes = take(), take()
		local hash, _, date = key_split(call('HGET', P .. 'keys:' .. id, key[entry]))
		entry_put(id, key[entry], hash, entry, date, bytes)
	end
	for _ = 1, take_n() do
		row[1], row[2] = take(), take()
		call('HSET', P .. 'visits', row[1], row[2])
		call('ZADD', P .. 'visit_ids', row[1], row[1])
	end
	changed(P, {[feed_put(id, state, ARGV, groups)] = true})
	return 1
end

local function guids_of(id)
	local guids, entries = {}, {}
	for _, value in ipairs(call('HVALS', P .. 'keys:' .. id)) do
		local _, entry = key_split(value)
		entries[#entries + 1] = entry ~= '0' and entry or nil
	end
	for _, row in ipairs(ask('HMGET', P .. 'entries', entries)) do
		local guid = row and part(row, 'guid', (find(row, 'key=', 1, true)))
		guids[guid or ''] = true
	end
	return guids
end

-- adopt id {keys} {entries} as in import: those that this feed lacks, by key and by guid -> 0: no
-- such feed, -1: it is moving
function ops.adopt()
	local id, value_of, key_of = take(), {}, {}
	if call('HEXISTS', P .. 'state', id) == 0 then
		return 0
	elseif call('HEXISTS', P .. 'moving', id) == 1 then
		return -1
	end
	local guids = guids_of(id)
	for _ = 1, take_n() do
		local name, value = take(), take()
		local _, entry = key_split(value)
		key_of[entry], value_of[entry] = name, value
	end
	for _ = 1, take_n() do
		local entry, row = take(), take()
		local guid = part(row, 'guid', (find(row, 'key=', 1, true)))
		if call('HEXISTS', P .. 'keys:' .. id, key_of[entry]) == 0 and not (guid and guid ~= '' and guids[guid]) then
			local hash, _, date = key_split(value_of[entry])
			entry_put(id, key_of[entry], hash, entry, date, id .. match(row, '^%d+(.*)$'))
		end
	end
	return 1
end

-- remove id moves: all of it, if it is still on this way ("": on none). Entries that went to
-- another feed of this cell stay.
-- -> its address; nil: there is none; -1: it is on another way
function ops.remove()
	local id, moves = take(), take()
	local row, moving = call('HGET', P .. 'state', id), call('HEXISTS', P .. 'moving', id) == 1
	local _, _, _, _, _, _, shard, _, moved, last = state_split(row)
	if not row then
		return false
	elseif moving ~= (moves ~= '') or (moving and tonumber(moves) ~= moved) then
		return -1
	end
	for _, value in ipairs(call('HVALS', P .. 'keys:' .. id)) do
		local _, entry = key_split(value)
		local is = entry ~= '0' and call('HGET', P .. 'entries', entry)
		if is and match(is, '^%d+') == id then
			entry_drop(entry)
		end
	end
	history(P, last, function(visit)
		call('HDEL', P .. 'visits', visit)
		call('ZREM', P .. 'visit_ids', visit)
	end)
	local address = call('HGET', P .. 'address', id)
	for _, name in ipairs(GROUPS) do
		call('HDEL', P .. name, id)
	end
	call('DEL', P .. 'keys:' .. id)
	call('HDEL', P .. 'state', id)
	call('HDEL', P .. 'moving', id)
	call('HDEL', P .. 'adopting', id)
	call('ZREM', P .. 'due:' .. shard, id)
	if moves ~= '' then
		call('HSET', P .. 'left', id, moves)
	end
	changed(P, {[shard] = shard % CELLS == tonumber(match(P, '/(%d+)}')) or nil})
	return address or ''
end

-- ---- retention ---------------------------------------------------------------------------------

-- prune_visits before max -> how many went; a feed's list ends where one went
function ops.prune_visits()
	local before, gone = take_n(), {}
	local ids = call('ZRANGE', P .. 'visit_ids', 0, take_n() - 1)
	for i, row in ipairs(ask('HMGET', P .. 'visits', ids)) do
		if not row or tonumber(match(row, '^%d+ %d+ %d+ %d+ %S+ (%S+)')) < before then
			gone[#gone + 1] = ids[i]
		end
	end
	many('HDEL', P .. 'visits', gone)
	many('ZREM', P .. 'visit_ids', gone)
	return #gone
end

-- prune_entries before max slack -> how many went. Numbers rise with the time they were seen, but
-- for the slack.
function ops.prune_entries()
	local before, max, slack, from, n = take_n(), take_n(), take_n(), 0, 0
	while n < max do
		local ids = call('ZRANGE', P .. 'entry_ids', from, from + 99)
		local young = #ids == 0
		for i, row in ipairs(ask('HMGET', P .. 'entries', ids)) do
			local id, seen, ms = match(row, '^(%d+) (%S+) (%S+)')
			if tonumber(ms) < before and n < max then
				local key = part(row, 'key', (find(row, 'key=', 1, true)))
				call('HSET', P .. 'keys:' .. id, key, match(call('HGET', P .. 'keys:' .. id, key), '^%S+') .. ' 0')
				entry_drop(ids[i])
				n = n + 1
			else
				from = from + 1
			end
			young = young or tonumber(seen) >= before + slack
		end
		if young then
			break
		end
	end
	return n
end
