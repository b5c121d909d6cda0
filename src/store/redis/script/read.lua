-- SPDX-License-Identifier: ISC
--
-- What is only read.

-- counts {feed}... -> how many entries each has
function ops.counts()
	local out = {}
	for i = 1, take_n() do
		local n = 0
		for _, value in ipairs(call('HVALS', P .. 'keys:' .. take())) do
			n = n + (match(value, '^%S+ 0') and 0 or 1)
		end
		out[i] = n
	end
	return out
end

-- stats now -> {status 0 ... status 3, failing, due, next due, entries, visits, last entry, last
-- visit, last feed}
function ops.stats()
	local t, n, failing, due_n, first, last = take_n(), {0, 0, 0, 0}, 0, 0, nil, 0
	local all = call('HGETALL', P .. 'state')
	for i = 1, #all, 2 do
		local status, fail, due = match(all[i + 1], '^(%d) (%d+) %d+ (%S+)')
		n[status + 1] = n[status + 1] + 1
		failing = failing + (tonumber(fail) > 0 and 1 or 0)
		last = math.max(last, tonumber(all[i]))
		if status == '0' then
			local ms = tonumber(due)
			due_n = due_n + (ms <= t and 1 or 0)
			first = (not first or ms < tonumber(first)) and due or first
		end
	end
	local entry, visit = call('ZRANGE', P .. 'entry_ids', -1, -1)[1], call('ZRANGE', P .. 'visit_ids', -1, -1)[1]
	return {n[1], n[2], n[3], n[4], failing, due_n, first or '', call('HLEN', P .. 'entries'), call('HLEN', P .. 'visits'),
		entry or '0', visit or '0', int(last)}
end

-- export id -> {state, groups..., {key value ...}, {entry row ...}, {visit row ...}}, as import
-- takes it; nil: no such feed
function ops.export()
	local id, entries, rows, visits = take(), {}, {}, {}
	local state = call('HGET', P .. 'state', id)
	if not state then
		return false
	end
	local out, keys = {state}, call('HGETALL', P .. 'keys:' .. id)
	for _, name in ipairs(GROUPS) do
		out[#out + 1] = call('HGET', P .. name, id) or ''
	end
	for i = 2, #keys, 2 do
		local entry = match(keys[i], '^%S+ (%d+)')
		entries[#entries + 1] = entry ~= '0' and entry or nil
	end
	for i, row in ipairs(ask('HMGET', P .. 'entries', entries)) do
		if row and match(row, '^%d+') == id then
			rows[#rows + 1], rows[#rows + 2] = entries[i], row
		end
	end
	history(P, (select(10, state_split(state))), function(visit, row)
		visits[#visits + 1], visits[#visits + 2] = visit, row
	end)
	out[#out + 1], out[#out + 2], out[#out + 3] = keys, rows, visits
	return out
end

-- history visit max -> {visit row ...}: it and those before it of its feed
function ops.history()
	local last, max, out = take_n(), take_n(), {}
	history(P, last, function(visit, row)
		out[#out + 1], out[#out + 2] = visit, row
		return #out == 2 * max
	end)
	return out
end

-- since name pattern ms -> the last number whose time is before ms, by halving
function ops.since()
	local name, pattern, ms = take(), take(), take_n()
	local ids, lo, hi = P .. (name == 'visits' and 'visit_ids' or 'entry_ids'), 0, nil
	hi = call('ZCARD', ids)
	while lo < hi do
		local mid = math.floor((lo + hi) / 2)
		local row = call('HGET', P .. name, call('ZRANGE', ids, mid, mid)[1])
		if row and tonumber(match(row, pattern)) < ms then
			lo = mid + 1
		else
			hi = mid
		end
	end
	return lo > 0 and call('ZRANGE', ids, lo - 1, lo - 1)[1] or '0'
end

-- dates after before -> {entry ...}, {date ...}: of entries between these numbers
function ops.dates()
	local ids = call('ZRANGEBYSCORE', P .. 'entry_ids', '(' .. take(), '(' .. take())
	local keys, dates = ask('ZMSCORE', P .. 'entry_dates', ids), {}
	for i, date in ipairs(keys) do
		dates[i] = date or '0'
	end
	return {ids, dates}
end

-- ---- the deep check ----------------------------------------------------------------------------

local function same(out, what, a, b)
	if a ~= b then
		out[#out + 1] = what .. ': ' .. a .. ', and ' .. b .. ' rows'
	end
end

local function check_feed(out, id, state, own_cell)
	local status, _, _, due, _, _, shard = state_split(state)
	local score = shard and call('ZSCORE', P .. 'due:' .. shard, id)
	local moving = call('HEXISTS', P .. 'moving', id) == 1
	if not status then
		out[#out + 1] = 'feed ' .. id .. ': its state cannot be read'
	elseif moving then
		return
	elseif shard % CELLS ~= own_cell then
		out[#out + 1] = 'feed ' .. id .. ': it lies in cell ' .. own_cell .. ', not in that of shard ' .. shard
	elseif (status == '0') ~= (score and true or false) or (score and tonumber(score) ~= tonumber(due)) then
		out[#out + 1] = 'feed ' .. id .. ': it is in the schedule as ' .. (score or 'nothing') .. ', not as ' .. due
	end
	if call('HEXISTS', P .. 'address', id) == 0 then
		out[#out + 1] = 'feed ' .. id .. ': it has no address'
	end
end

-- check -> {finding ...}, {id shard host address ...} of its feeds, for what other cells know of
-- them
function ops.check()
	local out, feeds, state = {}, {}, {}
	local own_cell, all = tonumber(match(P, '/(%d+)}')), call('HGETALL', P .. 'state')
	local active, due_n = 0, 0
	for i = 1, #all, 2 do
		local id, row = all[i], all[i + 1]
		state[id] = row
		check_feed(out, id, row, own_cell)
		if call('HEXISTS', P .. 'moving', id) == 0 then
			local status, _, _, _, _, _, shard, host = state_split(row)
			active = active + (status == '0' and 1 or 0)
			feeds[#feeds + 1], feeds[#feeds + 2], feeds[#feeds + 3] = id, int(shard or 0), host or ''
			feeds[#feeds + 1] = call('HGET', P .. 'address', id) or ''
		end
	end
	for shard = own_cell, 1023, CELLS do
		due_n = due_n + call('ZCARD', P .. 'due:' .. shard)
		for _, host in ipairs(call('HKEYS', P .. 'hosts:' .. shard)) do
			feeds[#feeds + 1], feeds[#feeds + 2], feeds[#feeds + 3], feeds[#feeds + 4] = '0', int(shard), host, ''
		end
	end
	same(out, 'schedule', due_n, active)
	for _, name in ipairs(GROUPS) do
		for _, id in ipairs(call('HKEYS', P .. name)) do
			if not state[id] then
				out[#out + 1] = name .. ': no feed ' .. id
			end
		end
	end
	local entries = call('HGETALL', P .. 'entries')
	for i = 1, #entries, 2 do
		local id = match(entries[i + 1], '^%d+')
		local key = part(entries[i + 1], 'key', (find(entries[i + 1], 'key=', 1, true)))
		local known = key and call('HGET', P .. 'keys:' .. id, key)
		if not state[id] then
			out[#out + 1] = 'entry ' .. entries[i] .. ': no feed ' .. id
		elseif not known or match(known, '^%S+ (%d+)') ~= entries[i] then
			out[#out + 1] = 'entry ' .. entries[i] .. ' of feed ' .. id .. ': its key is not known'
		elseif tonumber(match(known, '%S+$')) ~= tonumber(call('ZSCORE', P .. 'entry_dates', entries[i]) or 0) then
			out[#out + 1] = 'entry ' .. entries[i] .. ' of feed ' .. id .. ': it is listed under another date'
		end
	end
	for id in pairs(state) do
		for _, value in ipairs(call('HVALS', P .. 'keys:' .. id)) do
			local entry = match(value, '^%S+ (%d+)')
			if entry ~= '0' and call('HEXISTS', P .. 'entries', entry) == 0 then
				out[#out + 1] = 'feed ' .. id .. ': a key of entry ' .. entry .. ', which is not there'
			end
		end
	end
	for _, row in ipairs(call('HVALS', P .. 'visits')) do
		if not state[match(row, '^%d+')] then
			out[#out + 1] = 'visits: no feed ' .. match(row, '^%d+')
		end
	end
	local entry_n, visit_n = call('HLEN', P .. 'entries'), call('HLEN', P .. 'visits')
	same(out, 'entry_ids', call('ZCARD', P .. 'entry_ids'), entry_n)
	same(out, 'entry_dates', call('ZCARD', P .. 'entry_dates'), entry_n)
	same(out, 'visit_ids', call('ZCARD', P .. 'visit_ids'), visit_n)
	return {out, feeds}
end

-- check_meta -> {finding ...}, {shard lease epoch...} of those that are not stale, lease ids and
-- counters are checked here
function ops.check_meta()
	local out, shards, all = {}, {}, call('HGETALL', P .. 'shards')
	local last = tonumber(call('HGET', P .. 'meta', 'lease_id') or 0)
	for i = 1, #all, 2 do
		local lease, epoch = match(all[i + 1], '^(%d+) (%d+) ')
		if lease ~= '0' and call('HEXISTS', P .. 'workers', lease) == 0 then
			out[#out + 1] = 'shard ' .. all[i] .. ': worker ' .. lease .. ' has no lease'
		elseif call('SISMEMBER', P .. 'stale', all[i]) == 0 then
			shards[#shards + 1], shards[#shards + 2] = all[i], lease .. ' ' .. epoch
		end
	end
	for _, id in ipairs(call('HKEYS', P .. 'workers')) do
		if tonumber(id) > last then
			out[#out + 1] = 'lease_id is ' .. last .. ', and lease ' .. id .. ' is there'
		end
	end
	return {out, shards, call('HGET', P .. 'meta', 'entry_id') or '0', call('HGET', P .. 'meta', 'visit_id') or '0',
		call('HGET', P .. 'meta', 'feed_id') or '0'}
end
