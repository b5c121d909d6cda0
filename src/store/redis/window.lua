-- SPDX-License-Identifier: ISC
--
-- What people change, and forgetting.

-- migrate wanted create shards shard -> {schema, shards}: one step after the other, each once. -1: there is no store.
local steps = {
	function(shards, shard) -- 0 -> 1
		call('HSET', META, 'shards', shards, 'shard', shard, 'last_feed', 0, 'last_fence', 0, 'last_entry', 0, 'first_entry', 1,
			'entry_n', 0, 'visit_n', 0, 'visits_gone', 0)
		call('HSET', LEASES, LARGE, 'makes Redis keep this hash as a large one: it searches small ones from end to end')
	end,
}

function ops.migrate()
	local wanted, create = tonumber(ARGV[2]), ARGV[3] == '1'
	local schema = tonumber(call('HGET', META, 'schema') or 0)
	if schema == 0 and not create then
		return {-1, 0}
	end
	while schema < wanted do
		schema = schema + 1
		steps[schema](ARGV[4], ARGV[5])
		call('HSET', META, 'schema', schema)
	end
	return {schema, tonumber(call('HGET', META, 'shards'))}
end

-- subscribe shards shard now at_once {url host due members about} ... -> {id existed} ...
-- at_once: those that are subscribed already become due (the list of addresses to fetch).
function ops.subscribe()
	local shards, shard, now, at_once = tonumber(ARGV[2]), tonumber(ARGV[3]), now_of(ARGV[4]), ARGV[5] == '1'
	local out = {}
	for i = 6, #ARGV, 5 do
		local url, name, due, members, about = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4]
		local id = call('HGET', URLS, url)
		local existed = id and 1 or 0
		due = due == '0' and int(now) or due
		if not id then
			id = int((call('HINCRBY', META, 'last_feed', 1) - 1) * shards + shard + 1)
			call('HSET', URLS, url, id)
			call('HSET', FEEDS, id, part_make('host', name) .. part_make('created_ms', int(now)) .. part_make('url', url) .. members)
			if about ~= '' then
				call('HSET', GROUPS[4], id, about)
			end
			call('HSET', WHEEL, id, NEVER .. (about ~= '' and ' 00000000000000 04 0 ' or ' 00000000000000 00 0 ') .. due ..
				' 0 0 0 0 0 0 0 0 ')
			call('ZADD', DUE, due, place_of(id, host_join(name, id)))
		elseif at_once then
			ops.due_set(id, name, nil, due)
		end
		out[#out + 1] = id
		out[#out + 1] = existed
	end
	hosts_write()
	return out
end

-- A new status or due time: off the wheel where it stood, and on again where it belongs. A lent feed's lease goes on.
function ops.due_set(id, name, status, due)
	local wheel, lent = call('HGET', WHEEL, id), call('HEXISTS', LEASES, id) == 1
	status = status or call('ZSCORE', STATUS, id) or '0'
	due = due or due_of(wheel)
	if not lent then
		wheel_off(id, name)
	end
	local fence, rest = match(wheel, '^(%d+) %-?%d+ (.*)$', STATE)
	call('HSET', WHEEL, id, sub(wheel, 1, STATE - 1) .. fence .. ' ' .. due .. ' ' .. rest)
	if status == '0' then
		call('ZREM', STATUS, id)
		if not lent then
			call('ZADD', DUE, due, place_of(id, host(name).sole ~= id and name or nil))
		end
	else
		call('ZADD', STATUS, status, id)
	end
end

-- feed_set id status|- due|- crash_n|- old new: the feed's members as they were read, and as they shall be. 0: no such feed; -1: they
-- have changed meanwhile, read again.
function ops.feed_set()
	local id, old = ARGV[2], call('HGET', FEEDS, ARGV[2])
	if not old then
		return 0
	elseif ARGV[6] ~= ARGV[7] then
		if ARGV[6] ~= old then
			return -1
		end
		call('HSET', FEEDS, id, ARGV[7])
	end
	if ARGV[5] ~= '-' then
		local wheel = call('HGET', WHEEL, id)
		local front, rest = match(wheel, '^(%d+ %-?%d+ %d+ %d+ %d+) %d+ (.*)$', STATE)
		call('HSET', WHEEL, id, sub(wheel, 1, STATE - 1) .. front .. ' ' .. ARGV[5] .. ' ' .. rest)
	end
	if ARGV[3] ~= '-' or ARGV[4] ~= '-' then
		ops.due_set(id, part(old, 'host'), ARGV[3] ~= '-' and ARGV[3] or nil, ARGV[4] ~= '-' and ARGV[4] or nil)
	end
	hosts_write()
	return 1
end

-- unsubscribe id: all that was kept of it. 0: no such feed.
function ops.unsubscribe()
	local id, feed, wheel = ARGV[2], call('HGET', FEEDS, ARGV[2]), call('HGET', WHEEL, ARGV[2])
	if not feed then
		return 0
	end
	local name, lease, gone = part(feed, 'host'), call('HGET', LEASES, id), tonumber(call('HGET', META, 'visits_gone'))
	if lease then
		local fence, counted = match(lease, '^(%d+)@?(.*)$')
		call('HDEL', LEASES, id)
		if counted ~= '' then
			host_return(counted, 0)
		end
		claim_less(fence, 1)
	end
	wheel_off(id, name)
	local line, index = visit_at(wheel and sub(wheel, 1, 19) or NEVER, id, gone)
	while line do -- down the chain; what is empty is passed over until it is pruned
		call('LSET', VISITS, index, '')
		call('HINCRBY', META, 'visit_n', -1)
		line, index = visit_at(sub(line, 1, 19), id, gone)
	end
	local rows, dates = {}, {}
	for _, v in ipairs(call('HVALS', P .. 'keys:' .. id)) do
		local eid = match(v, ' (%d+)$')
		if eid ~= '0' then
			rows[#rows + 1] = eid
			dates[#dates + 1] = fmt('%015d', tonumber(eid))
		end
	end
	many('HDEL', ENTRIES, rows)
	many('HDEL', CONTENTS, rows)
	many('ZREM', DATES, dates)
	call('HINCRBY', META, 'entry_n', 0 - #rows)
	call('HDEL', ENTRY_N, id)
	call('UNLINK', P .. 'keys:' .. id)
	call('HDEL', URLS, part(feed, 'url'))
	call('HDEL', FEEDS, id)
	call('HDEL', WHEEL, id)
	call('ZREM', STATUS, id)
	call('ZREM', FAILING, id)
	for _, key in pairs(GROUPS) do
		call('HDEL', key, id)
	end
	host_leave(name, id)
	hosts_write()
	return 1
end

-- control kind now
function ops.control()
	return call('RPUSH', P .. 'controls', ARGV[2] .. ' ' .. int(now_of(ARGV[3])))
end

-- prune_visits before max -> {forgotten, more}: from the oldest on, up to the first that is young enough
function ops.prune_visits()
	local before, max = tonumber(ARGV[2]), tonumber(ARGV[3])
	local lines, n, live = call('LRANGE', VISITS, 0, max - 1), 0, 0
	for _, line in ipairs(lines) do
		local at_ms = match(line, '^%d+ %d+ %d+ %-?%d+ (%-?%d+)', 21)
		if at_ms and tonumber(at_ms) >= before then
			break
		end
		n = n + 1
		live = live + (at_ms and 1 or 0)
	end
	if n > 0 then
		local gone = call('HINCRBY', META, 'visits_gone', n)
		call('LTRIM', VISITS, n, -1)
		call('HINCRBY', META, 'visit_n', 0 - live)
		local runs, last = call('HGETALL', RUNS), 0
		for i = 1, #runs, 2 do
			last = math.max(last, tonumber(runs[i]))
		end
		for i = 1, #runs, 2 do
			if tonumber(runs[i + 1]) < gone and tonumber(runs[i]) ~= last then
				call('HDEL', RUNS, runs[i])
			end
		end
	end
	return {live, n == max and 1 or 0}
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

-- prune_entries before {id} ... -> {forgotten, kept} of these
function ops.prune_entries()
	local before, ids, rows, dates, feeds, kept = tonumber(ARGV[2]), {unpack(ARGV, 3)}, {}, {}, {}, 0
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
			dates[#dates + 1] = fmt('%015d', tonumber(ids[i]))
		elseif feed then
			kept = kept + 1
		end
	end
	many('HDEL', ENTRIES, rows)
	many('HDEL', CONTENTS, rows)
	many('ZREM', DATES, dates)
	for feed, n in pairs(feeds) do
		call('HINCRBY', ENTRY_N, feed, -n)
	end
	call('HINCRBY', META, 'entry_n', 0 - #rows)
	return {#rows, kept}
end
