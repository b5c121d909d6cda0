-- SPDX-License-Identifier: ISC
--
-- What people change, and forgetting.

-- create schema shards shard -> {schema, shards, upgrade, exact_hosts}: as it is then. Older ones are made over by upgrade.lua.
function ops.create()
	if not call('HGET', META, 'schema') then
		call('HSET', META, 'schema', ARGV[2], 'shards', ARGV[3], 'shard', ARGV[4], 'last_feed', 0, 'last_fence', 0, 'last_entry', 0,
			'first_entry', 1, 'entry_n', 0, 'visit_n', 0, 'last_visit', 0)
		call('SET', EPOCH, 1)
	end
	return call('HMGET', META, 'schema', 'shards', 'upgrade', 'exact_hosts')
end

-- A new status or due time: off the wheel where it stood, and on again where it belongs. A lent feed's lease goes on.
local function due_set(id, feed, status, due)
	local name, was = feed_part(feed, 'host'), due_of(feed)
	local lent = lent_by(id, name)
	status = status or call('ZSCORE', STATUS, id) or '0'
	due = due or was
	if lent then
		epoch_rises = true
	else
		line_write()
		wheel_off(id, name, was)
	end
	local front, rest = match(feed, '^(%S+ %S+ %S+ %S+ )%S+( .*)$')
	call('HSET', FEEDS, id, front .. due .. rest)
	if status == '0' then
		call('ZREM', STATUS, id)
		local h = host(name)
		if not lent and h.sole == id then
			lone_put(id, due, h.cool)
		elseif not lent then
			due_put(place_of(id, name), due)
		end
	else
		call('ZADD', STATUS, status, id)
	end
end

-- subscribe shards shard now at_once {url host due members about} ... -> {id existed} ...
-- at_once: those that are subscribed already become due (the list of addresses to fetch).
function ops.subscribe()
	local shards, shard, now, at_once = tonumber(ARGV[2]), tonumber(ARGV[3]), now_of(ARGV[4]), ARGV[5] == '1'
	local out, values = {}, {}
	for i = 6, #ARGV, 5 do
		local url, name, due, members, about = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4]
		local id = call('HGET', URLS, url)
		local existed = id and 1 or 0
		due = due == '0' and int(now) or due
		if not id then
			id = int((call('HINCRBY', META, 'last_feed', 1) - 1) * shards + shard + 1)
			call('HSET', URLS, url, id)
			if about ~= '' then
				call('HSET', GROUPS[4], id, about)
			end
			values[#values + 1] = id
			values[#values + 1] = '- 0 ' .. (about ~= '' and 4 or 0) .. ' 0 ' .. due .. ' 0 0 0 0 0 0 0 0 0\n' .. part_make('host', name) ..
				part_make('created_ms', int(now)) .. part_make('url', url) .. members
			due_put(place_of(id, host_join(name, id)), due)
		elseif at_once then
			many('HSET', FEEDS, values) -- it may be one of these
			values = {}
			due_set(id, call('HGET', FEEDS, id), nil, due)
		end
		out[#out + 1] = id
		out[#out + 1] = existed
	end
	many('HSET', FEEDS, values)
	finish()
	return out
end

-- feed_set id status|- due|- crash_n|- old new: the feed's own members as they were read, and as they shall be. 0: no such feed; -1: they
-- have changed meanwhile, read again.
function ops.feed_set()
	local id, feed = ARGV[2], call('HGET', FEEDS, ARGV[2])
	if not feed then
		return 0
	end
	local before = feed
	if ARGV[6] ~= ARGV[7] then
		local own = own_at(feed)
		if sub(feed, own) ~= ARGV[6] then
			return -1
		end
		feed = sub(feed, 1, own - 1) .. ARGV[7]
	end
	if ARGV[5] ~= '-' then
		local front, rest = match(feed, '^(%S+ %S+ %S+ %S+ %S+ %S+ %S+ %S+ )%S+( .*)$')
		feed = front .. ARGV[5] .. rest
	end
	if ARGV[3] ~= '-' or ARGV[4] ~= '-' then
		due_set(id, feed, ARGV[3] ~= '-' and ARGV[3] or nil, ARGV[4] ~= '-' and ARGV[4] or nil)
	elseif feed ~= before then
		call('HSET', FEEDS, id, feed)
		epoch_rises = lent_by(id, feed_part(feed, 'host')) ~= nil
	end
	finish()
	return 1
end

-- Entries go; their mentions by date are swept when entries are forgotten.
local function entries_drop(rows)
	many('HDEL', ENTRIES, rows)
	call('HINCRBY', META, 'entry_n', 0 - #rows)
	call('HINCRBY', META, 'stale_n', #rows)
end

-- A feed that is not lent goes, with its visits, but for its entries and keys.
local function feed_drop(id, feed)
	local name = feed_part(feed, 'host')
	wheel_off(id, name, due_of(feed))
	local batch = match(feed, '^%S+')
	local line_at, before, lines, first = visit_in(batch, id)
	while line_at do -- down the chain; what is empty is passed over until it is pruned
		call('HSET', VISITS, batch, sub(lines, 1, first) .. sub(lines, first + 1 + #line_at))
		call('HINCRBY', META, 'visit_n', -1)
		batch = before
		line_at, before, lines, first = visit_in(batch, id)
	end
	call('HDEL', ENTRY_N, id)
	call('UNLINK', P .. 'keys:' .. id)
	call('HDEL', URLS, feed_part(feed, 'url'))
	call('HDEL', FEEDS, id)
	call('ZREM', STATUS, id)
	call('ZREM', FAILING, id)
	for _, key in pairs(GROUPS) do
		call('HDEL', key, id)
	end
	host_leave(name, id)
end

-- unsubscribe id: all that was kept of it. 0: no such feed.
function ops.unsubscribe()
	local id, feed = ARGV[2], call('HGET', FEEDS, ARGV[2])
	if not feed then
		return 0
	end
	local fence, m = lent_by(id, feed_part(feed, 'host'))
	if fence then
		local _, counted = place_split(m)
		if counted then
			host_return(counted, 0, 0)
		end
		lent_less(fence, {m})
		epoch_rises = true
	end
	local rows = {}
	for _, v in ipairs(call('HVALS', P .. 'keys:' .. id)) do
		local eid = match(v, '^%x+ (%d+)')
		if eid ~= '0' then
			rows[#rows + 1] = eid
		end
	end
	entries_drop(rows)
	feed_drop(id, feed)
	finish()
	return 1
end

-- The rows of a feed's entries, some at a time, for they may be long: each(entry, key, what is known of it, row or false).
local function entries_each(feed, each)
	local all = call('HGETALL', P .. 'keys:' .. feed)
	for from = 1, #all, 200 do
		local ids = {}
		for i = from, math.min(from + 198, #all), 2 do
			ids[#ids + 1] = match(all[i + 1], '^%x+ (%d+)')
		end
		for k, row in ipairs(ask('HMGET', ENTRIES, ids)) do -- retention's have 0, which no entry has
			each(ids[k], all[from + 2 * k - 2], all[from + 2 * k - 1], row)
		end
	end
end

local function guid_of(row)
	local guid = part(row, 'guid', find(row, 'key=', 1, true))
	return guid ~= '' and guid or nil
end

-- feed_merge from into: what from has and into lacks goes over, the rest of from goes away. 0: done; -1: one of them is lent; else the
-- number of one that is not there.
function ops.feed_merge()
	local from, into, guids, gone, moved = ARGV[2], ARGV[3], {}, {}, 0
	local feed, to = call('HGET', FEEDS, from), call('HGET', FEEDS, into)
	if not feed or not to then
		return tonumber(feed and into or from)
	elseif lent_by(from, feed_part(feed, 'host')) or lent_by(into, feed_part(to, 'host')) then
		return -1
	end
	entries_each(into, function(_, _, _, row)
		local guid = row and guid_of(row)
		if guid then
			guids[guid] = true
		end
	end)
	entries_each(from, function(eid, key, known, row)
		local guid = row and guid_of(row)
		if guid and guids[guid] or call('HSETNX', P .. 'keys:' .. into, key, known) == 0 then
			gone[#gone + 1] = row and eid or nil
		elseif row then
			call('HSET', ENTRIES, eid, into .. match(row, '^%d+(.*)$'))
			moved = moved + 1
		end
	end)
	entries_drop(gone)
	call('HINCRBY', ENTRY_N, into, moved)
	feed_drop(from, feed)
	finish()
	return 0
end

-- control kind now
function ops.control()
	return call('RPUSH', P .. 'controls', ARGV[2] .. ' ' .. int(now_of(ARGV[3])))
end

-- prune_visits before max -> {forgotten, more}: from the oldest on, up to the first that is young enough
function ops.prune_visits()
	local before, max = tonumber(ARGV[2]), tonumber(ARGV[3])
	local n, looked, young = 0, 0, false
	while looked < max and not young do
		local oldest = call('ZRANGE', ORDER, 0, 0)[1]
		if not oldest then
			break
		end
		local lines, kept = call('HGET', VISITS, oldest), 1
		for pos, text in string.gmatch(lines, '()\n([^\n]*)') do
			local at_ms = match(text, '^%d+ %S+ %d+ %d+ %d+ %-?%d+ (%-?%d+)')
			if at_ms and tonumber(at_ms) >= before then
				young = true
				kept = pos
				break
			end
			n = n + (at_ms and 1 or 0)
			looked = looked + 1
		end
		if not young then
			call('HDEL', VISITS, oldest)
			call('ZREM', ORDER, oldest)
		elseif kept > 1 then -- the rest keeps its numbers
			local _, empty = string.gsub(sub(lines, 1, kept - 1), '\n', '')
			call('HSET', VISITS, oldest, string.rep('\n', empty) .. sub(lines, kept))
		end
	end
	if n > 0 then
		call('HINCRBY', META, 'visit_n', -n)
	end
	if looked > 0 then
		local runs, last, first = call('HGETALL', RUNS), 0, call('ZRANGE', ORDER, 0, 0, 'WITHSCORES')[2]
		for i = 1, #runs, 2 do
			last = math.max(last, tonumber(runs[i]))
		end
		for i = 1, #runs, 2 do
			if tonumber(runs[i]) ~= last and (not first or tonumber(runs[i + 1]) < tonumber(first)) then
				call('HDEL', RUNS, runs[i])
			end
		end
	end
	return {n, young and 0 or looked >= max and 1 or 0}
end

-- prune_signs before: of workers, and messages to them; whether the fleet is paused is noted
function ops.prune_signs()
	local all = call('HGETALL', WORKERS)
	for i = 1, #all, 2 do
		if tonumber(part(all[i + 1], 'at_ms')) < tonumber(ARGV[2]) then
			call('HDEL', WORKERS, all[i])
		end
	end
	local key = P .. 'controls'
	local message = call('LINDEX', key, 0)
	while message do
		local kind, at_ms = match(message, '^(%d+) ?(%-?%d*)')
		if tonumber(at_ms or '') and tonumber(at_ms) >= tonumber(ARGV[2]) then
			break
		end
		if kind == '2' or kind == '3' then
			call('HSET', META, 'paused', kind == '2' and 1 or 0)
		end
		call('LPOP', key)
		call('HINCRBY', META, 'controls_gone', 1)
		message = call('LINDEX', key, 0)
	end
end

-- numbers n who keep_ms -> {last number before them, now}: for n new entries. Others who follow the numbers stop below them until they
-- are stored, but no longer than keep_ms, should their taker have died.
function ops.numbers()
	local n, now, taken = tonumber(ARGV[2]), now_of('0'), call('HGETALL', STORING)
	for i = 1, #taken, 2 do
		if tonumber(match(taken[i + 1], '%d+$')) < now then
			call('HDEL', STORING, taken[i])
		end
	end
	local base = call('HINCRBY', META, 'last_entry', n) - n
	if n > 0 then
		call('HSET', STORING, ARGV[3], int(base) .. ' ' .. int(now + tonumber(ARGV[4])))
	end
	return {base, now}
end

-- day_sweep day bytes kept: what stood in the first so many bytes of a day's list is kept only where it is said again here. Lists only
-- grow otherwise, and 0 is the answer where one has not.
function ops.day_sweep()
	local key, bytes = DATES .. ARGV[2], tonumber(ARGV[3])
	if call('STRLEN', key) < bytes then
		return 0
	end
	local rest = ARGV[4] .. call('GETRANGE', key, bytes, -1)
	if rest ~= '' then
		call('SET', key, rest)
	else
		call('DEL', key)
		call('ZREM', DAYS, ARGV[2])
	end
	return 1
end

-- prune_entries before {id} ... -> {forgotten, kept} of these
function ops.prune_entries()
	local before, ids, rows, feeds, kept = tonumber(ARGV[2]), {unpack(ARGV, 3)}, {}, {}, 0
	for i, row in ipairs(ask('HMGET', ENTRIES, ids)) do
		local feed, changed = match(row or '', '^(%d+) %d+ (%d+) ')
		if feed and tonumber(changed) < before then
			local key = part(sub(row, find(row, 'key=', 1, true), -1), 'key')
			local known = call('HGET', P .. 'keys:' .. feed, key)
			if known then
				call('HSET', P .. 'keys:' .. feed, key, match(known, '^%x+') .. ' 0')
			end
			feeds[feed] = (feeds[feed] or 0) + 1
			rows[#rows + 1] = ids[i]
		elseif feed then
			kept = kept + 1
		end
	end
	many('HDEL', ENTRIES, rows)
	for feed, n in pairs(feeds) do
		call('HINCRBY', ENTRY_N, feed, -n)
	end
	call('HINCRBY', META, 'entry_n', 0 - #rows)
	call('HINCRBY', META, 'stale_n', #rows)
	return {#rows, kept}
end
