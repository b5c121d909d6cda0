-- SPDX-License-Identifier: ISC
--
-- Claims: whatever is due, in the order of the line. The server makes every function of a script anew at each call, so what is asked
-- seldom (only certain feeds, leases that come back without a visit) stands in lend.lua, which begins with this.

-- What a claim asks for, and what it has lent so far. about: of each that counts for a budget, in the order of lent, gap and expected duration.
-- reach: how far ahead of others it goes just now; met: hosts with several feeds that stood in line, in that order.
local now, upto, max, host_max, gap, ahead, slowest, me
local lent, about, n, deferred, reach, met = {}, {}, 0, 0, 0, {}
local any_slow = true -- may something stand in SLOW?

local function ask_take()
	local before = tonumber(ARGV[4])
	now = now_of(ARGV[3])
	upto = before == 0 and now or math.min(now, before)
	max, host_max, gap = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
	ahead, slowest, me = tonumber(ARGV[9]), tonumber(ARGV[10]), ARGV[11]
	return before
end

-- May this claim have one of the host's feeds?
local function may_lend(h)
	local mine = reach > 0 and (h.busy <= 0 or h.holder == me) and reach or 0
	local gaps = h.busy > 0 and mine or 0 -- who has none does not know when the last request was sent
	return now >= h.cool and (host_max == 0 or h.busy < host_max + mine) and h.next <= now + gaps * math.max(gap, h.pace)
end

-- A feed that is out of line, or parked, is lent.
local function take(m, name)
	n = n + 1
	lent[n] = m
	if name then
		local h = host(name)
		local gap_ms = math.max(gap, h.pace)
		h.holder = (h.busy <= 0 or h.holder == me) and me or '0'
		h.busy = h.busy + 1
		h.next = math.max(h.next, now) + gap_ms
		h.cool = 0 -- it is over
		about[#about + 1] = int(gap_ms)
		about[#about + 1] = int(h.expect)
	end
end

local function too_slow(feed, due)
	return slowest > 0 and due > 1 and expect_of(feed) > slowest
end

local function turn_give_if(name, h)
	if host_max == 0 or h.busy < host_max then
		turn_give(name, h)
	end
end

local function parked_off(id, name, h)
	call('ZREM', PARKED .. ':' .. name, id)
	call('ZREM', PARKED, id)
	h.parked = h.parked - 1
end

-- Who may have more than others of a host takes those that are parked along.
local function along(name)
	local h = host(name)
	while h.parked > 0 and n < max and may_lend(h) do
		local first = call('ZRANGE', PARKED .. ':' .. name, 0, 0, 'WITHSCORES')
		local id, due = first[1], tonumber(first[2])
		local feed = id and slowest > 0 and call('HGET', FEEDS, id)
		if not id or due > upto then
			return
		end
		parked_off(id, name, h)
		if feed and too_slow(feed, due) then
			slow_put(place_of(id, name), due, expect_of(feed))
		else
			take(place_of(id, name), name)
		end
	end
end

-- Lend a feed that was taken out of line, or park it. Its value, where it is known.
local function lend(m, moved, feed)
	local id, name = place_split(m)
	local h = name and host(name)
	if h and moved then
		h.turn = h.turn - 1
	end
	if slowest > 0 then
		feed = feed or call('HGET', FEEDS, id)
		if feed and too_slow(feed, tonumber(due_of(feed))) then
			slow_put(m, due_of(feed), expect_of(feed))
			if h then
				turn_give_if(name, h)
			end
			return
		end
	end
	if not h then
		take(m)
		return
	end
	met[#met + 1] = name
	if may_lend(h) then
		take(m, name)
	else
		feed = feed or call('HGET', FEEDS, id)
		if feed then
			local due = due_of(feed)
			call('ZADD', PARKED, due, id)
			call('ZADD', PARKED .. ':' .. name, due, id)
			h.parked = h.parked + 1
			deferred = deferred + 1
		end
	end
	turn_give_if(name, h)
end

local function soon_lend(list)
	local moved = call('ZCARD', MOVED) > 0 and ask('ZMSCORE', MOVED, list) or {}
	many('ZREM', SOON, list)
	for i, m in ipairs(list) do
		if moved[i] then
			call('ZREM', MOVED, m)
		end
		lend(m, moved[i])
	end
end

-- Those of a list of a slot whose hosts have got other feeds since.
local joined_n -- in a claim they only become less
local function joined_name(list)
	joined_n = joined_n or call('HLEN', JOINED)
	for i, name in ipairs(joined_n > 0 and ask('HMGET', JOINED, list) or {}) do
		if name then
			call('HDEL', JOINED, list[i])
			list[i] = list[i] .. '@' .. name
		end
	end
end

-- Of a slot that has begun: who is due; the others get their exact places.
local function part_lend(list)
	local ids, later = {}, {}
	for i, m in ipairs(list) do
		ids[i] = place_split(m)
	end
	for i, feed in ipairs(ask('HMGET', FEEDS, ids)) do
		local due = feed and due_of(feed)
		if due and tonumber(due) <= upto and n < max then
			lend(list[i], false, feed)
		elseif due then
			later[#later + 1] = due
			later[#later + 1] = list[i]
		end
	end
	many('ZADD', SOON, later)
end

local function slot_lend(slot, want, ended)
	local list = call('LPOP', DUE .. slot, want) or {}
	if #list < want then
		for _, m in ipairs(call('SPOP', DUE .. slot .. ':set', want - #list)) do
			list[#list + 1] = m
		end
	end
	if #list < want then
		call('ZREM', SLOTS, slot)
	end
	joined_name(list)
	if not ended then
		part_lend(list)
	else
		for i = 1, #list do
			local m = list[i]
			if slowest == 0 and not find(m, '@', 2, true) then -- most
				n = n + 1
				lent[n] = m
			else
				lend(m, false)
			end
		end
	end
	return #list
end

-- Those that were too slow for others, but are not for this claim, back to where they stood: as many as there is room for.
local function slow_back()
	local list = slowest == 0 and call('ZRANGE', SLOW, '-inf', int(upto), 'BYSCORE', 'LIMIT', 0, max - n) or
		call('ZRANGE', SLOW .. '_us', '-inf', int(slowest), 'BYSCORE', 'LIMIT', 0, max - n)
	for _, m in ipairs(list) do
		call('ZADD', SOON, call('ZSCORE', SLOW, m), m)
		slow_off(m)
	end
	return #list
end

-- Whatever is earliest; and where that leaves room, more of the hosts that were met.
local function line_lend(before)
	any_slow = call('EXISTS', SLOW) == 1
	local left, slow = max * 4 + 1000, any_slow and slow_back() > 0
	while n < max and left > 0 do
		local slot, looked = call('ZRANGE', SLOTS, 0, 0)[1], 1
		local start = slot and tonumber(slot) * SLOT_MS
		local list = call('ZRANGE', SOON, '-inf', int(math.min(upto, start or upto)), 'BYSCORE', 'LIMIT', 0, math.min(max - n, left))
		if #list > 0 then
			looked = #list
			soon_lend(list)
		elseif start and start <= upto then
			local ended = start + SLOT_MS - 1 <= upto
			looked = slot_lend(slot, math.min(ended and max - n or math.max(max - n, 100), left), ended)
		elseif not slow or slow_back() == 0 then -- not all of them were lent
			break
		end
		left = left - math.max(looked, 1)
	end
	if before ~= 0 and before < now and n < max then -- due before that, but put off until after it
		for _, m in ipairs(call('ZRANGE', MOVED, '-inf', int(before), 'BYSCORE', 'LIMIT', 0, max * 4 + 1000)) do
			local wake = tonumber(call('ZSCORE', SOON, m))
			if n < max and wake > before and wake <= now then
				soon_lend({m})
			end
		end
	end
	reach = ahead
	local n_before = n
	for i = 1, reach > 0 and #met or 0 do
		along(met[i])
	end
	deferred = math.max(deferred - (n - n_before), 0)
end

-- Lend as lend_some does, told the time before which feeds are to be due.
local function claim(lend_some)
	local before = ask_take()
	for _, fence in ipairs(call('ZRANGEBYSCORE', CLAIMS, '-inf', int(now), 'LIMIT', 0, 8)) do
		claim_end(fence)
	end
	if line_n > 0 then
		line_write()
	end
	lend_some(before)
	local fence, until_ms = '0', int(now + tonumber(ARGV[5]))
	if n > 0 then
		fence = int(call('HINCRBY', META, 'last_fence', 1))
		many('SADD', LENT .. fence, lent)
		call('ZADD', CLAIMS, until_ms, fence)
		call('HSET', BORROWERS, fence, ARGV[2])
	end
	finish()
	local first, lease = call('ZRANGE', SOON, 0, 0, 'WITHSCORES'), call('ZRANGE', CLAIMS, 0, 0, 'WITHSCORES')
	local slow = slowest == 0 and any_slow and call('ZRANGE', SLOW, 0, 0, 'WITHSCORES') or {}
	local slot, next_ms = call('ZRANGE', SLOTS, 0, 0)[1], nil
	for _, ms in ipairs({first[2] or false, slot and tonumber(slot) * SLOT_MS or false, lease[2] or false, slow[2] or false}) do
		ms = ms and tonumber(ms)
		if ms and (not next_ms or ms < next_ms) then
			next_ms = ms
		end
	end
	return {fence, until_ms, deferred, next_ms and int(next_ms) or '', call('GET', EPOCH), lent, about}
end

-- claim worker now before lease_ms max host_max host_gap_ms host_ahead expect_max_us me
--   -> {fence, until, deferred, next, epoch, {id or id@host ...}, {about ...}}
-- me: what the worker's name comes to as a number.
function ops.claim()
	return claim(line_lend)
end
