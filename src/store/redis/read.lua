-- SPDX-License-Identifier: ISC
--
-- What only looks: it works on a full server and on a replica too.

-- Feeds in line that are due at that time, but were put off until after it: how many, and the earliest time one of them wakes.
local function moved_behind(upto)
	local n, wake = 0, nil
	for _, m in ipairs(call('ZRANGEBYSCORE', MOVED, '-inf', int(upto))) do
		local score = tonumber(call('ZSCORE', SOON, m) or upto)
		if score > upto then
			n = n + 1
			wake = math.min(wake or score, score)
		end
	end
	return n, wake
end

-- How many stand in a slot, and all of them.
local function slot_n(slot)
	return call('LLEN', DUE .. slot) + call('SCARD', DUE .. slot .. ':set')
end

local function slot_list(slot)
	local all = call('LRANGE', DUE .. slot, 0, -1)
	for _, m in ipairs(call('SMEMBERS', DUE .. slot .. ':set')) do
		all[#all + 1] = m
	end
	return all
end

-- Feeds of a slot that are due until then, and the earliest time of any; where there are very many, what their number and the slot tell.
local function slot_look(slot, upto)
	local start, n, first = tonumber(slot) * SLOT_MS, slot_n(slot), nil
	if start > upto and n > 5000 then
		return 0, start
	elseif start + SLOT_MS - 1 <= upto and n > 5000 then
		return n, start
	end
	local ids = slot_list(slot)
	for i, m in ipairs(ids) do
		ids[i] = place_split(m)
	end
	n = 0
	for _, feed in ipairs(ask('HMGET', FEEDS, ids)) do
		local due = feed and tonumber(due_of(feed))
		n = n + (due and due <= upto and 1 or 0)
		first = due and math.min(first or due, due) or first
	end
	return n, first
end

-- The same for all slots.
local function slots_look(upto)
	local n, first = 0, nil
	for i, slot in ipairs(call('ZRANGE', SLOTS, 0, -1)) do
		local start = tonumber(slot) * SLOT_MS
		if i == 1 or (start <= upto and start + SLOT_MS > upto) then
			local due_n, due = slot_look(slot, upto)
			n = n + due_n
			first = first or due
		elseif start <= upto then
			n = n + slot_n(slot)
		else
			break
		end
	end
	return n, first
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
	local due, next_ms = slots_look(now)
	local m, soon = first_of(SOON)
	if m and call('ZSCORE', MOVED, m) then
		soon = nil -- MOVED tells
	end
	local _, moved = first_of(MOVED)
	local _, parked = first_of(PARKED)
	local _, slow = first_of(SLOW)
	next_ms = least(least(least(next_ms, soon), least(moved, parked)), slow)
	due = due + call('ZCOUNT', SOON, '-inf', int(now)) + (moved_behind(now)) + call('ZCOUNT', PARKED, '-inf', int(now)) +
		call('ZCOUNT', SLOW, '-inf', int(now))
	local lent = 0
	for _, fence in ipairs(call('ZRANGE', CLAIMS, 0, -1)) do
		lent = lent + call('SCARD', LENT .. fence)
	end
	local shards, shard, last_feed, last_entry, last_visit = tonumber(ARGV[3]), tonumber(ARGV[4]), 0, 0, 0
	for seq = tonumber(call('HGET', META, 'last_feed')), 1, -1 do
		last_feed = (seq - 1) * shards + shard + 1
		if call('HEXISTS', FEEDS, int(last_feed)) == 1 then
			break
		end
		last_feed = 0
	end
	if call('HLEN', ENTRIES) > 0 and shard == 0 then -- the counter of all shards
		last_entry = tonumber(call('HGET', META, 'last_entry'))
		while shards == 1 and call('HEXISTS', ENTRIES, int(last_entry)) == 0 do
			last_entry = last_entry - 1
		end
		last_entry = last_entry * shards
	end
	local back = 0
	while last_visit == 0 do
		local batch = call('ZREVRANGE', ORDER, back, back, 'WITHSCORES')
		if not batch[1] then
			break
		end
		local number = tonumber(batch[2])
		for text in string.gmatch(call('HGET', VISITS, batch[1]), '\n([^\n]*)') do
			last_visit = text ~= '' and (number - 1) * shards + shard + 1 or last_visit
			number = number + 1
		end
		back = back + 1
	end
	return {call('HLEN', FEEDS), call('ZCOUNT', STATUS, 1, 1), call('ZCOUNT', STATUS, 2, 2), call('ZCOUNT', STATUS, 3, 3),
		call('ZCARD', FAILING), lent, due, next_ms and int(next_ms) or '',
		tonumber(call('HGET', META, 'entry_n')), tonumber(call('HGET', META, 'visit_n')), last_feed, last_entry, last_visit}
end

-- pending before -> {n, wake or ''}
function ops.pending()
	local before = tonumber(ARGV[2])
	local n, first = slots_look(before)
	local put_off, wake = moved_behind(before)
	local _, soon = first_of(SOON)
	local _, slow = first_of(SLOW)
	first = least(least(first, soon), slow)
	if first and first <= before then
		wake = least(wake, first)
	end
	n = n + put_off + call('ZCOUNT', SOON, '-inf', ARGV[2]) + call('ZCOUNT', PARKED, '-inf', ARGV[2]) + call('ZCOUNT', SLOW, '-inf', ARGV[2])
	local claims = call('ZRANGE', CLAIMS, 0, -1, 'WITHSCORES')
	for i = 1, #claims, 2 do
		local ids, due_n = call('SMEMBERS', LENT .. claims[i]), 0
		for k, m in ipairs(ids) do
			ids[k] = place_split(m)
		end
		for _, feed in ipairs(ask('HMGET', FEEDS, ids)) do
			due_n = due_n + (feed and tonumber(due_of(feed)) <= before and 1 or 0)
		end
		n = n + due_n
		if due_n > 0 then
			wake = least(wake, tonumber(claims[i + 1]))
		end
	end
	return {n, wake and int(wake) or ''}
end

-- look unsure {id fence} ... -> {epoch, {as what it is lent, '' when it is not}, {feed}, {status}, {what was found, if it has been stored
-- under this fence: "new changed"}}
function ops.look()
	local unsure, ids, as, again = ARGV[2] == '1', {}, {}, {}
	for i = 3, #ARGV, 2 do
		ids[#ids + 1] = ARGV[i]
	end
	local feeds = ask('HMGET', FEEDS, ids)
	for k, feed in ipairs(feeds) do
		local fence = ARGV[2 * k + 2]
		as[k] = feed and lent_as(fence, ids[k], feed_part(feed, 'host')) or ''
		again[k] = ''
		local batch = as[k] == '' and unsure and feed and match(feed, '^%S+')
		for _ = 1, batch and 100 or 0 do
			local text, before = visit_in(batch, ids[k])
			if not text then
				break
			end
			local under, found = match(text, '^%d+ %S+ (%d+) (%d+ %d+) ')
			if under == fence then
				again[k] = found
				break
			end
			batch = before
		end
		feeds[k] = feed or ''
	end
	return {call('GET', EPOCH), as, feeds, #ids > 0 and ask('ZMSCORE', STATUS, ids) or {}, again}
end

-- lent [id] -> {fence until {member ...}} ...: all that is lent, or one feed
function ops.lent()
	local out = {}
	local function add(fence, members)
		out[#out + 1] = fence
		out[#out + 1] = call('ZSCORE', CLAIMS, fence)
		out[#out + 1] = members
	end
	if ARGV[2] then
		local feed = call('HGET', FEEDS, ARGV[2])
		local fence, m = lent_by(ARGV[2], feed and feed_part(feed, 'host'))
		if fence then
			add(fence, {m})
		end
		return out
	end
	for _, fence in ipairs(call('ZRANGE', CLAIMS, 0, -1)) do
		add(fence, call('SMEMBERS', LENT .. fence))
	end
	return out
end

-- safe -> now, {base until} of each connection that has taken numbers and not stored yet
function ops.safe()
	return {int(now_of('0')), call('HVALS', STORING)}
end

-- history batch id max -> {lines, batch, numbers}: of one feed's visits, newest first
function ops.history()
	local batch, id, out, numbers = ARGV[2], ARGV[3], {}, {}
	while #out < tonumber(ARGV[4]) do
		local text, before, lines, first = visit_in(batch, id)
		if not text then
			batch = '-'
			break
		end
		local _, above = string.gsub(sub(lines, 1, first - 1), '\n', '')
		out[#out + 1] = text
		numbers[#numbers + 1] = int(tonumber(call('ZSCORE', ORDER, batch)) + above)
		batch = before
	end
	return {out, batch, numbers}
end

-- check {id} ... -> sentences: each active feed is in exactly one place
function ops.check_feeds()
	local ids, out, lent = {unpack(ARGV, 2)}, {}, {}
	for _, fence in ipairs(call('ZRANGE', CLAIMS, 0, -1)) do
		for _, m in ipairs(call('SMEMBERS', LENT .. fence)) do
			local id = place_split(m)
			if lent[id] then
				out[#out + 1] = 'feed ' .. id .. ': lent twice'
			end
			lent[id] = m
		end
	end
	for i, feed in ipairs(ask('HMGET', FEEDS, ids)) do
		local id = ids[i]
		if feed then
			local name, due, active, places = feed_part(feed, 'host'), due_of(feed), not call('ZSCORE', STATUS, id), {}
			local parked, joined = call('ZSCORE', PARKED, id), call('HGET', JOINED, id)
			for _, m in ipairs({id, id .. '@' .. name}) do
				local wake, moved, slow = call('ZSCORE', SOON, m), call('ZSCORE', MOVED, m), call('ZSCORE', SLOW, m)
				if wake then
					places[#places + 1] = m
					if (moved or wake) ~= due then
						out[#out + 1] = 'feed ' .. id .. ': waits for another time than it is due'
					end
				elseif moved then
					out[#out + 1] = 'feed ' .. id .. ': put off, but not waiting'
				end
				if call('LPOS', DUE .. slot_of(due), m) or call('SISMEMBER', DUE .. slot_of(due) .. ':set', m) == 1 then
					places[#places + 1] = m
				end
				if slow then
					places[#places + 1] = m
				end
				if slow and (slow ~= due or tonumber(call('ZSCORE', SLOW .. '_us', m) or 0) ~= expect_of(feed)) then
					out[#out + 1] = 'feed ' .. id .. ': passed over as slow, at another time than it is due or for another time that it takes'
				end
			end
			local waits = #places + (parked and 1 or 0)
			if lent[id] then
				places[#places + 1] = lent[id]
			end
			if active and waits == 0 and not lent[id] then
				out[#out + 1] = 'feed ' .. id .. ': active, but neither waiting nor lent'
			elseif waits + (lent[id] and 1 or 0) > 1 then
				out[#out + 1] = 'feed ' .. id .. ': in line more than once'
			elseif not active and waits > 0 then
				out[#out + 1] = 'feed ' .. id .. ': waiting, but not active'
			end
			local sole = match(call('HGET', HOSTS, name) or '', '^%d+ %d+ %d+ %d+ %-?%d+ (%d+)') == id
			if places[1] and lent[id] ~= id and sole ~= (places[1] == id and not joined) then
				out[#out + 1] = 'feed ' .. id .. ': counted by its host, or not, against what it should'
			end
			if (parked == false) ~= (call('ZSCORE', PARKED .. ':' .. name, id) == false) then
				out[#out + 1] = 'feed ' .. id .. ': half parked'
			end
		end
	end
	return out
end

-- check_hosts cursor -> {cursor, sentences}: budgets, over a part of the hosts
function ops.check_hosts()
	local page, out, busy, turns = call('HSCAN', HOSTS, ARGV[2], 'COUNT', 1000), {}, {}, {}
	for _, fence in ipairs(call('ZRANGE', CLAIMS, 0, -1)) do
		for _, m in ipairs(call('SMEMBERS', LENT .. fence)) do
			local _, name = place_split(m)
			if name then
				busy[name] = (busy[name] or 0) + 1
			end
		end
	end
	for _, m in ipairs(call('ZRANGE', MOVED, 0, -1)) do
		local _, name = place_split(m)
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
		if match(page[2][i + 1], '^%d+ 0 %d+ %d+ %-?%d+ %d+ %d+ %d+ %-?%d+ %-?[1-9]') then
			out[#out + 1] = 'host ' .. name .. ': nothing is lent of it, but somebody has all'
		end
		if parked > 0 and (busy[name] or 0) + (turns[name] or 0) == 0 then
			out[#out + 1] = 'host ' .. name .. ': feeds wait, and none has its turn'
		end
	end
	return {page[1], out}
end

-- check_rest -> sentences: what is counted, claims and slots
function ops.check_rest()
	local out = {}
	for _, fence in ipairs(call('ZRANGE', CLAIMS, 0, -1)) do
		if call('EXISTS', LENT .. fence) == 0 then
			out[#out + 1] = 'claim ' .. fence .. ': holds nothing'
		elseif call('HEXISTS', BORROWERS, fence) == 0 then
			out[#out + 1] = 'claim ' .. fence .. ': nobody borrowed'
		end
	end
	local function same(what, counts, is)
		if tonumber(counts or 0) ~= is then
			out[#out + 1] = 'meta: counts ' .. tostring(counts) .. ' ' .. what .. ', there are ' .. is
		end
	end
	same('claims', call('ZCARD', CLAIMS), call('HLEN', BORROWERS))
	same('slow feeds', call('ZCARD', SLOW), call('ZCARD', SLOW .. '_us'))
	same('entries', call('HGET', META, 'entry_n'), call('HLEN', ENTRIES))
	if call('HLEN', ENTRIES) <= 20000 then -- each is in the list of its day; what else stands there is passed over
		local n, seen = 0, {}
		for _, day in ipairs(call('ZRANGE', DAYS, 0, -1)) do
			local ids = {}
			for id in string.gmatch(call('GET', DATES .. day) or '', '(%d+) %-?%d+\n') do
				ids[#ids + 1] = id
			end
			for i, found in ipairs(ask('HMGET', ENTRIES, ids)) do
				n = n + (found and not seen[ids[i]] and 1 or 0)
				seen[ids[i]] = true
			end
		end
		same('entries by date', call('HGET', META, 'entry_n'), n)
	end
	same('addresses', call('HLEN', URLS), call('HLEN', FEEDS))
	same('batches of visits', call('HLEN', VISITS), call('ZCARD', ORDER))
	if call('HLEN', HOSTS) <= 20000 then
		local n = 0
		for _, v in ipairs(call('HVALS', HOSTS)) do
			n = n + tonumber(match(v, '^%d+'))
		end
		same('feeds at hosts', n, call('HLEN', FEEDS))
	end
	if tonumber(call('HGET', META, 'visit_n')) <= 100000 then
		local n = 0
		for _, lines in ipairs(call('HVALS', VISITS)) do
			local _, full = string.gsub(lines, '\n%d', '')
			n = n + full
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
