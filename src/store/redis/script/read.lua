-- SPDX-License-Identifier: ISC
--
-- Operations that only read; they also run on replicas.

-- url_owner address -> the feed that has it; nil: none
function ops.url_owner()
	return url_owner(next_arg()) or false
end

-- counts {feed}... -> the number of entries of each
function ops.counts()
	local out = {}
	for i = 1, next_int() do
		local n = 0
		for _, value in ipairs(call('HVALS', P .. 'keys:' .. next_arg())) do
			n = n + (match(value, '^%S+ 0') and 0 or 1)
		end
		out[i] = n
	end
	return out
end

-- stats now -> {status 0 ... status 3, failing, due, next due, entries, visits, last entry, last
-- visit, last feed}
function ops.stats()
	local t, n, failing, due_n, first = next_int(), {0, 0, 0, 0}, 0, 0, nil
	for shard = 0, 1023 do
		for _, row in ipairs(call('HVALS', schedule(fmt('%04d', shard)))) do
			local status, due, fail = sub(row, 22, 22), sub(row, 24, 43), sub(row, 66, 75)
			n[status + 1] = n[status + 1] + 1
			failing = failing + (fail ~= '0000000000' and 1 or 0)
			if status == '0' then
				local ms = tonumber(due)
				due_n = due_n + (ms <= t and 1 or 0)
				first = (not first or ms < tonumber(first)) and due or first
			end
		end
	end
	local function last(key)
		return call('ZRANGE', P .. key, -1, -1)[1] or '0'
	end
	local rows = chunk_get(last('visit_ids'))
	return {n[1], n[2], n[3], n[4], failing, due_n, first or '', call('ZCARD', P .. 'entry_ids'),
		call('HGET', P .. 'meta', 'visit_n') or '0', last('entry_ids'), rows[1]
		and int(visit_of(rows[#rows])) or '0', last('feed_ids'),
		call('HGET', P .. 'meta', 'event_clashes') or '0'}
end

-- history visit max -> {row ...}: this visit and earlier ones of its feed, max in all
function ops.history()
	local last, max, out = next_arg(), next_int(), {}
	history(last, function(row)
		out[#out + 1] = row
		return #out == max
	end)
	return out
end

-- visits down after before max -> {row ...} with ids between these two. All rows of the last chunk
-- are returned, so there may be more than max.
function ops.visits()
	local down, after, before, max, out = next_arg() == '1', next_arg(), next_arg(), next_int(), {}
	local names
	if down then
		names = call('ZREVRANGEBYSCORE', P .. 'visit_ids', '(' .. before, '-inf', 'LIMIT', 0, max)
	else
		names = call('ZRANGEBYSCORE', P .. 'visit_ids', chunk_at(after) or '-inf', '(' .. before, 'LIMIT', 0,
			max + 1)
	end
	after, before = tonumber(after), tonumber(before)
	for _, name in ipairs(names) do
		local rows = chunk_get(name)
		for i = 1, #rows do
			local row = rows[down and #rows + 1 - i or i]
			local id = visit_of(row)
			out[#out + 1] = id > after and id < before and row or nil
		end
		if #out >= max or (down and tonumber(name) <= after) then
			break
		end
	end
	return out
end

-- id_before name pattern ms -> the last id whose time is before ms, by binary search
function ops.id_before()
	local name, pattern, ms = next_arg(), next_arg(), next_int()
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

-- dates after before -> {entry ...}, {date ...} of the entries with ids between these two
function ops.dates()
	local ids = call('ZRANGEBYSCORE', P .. 'entry_ids', '(' .. next_arg(), '(' .. next_arg())
	local keys, dates = read_batched('ZMSCORE', P .. 'entry_dates', ids), {}
	for i, date in ipairs(keys) do
		dates[i] = date or '0'
	end
	return {ids, dates}
end

-- ---- the deep check ----------------------------------------------------------------------------

local function check_feed(report, id, s)
	if not s then
		return report('feed ', id, ': its schedule row is malformed')
	end
	for _, value in ipairs(call('HVALS', P .. 'keys:' .. id)) do
		local _, entry = key_value_split(value)
		if entry ~= '0' and call('HEXISTS', P .. 'entries', entry) == 0 then
			report('feed ', id, ': a key refers to entry ', entry, ', which does not exist')
		end
	end
end

local function check_entry(report, state, entry, row)
	local id, key = match(row, '^%d+'), entry_part(row, 'key')
	local _, known, date = key_value_split(key and call('HGET', P .. 'keys:' .. id, key))
	if not state[id] then
		report('entry ', entry, ': no feed ', id)
	elseif known ~= entry then
		report('entry ', entry, ' of feed ', id, ': its key does not refer to it')
	elseif tonumber(date) ~= tonumber(call('ZSCORE', P .. 'entry_dates', entry) or 0) then
		report('entry ', entry, ' of feed ', id, ': entry_dates has another date')
	end
	for _, revision in ipairs(call('HKEYS', P .. 'revisions:' .. entry)) do
		if tonumber(revision) >= tonumber(match(row, '^%d+ %S+ %S+ (%d+)')) then
			report('entry ', entry, ': revision ', revision, ' is not an earlier version')
		end
	end
end

-- check -> {finding ...}, {id shard host address ...} of the feeds and, with id 0, of the hosts
function ops.check()
	local out, feeds, state, feed_n, visit_n = {}, {}, {}, 0, 0
	local function report(...)
		out[#out + 1] = table.concat({...})
	end
	local function compare(what, a, b)
		if a ~= b then
			report(what, ': ', a, ' instead of ', b)
		end
	end
	for shard = 0, 1023 do
		local name = fmt('%04d', shard)
		local all = call('HGETALL', schedule(name))
		for i = 1, #all, 2 do
			local id, s, groups = all[i], schedule_row_split(all[i + 1]), feed_row_get(all[i])
			state[id], feed_n = true, feed_n + 1
			check_feed(report, id, s)
			if not groups then
				report('feed ', id, ': it has no address')
			elseif groups.shard ~= name then
				report('feed ', id, ': it is in the schedule of shard ', name, ', but its shard is ',
					groups.shard)
			elseif s then
				feeds[#feeds + 1], feeds[#feeds + 2], feeds[#feeds + 3], feeds[#feeds + 4] = id,
					int(shard), s.host, groups[ADDRESS]
			end
		end
		for _, host in ipairs(call('HKEYS', P .. 'hosts:' .. name)) do
			feeds[#feeds + 1], feeds[#feeds + 2], feeds[#feeds + 3], feeds[#feeds + 4] = '0', int(shard),
				host, ''
		end
	end
	for _, id in ipairs(call('HKEYS', P .. 'feed')) do
		if not state[id] then
			report('feed row: no feed ', id)
		end
	end
	local entries, entry_n = call('HGETALL', P .. 'entries'), 0
	for i = 1, #entries, 2 do
		check_entry(report, state, entries[i], entries[i + 1])
		entry_n = entry_n + 1
	end
	for _, text in ipairs(call('HVALS', P .. 'visits')) do
		for _, row in ipairs(chunk_split(text)) do
			visit_n = visit_n + 1
			if not state[match(row, '^%d+ (%d+)')] then
				report('visits: no feed ', match(row, '^%d+ (%d+)'))
			end
		end
	end
	compare('feed_ids', call('ZCARD', P .. 'feed_ids'), feed_n)
	compare('entry_ids', call('ZCARD', P .. 'entry_ids'), entry_n)
	compare('entry_dates', call('ZCARD', P .. 'entry_dates'), entry_n)
	compare('visit_ids', call('ZCARD', P .. 'visit_ids'), call('HLEN', P .. 'visits'))
	compare('visit_n', tonumber(call('HGET', P .. 'meta', 'visit_n') or 0), visit_n)
	return {out, feeds}
end

-- check_meta -> {finding ...}, and the last ids of entries, visits, feeds
function ops.check_meta()
	local out, last = {}, tonumber(call('HGET', P .. 'meta', 'lease_id') or 0)
	for s, lease in pairs((lease_shards_read())) do
		if lease ~= '0' and call('HEXISTS', P .. 'workers', lease) == 0 then
			out[#out + 1] = 'shard ' .. s .. ': held by lease ' .. lease .. ', which does not exist'
		end
	end
	for _, id in ipairs(call('HKEYS', P .. 'workers')) do
		if tonumber(id) > last then
			out[#out + 1] = 'lease_id is ' .. last .. ', but lease ' .. id .. ' exists'
		end
	end
	return {out, unpack(call('HMGET', P .. 'meta', 'entry_id', 'visit_id', 'feed_id'))}
end

-- match_summary -> {order, waiting, dead, row of the first that waits or ''}...
function ops.match_summary()
	local out = {}
	for _, order in ipairs(call('SMEMBERS', P .. 'match_orders')) do
		local key = P .. 'matches:' .. order
		out[#out + 1] = {order, call('ZCARD', key), call('ZCARD', P .. 'dead_matches:' .. order),
			call('ZRANGE', key, 0, 0)[1] or ''}
	end
	return out
end
