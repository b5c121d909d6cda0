-- SPDX-License-Identifier: ISC
--
-- What only looks: it works on a full server and on a replica too.

-- Feeds in DUE that are due at that time, but were put off until after it: how many, and the earliest time they wake.
local function moved_behind(upto)
	local n, wake = 0, nil
	for _, m in ipairs(call('ZRANGEBYSCORE', MOVED, '-inf', int(upto))) do
		local score = tonumber(call('ZSCORE', DUE, m) or upto)
		if score > upto then
			n = n + 1
			wake = math.min(wake or score, score)
		end
	end
	return n, wake
end

local function first_of(key)
	local first = call('ZRANGE', key, 0, 0, 'WITHSCORES')
	return first[1], first[2] and tonumber(first[2])
end

local function least(a, b)
	return a and b and math.min(a, b) or a or b
end

-- stats now shards shard -> {feeds, paused, gone, quarantined, failing, lent, due, next or '', entries, visits, last feed, entry, visit}
function ops.stats()
	local now = now_of(ARGV[2])
	local m, next_ms = first_of(DUE)
	local due = call('ZCOUNT', DUE, '-inf', int(now)) + (moved_behind(now)) + call('ZCOUNT', PARKED, '-inf', int(now))
	local _, moved = first_of(MOVED)
	local _, parked = first_of(PARKED)
	if m and call('ZSCORE', MOVED, m) then
		next_ms = nil -- MOVED tells
	end
	next_ms = least(least(next_ms, moved), parked)
	local shards, shard, last_feed, last_entry, last_visit = tonumber(ARGV[3]), tonumber(ARGV[4]), 0, 0, call('LLEN', VISITS)
	for seq = tonumber(call('HGET', META, 'last_feed')), 1, -1 do
		last_feed = (seq - 1) * shards + shard + 1
		if call('HEXISTS', FEEDS, int(last_feed)) == 1 then
			break
		end
		last_feed = 0
	end
	if call('ZCARD', DATES) > 0 and shard == 0 then -- the counter of all shards
		last_entry = tonumber(call('HGET', META, 'last_entry'))
		while shards == 1 and call('HEXISTS', ENTRIES, int(last_entry)) == 0 do
			last_entry = last_entry - 1
		end
		last_entry = last_entry * shards
	end
	while last_visit > 0 and call('LINDEX', VISITS, last_visit - 1) == '' do
		last_visit = last_visit - 1
	end
	if last_visit > 0 then
		last_visit = (last_visit - 1 + tonumber(call('HGET', META, 'visits_gone'))) * shards + shard + 1
	end
	return {call('HLEN', FEEDS), call('ZCOUNT', STATUS, 1, 1), call('ZCOUNT', STATUS, 2, 2), call('ZCOUNT', STATUS, 3, 3),
		call('ZCARD', FAILING), call('HLEN', LEASES) - call('HEXISTS', LEASES, LARGE), due, next_ms and int(next_ms) or '',
		tonumber(call('HGET', META, 'entry_n')), tonumber(call('HGET', META, 'visit_n')), last_feed, last_entry, last_visit}
end

-- pending before -> {n, wake or ''}
function ops.pending()
	local before = tonumber(ARGV[2])
	local n, wake = moved_behind(before)
	local _, first = first_of(DUE)
	if first and first <= before then
		wake = first
	end
	n = n + call('ZCOUNT', DUE, '-inf', ARGV[2]) + call('ZCOUNT', PARKED, '-inf', ARGV[2])
	local leases, ids, fences = call('HGETALL', LEASES), {}, {}
	for i = 1, #leases, 2 do
		ids[#ids + 1] = leases[i]
	end
	for i, wheel in ipairs(ask('HMGET', WHEEL, ids)) do
		if wheel and tonumber(due_of(wheel)) <= before then
			n = n + 1
			fences[match(leases[i * 2], '^%d+')] = true
		end
	end
	for fence in pairs(fences) do
		wake = least(wake, tonumber(call('ZSCORE', CLAIMS, fence) or nil))
	end
	return {n, wake and int(wake) or ''}
end

-- history place id max -> {lines, place, numbers}: of one feed's visits, newest first
function ops.history()
	local place, id, gone, out, numbers = ARGV[2], ARGV[3], tonumber(call('HGET', META, 'visits_gone') or 0), {}, {}
	while #out < tonumber(ARGV[4]) do
		local line, index = visit_at(place, id, gone)
		if not line then
			place = NEVER
			break
		end
		out[#out + 1] = line
		numbers[#numbers + 1] = int(gone + index + 1)
		place = sub(line, 1, 19)
	end
	return {out, place, numbers}
end

-- check {id} ... -> sentences: each active feed is in exactly one place
function ops.check_feeds()
	local ids, out = {unpack(ARGV, 2)}, {}
	local feeds, wheel = ask('HMGET', FEEDS, ids), ask('HMGET', WHEEL, ids)
	for i, id in ipairs(ids) do
		if feeds[i] and not wheel[i] then
			out[#out + 1] = 'feed ' .. id .. ': not on the wheel'
		elseif wheel[i] and not feeds[i] then
			out[#out + 1] = 'wheel: no feed ' .. id
		elseif feeds[i] then
			local name, active = part(feeds[i], 'host'), not call('ZSCORE', STATUS, id)
			local alone, counted = call('ZSCORE', DUE, id), call('ZSCORE', DUE, id .. '@' .. name)
			local parked, lent = call('ZSCORE', PARKED, id), call('HGET', LEASES, id)
			local waits = (alone and 1 or 0) + (counted and 1 or 0) + (parked and 1 or 0)
			local sole = match(call('HGET', HOSTS, name) or '', '%d+$')
			if active and waits + (lent and 1 or 0) == 0 then
				out[#out + 1] = 'feed ' .. id .. ': active, but neither waiting nor lent'
			elseif waits + (lent and 1 or 0) > 1 then
				out[#out + 1] = 'feed ' .. id .. ': in line more than once'
			elseif not active and waits > 0 then
				out[#out + 1] = 'feed ' .. id .. ': waiting, but not active'
			end
			local uncounted = alone or lent and not find(lent, '@', 1, true)
			if (uncounted and sole ~= id) or ((counted or lent and not uncounted) and sole == id) then
				out[#out + 1] = 'feed ' .. id .. ': counted by its host, or not, against what it should'
			end
			if (parked == false) ~= (call('ZSCORE', PARKED .. ':' .. name, id) == false) then
				out[#out + 1] = 'feed ' .. id .. ': half parked'
			end
			local m = alone and id or id .. '@' .. name
			local wake, moved = alone or counted, call('ZSCORE', MOVED, m)
			if wake and (moved or wake) ~= due_of(wheel[i]) then
				out[#out + 1] = 'feed ' .. id .. ': waits for another time than it is due'
			elseif moved and not wake then
				out[#out + 1] = 'feed ' .. id .. ': put off, but not waiting'
			end
		end
	end
	return out
end

-- check_hosts cursor -> {cursor, sentences}: budgets, over a part of the hosts
function ops.check_hosts()
	local page, out, busy, turns = call('HSCAN', HOSTS, ARGV[2], 'COUNT', 1000), {}, {}, {}
	for _, lease in ipairs(call('HVALS', LEASES)) do
		local name = match(lease, '@(.*)$')
		if name then
			busy[name] = (busy[name] or 0) + 1
		end
	end
	for _, m in ipairs(call('ZRANGE', MOVED, 0, -1)) do
		local name = match(m, '@(.*)$')
		if name then
			turns[name] = (turns[name] or 0) + 1
		end
	end
	for i = 1, #page[2], 2 do
		local name = page[2][i]
		local h = {match(page[2][i + 1], '^(%d+) (%d+) (%d+) (%d+)')}
		local parked = call('ZCARD', PARKED .. ':' .. name)
		local function same(what, counts, is)
			if tonumber(counts) ~= is then
				out[#out + 1] = 'host ' .. name .. ': has ' .. is .. ' ' .. what .. ', counts ' .. tostring(counts)
			end
		end
		same('lent', h[2], busy[name] or 0)
		same('with the turn', h[3], turns[name] or 0)
		same('parked', h[4], parked)
		if parked > 0 and (busy[name] or 0) + (turns[name] or 0) == 0 then
			out[#out + 1] = 'host ' .. name .. ': feeds wait, and none has its turn'
		end
	end
	return {page[1], out}
end

-- check_rest -> sentences: what is counted, and claims
function ops.check_rest()
	local out, fences, left = {}, {}, call('HGETALL', CLAIM_LEFT)
	for _, lease in ipairs(call('HVALS', LEASES)) do
		local fence = match(lease, '^%d+')
		if fence then
			fences[fence] = (fences[fence] or 0) + 1
		end
	end
	for i = 1, #left, 2 do
		if (fences[left[i]] or 0) ~= tonumber(left[i + 1]) then
			out[#out + 1] = 'claim ' .. left[i] .. ': holds ' .. (fences[left[i]] or 0) .. ' leases, counts ' .. left[i + 1]
		end
		if not call('ZSCORE', CLAIMS, left[i]) then
			out[#out + 1] = 'claim ' .. left[i] .. ': never ends'
		end
		fences[left[i]] = nil
	end
	for fence in pairs(fences) do
		out[#out + 1] = 'leases: no claim holds ' .. fence
	end
	local function same(what, counts, is)
		if tonumber(counts or 0) ~= is then
			out[#out + 1] = 'meta: counts ' .. tostring(counts) .. ' ' .. what .. ', there are ' .. is
		end
	end
	same('entries', call('HGET', META, 'entry_n'), call('HLEN', ENTRIES))
	same('entries by date', call('HGET', META, 'entry_n'), call('ZCARD', DATES))
	same('addresses', call('HLEN', URLS), call('HLEN', FEEDS))
	if call('HLEN', HOSTS) <= 20000 then
		local n = 0
		for _, v in ipairs(call('HVALS', HOSTS)) do
			n = n + tonumber(match(v, '^%d+'))
		end
		same('feeds at hosts', n, call('HLEN', FEEDS))
	end
	if call('LLEN', VISITS) <= 100000 then
		local n = 0
		for _, line in ipairs(call('LRANGE', VISITS, 0, -1)) do
			n = n + (line ~= '' and 1 or 0)
		end
		same('visits', call('HGET', META, 'visit_n'), n)
	end
	return out
end

-- control after -> {newest number, paused} when after is below 0, else {number, message} or nothing
function ops.control_take()
	local key, gone, after = P .. 'controls', tonumber(call('HGET', META, 'controls_gone') or 0), tonumber(ARGV[2])
	local n = call('LLEN', key)
	if after >= 0 then
		local index = math.max(after - gone, 0)
		local message = call('LINDEX', key, index)
		return message and {int(gone + index + 1), message} or {}
	end
	for i = n - 1, 0, -1 do
		local kind = match(call('LINDEX', key, i), '^%d+')
		if kind == '2' or kind == '3' then
			return {int(gone + n), kind == '2' and 1 or 0}
		end
	end
	return {int(gone + n), tonumber(call('HGET', META, 'paused') or 0)}
end
