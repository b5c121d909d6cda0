-- SPDX-License-Identifier: ISC
--
-- Operations that write one cell: feeds are created, changed, merged and removed.

-- create {id row feed}... -> per feed 1: it exists now, 0: another process took its address before
-- (void)
function ops.create()
	local answer, shards = {}, {}
	for i = 1, take_n() do
		local id, row, feed = take(), take(), take()
		local shard = sub(feed, 1, 4)
		answer[i] = 1
		if call('SISMEMBER', P .. 'void', id) == 1 then
			answer[i] = 0
		elseif call('HSETNX', P .. 'feed', id, feed) == 1 then
			call('ZADD', P .. 'feed_ids', id, id)
			call('HSET', schedule(shard), id, row)
			shards[shard] = true
		end
	end
	changed(shards)
	return answer
end

-- adopting id address: a commit will give the feed this address
function ops.adopting()
	local id, url = take(), take()
	call('HSET', P .. 'adopting', id, url)
end

-- void id address -> 1: the feed exists and has this address; 0: it never will
function ops.void()
	local id, url = take(), take()
	local groups = groups_get(id)
	if groups and url_of(groups[ADDRESS]) == url then
		return 1
	elseif not groups then
		call('SADD', P .. 'void', id)
	elseif call('HGET', P .. 'adopting', id) == url then
		call('HDEL', P .. 'adopting', id)
	end
	return 0
end

-- set id status due crash own_was own -> 1: done, 0: no such feed, -1: own is not own_was any more,
-- -2: the feed is being merged. "" leaves status, due or crash as it is.
function ops.set()
	local id, status, due, crash, own_was, own = take(), take(), take(), take(), take(), take()
	local s = state_get(id)
	if not s then
		return 0
	elseif call('HEXISTS', P .. 'merging', id) == 1 then
		return -2
	elseif own ~= own_was then
		local groups = groups_get(id)
		if groups[OWN] ~= own_was then
			return -1
		end
		groups[OWN] = own
		groups_put(id, groups)
	end
	s.status, s.due, s.crash = status ~= '' and status or s.status, due ~= '' and due or s.due, crash ~= '' and crash or s.crash
	state_put(id, s)
	if status ~= '' or due ~= '' then
		changed({[s.shard] = true})
	end
	return 1
end

-- crashed id max: a visit of the feed killed a worker; after max of them the feed is quarantined
function ops.crashed()
	local id, max = take(), take_n()
	local s = state_get(id)
	if s then
		s.crash = fmt('%010d', s.crash + 1)
		s.status = s.status == '0' and tonumber(s.crash) >= max and '3' or s.status -- FW_FEED_QUARANTINED
		state_put(id, s)
		changed({[s.shard] = true})
	end
end

-- ---- rows of another store ---------------------------------------------------------------------

-- load_entry feed key known [row]: without a row only the key is stored. Existing entries stay.
function ops.load_entry()
	local id, key, known, row = take(), take(), take(), take()
	local hash, entry, date = known_split(known)
	if call('HEXISTS', P .. 'feed', id) == 0 or call('HEXISTS', P .. 'keys:' .. id, key) == 1 or call('ZSCORE', P .. 'entry_ids', entry) then
		return
	elseif row then
		entry_put(id, key, hash, entry, date, row)
	else
		call('HSET', P .. 'keys:' .. id, key, known)
	end
end

-- load_visit feed visit row: inserted in order of id. An existing visit stays.
function ops.load_visit()
	local id, visit, row = take(), take(), take()
	local s, v, name, rows = state_get(id), tonumber(visit), chunk_at(visit)
	local last, nth = rows[#rows] and visit_of(rows[#rows]) or 0, #rows + 1
	while nth > 1 and visit_of(rows[nth - 1]) > v do
		nth = nth - 1
	end
	if not s or (nth > 1 and visit_of(rows[nth - 1]) == v) then
		return
	elseif v > last and #rows >= CHUNK then
		name, rows, nth = visit, {}, 1
	end
	table.insert(rows, nth, (string.gsub(row, '^(%d+ %d+) 0 ', '%1 ' .. s.last .. ' ', 1)))
	chunk_put(name or visit, rows)
	call('HINCRBY', P .. 'meta', 'visit_n', 1)
	s.last = fmt(NUMBER, v)
	state_put(id, s)
end

-- ---- merging and removing ----------------------------------------------------------------------

-- merge id into -> 1: commits of this feed wait now, 0: no such feed, -1: it is being merged into
-- another one
function ops.merge()
	local id, into = take(), take()
	local merging = call('HGET', P .. 'merging', id)
	if call('HEXISTS', P .. 'feed', id) == 0 then
		return 0
	elseif merging then
		return merging == into and 1 or -1
	end
	call('HSET', P .. 'merging', id, into)
	return 1
end

-- unmerge id: the merge failed
function ops.unmerge()
	call('HDEL', P .. 'merging', take())
end

-- adopt id {key value}... {entry row}...: store the entries that this feed lacks, by key and by
-- guid -> 1: done, 0: no such feed, -1: it is being merged
function ops.adopt()
	local id, value_of, key_of, guids, entries = take(), {}, {}, {}, {}
	if call('HEXISTS', P .. 'feed', id) == 0 then
		return 0
	elseif call('HEXISTS', P .. 'merging', id) == 1 then
		return -1
	end
	for _, value in ipairs(call('HVALS', P .. 'keys:' .. id)) do
		local _, entry = known_split(value)
		entries[#entries + 1] = entry ~= '0' and entry or nil
	end
	for _, row in ipairs(ask('HMGET', P .. 'entries', entries)) do
		guids[row and entry_part(row, 'guid') or ''] = true
	end
	for _ = 1, take_n() do
		local name, value = take(), take()
		local _, entry = known_split(value)
		key_of[entry], value_of[entry] = name, value
	end
	for _ = 1, take_n() do
		local entry, row = take(), take()
		local guid = entry_part(row, 'guid') or ''
		if call('HEXISTS', P .. 'keys:' .. id, key_of[entry]) == 0 and (guid == '' or not guids[guid]) then
			local hash, _, date = known_split(value_of[entry])
			entry_put(id, key_of[entry], hash, entry, date, id .. match(row, '^%d+(.*)$'))
		end
	end
	return 1
end

-- remove id into: remove the feed and its rows, if it is being merged into that feed ("": into
-- none). Entries that another feed of this cell adopted stay. -> its address; nil: no such feed;
-- -1: it is being merged otherwise
function ops.remove()
	local id, into = take(), take()
	local s, groups = state_get(id), groups_get(id)
	if not s then
		return false
	elseif (call('HGET', P .. 'merging', id) or '') ~= into then
		return -1
	end
	for _, value in ipairs(call('HVALS', P .. 'keys:' .. id)) do
		local _, entry = known_split(value)
		local row = entry ~= '0' and call('HGET', P .. 'entries', entry)
		if row and match(row, '^%d+') == id then
			entry_drop(entry)
		end
	end
	history(s.last, function(_, name, rows, nth)
		table.remove(rows, nth)
		chunk_put(name, rows)
		call('HINCRBY', P .. 'meta', 'visit_n', -1)
	end)
	call('HDEL', schedule(s.shard), id)
	for _, name in ipairs({'feed', 'merging', 'adopting'}) do
		call('HDEL', P .. name, id)
	end
	call('ZREM', P .. 'feed_ids', id)
	call('DEL', P .. 'keys:' .. id)
	changed({[s.shard] = true})
	return url_of(groups[ADDRESS])
end

-- ---- retention ---------------------------------------------------------------------------------

local YOUNG = 4

-- prune_visits before max -> the number removed. A feed's list ends at a removed visit. Ids mostly
-- rise with time, so the walk ends after YOUNG chunks without old visits.
function ops.prune_visits()
	local before, max, n, young = take_n(), take_n(), 0, 0
	for _, name in ipairs(call('ZRANGE', P .. 'visit_ids', 0, max + YOUNG)) do
		local rows, kept = chunk_get(name), {}
		for _, row in ipairs(rows) do
			if tonumber(match(row, '^%d+ %d+ %d+ %d+ %d+ %S+ (%S+)')) < before and n < max then
				n = n + 1
			else
				kept[#kept + 1] = row
			end
		end
		if #kept < #rows then
			chunk_put(name, kept)
		else
			young = young + 1
		end
		if n == max or young == YOUNG then
			break
		end
	end
	call('HINCRBY', P .. 'meta', 'visit_n', int(-n))
	return n
end

-- prune_entries before max slack -> the number removed. Ids rise with the time that entries were
-- first seen, except for differences up to the slack, so the walk ends at an entry seen after before
-- plus slack.
function ops.prune_entries()
	local before, max, slack, from, n = take_n(), take_n(), take_n(), 0, 0
	while n < max do
		local ids = call('ZRANGE', P .. 'entry_ids', from, from + 99)
		local young = #ids == 0
		for i, row in ipairs(ask('HMGET', P .. 'entries', ids)) do
			local id, seen, ms = match(row, '^(%d+) (%S+) (%S+)')
			if tonumber(ms) < before and n < max then
				local key = entry_part(row, 'key')
				call('HSET', P .. 'keys:' .. id, key, known_split(call('HGET', P .. 'keys:' .. id, key)) .. ' 0')
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
