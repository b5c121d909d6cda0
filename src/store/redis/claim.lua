-- SPDX-License-Identifier: ISC
--
-- Claims, and leases that come back without a visit.

-- What a claim asks for, and what it has lent so far. about: of each that counts for a budget, in the order of lent, gap and expected duration.
-- reach: how far ahead of others it goes just now; met: hosts with several feeds that stood in line, in that order.
local now, upto, max, host_max, gap, ahead, slowest, me
local lent, about, n, deferred, reach, met = {}, {}, 0, 0, 0, {}

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
	return now >= h.cool and (host_max == 0 or h.busy < host_max + mine) and h.next <= now + mine * math.max(gap, h.pace)
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
local function joined_name(list)
	for i, name in ipairs(call('HLEN', JOINED) > 0 and ask('HMGET', JOINED, list) or {}) do
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
			lend(list[i], false)
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
	local left, slow = max * 4 + 1000, call('EXISTS', SLOW) == 1 and slow_back() > 0
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

-- Where a feed of a crowded host stands; nil: nowhere.
local function place_find(id, m, set)
	if call('SISMEMBER', set, m) == 1 then
		return 'slot', m
	elseif call('ZSCORE', PARKED, id) then
		return 'parked'
	elseif call('ZSCORE', SOON, m) then
		return 'soon'
	elseif call('ZSCORE', SLOW, m) then
		return 'slow'
	elseif call('HEXISTS', JOINED, id) == 1 and call('SISMEMBER', set, id) == 1 then
		return 'slot', id
	end
	return nil
end

local function pick_crowded(id, name, h, set)
	local m = place_of(id, name)
	local where, as = place_find(id, m, set)
	if not where then
		return
	elseif not may_lend(h) then
		deferred = deferred + 1
		return
	elseif where == 'slot' then
		call('SREM', set, as)
		call('HDEL', JOINED, id)
	elseif where == 'parked' then
		parked_off(id, name, h)
	elseif where == 'soon' then
		call('ZREM', SOON, m)
		h.turn = h.turn - call('ZREM', MOVED, m)
	else
		slow_off(m)
	end
	take(m, name)
	turn_give_if(name, h)
end

-- The only feed of its host.
local function pick_alone(id, set)
	if call('SREM', set, id) == 1 then
		take(id)
		return
	end
	local wake = call('ZSCORE', SOON, id)
	if wake and tonumber(wake) > now then -- its host asked for a pause
		deferred = deferred + 1
	elseif wake then
		call('ZREM', SOON, id)
		call('ZREM', MOVED, id)
		take(id)
	elseif slow_off(id) then
		take(id)
	end
end

-- A slot's list becomes a set.
local slots = {} -- those that were
local function slot_open(slot)
	local key = DUE .. slot
	local list = not slots[slot] and call('LPOP', key, 4000)
	slots[slot] = true
	while list do
		call('SADD', key .. ':set', unpack(list))
		list = call('LPOP', key, 4000)
	end
	return key .. ':set'
end

-- Only these, in this order.
local function pick_some(ids)
	local feeds, status = ask('HMGET', FEEDS, ids), ask('ZMSCORE', STATUS, ids)
	for i, id in ipairs(ids) do
		local feed = feeds[i]
		local due = feed and tonumber(due_of(feed))
		if n >= max then
			return
		elseif feed and not status[i] and due <= upto and not too_slow(feed, due) then
			local set, name = slot_open(slot_of(due)), feed_part(feed, 'host')
			local h = host(name)
			if h.sole == id then
				pick_alone(id, set)
			else
				pick_crowded(id, name, h, set)
			end
		end
	end
end

local function pick(from)
	reach = ahead
	while from <= #ARGV and n < max do
		pick_some({unpack(ARGV, from, math.min(from + 999, #ARGV))})
		from = from + 1000
	end
	for slot in pairs(slots) do
		if call('EXISTS', DUE .. slot .. ':set') == 0 then
			call('ZREM', SLOTS, slot)
		end
	end
end

-- claim worker now before lease_ms max host_max host_gap_ms host_ahead expect_max_us me {id}...
--   -> {fence, until, deferred, next, epoch, {id or id@host ...}, {about ...}}
-- me: what the worker's name comes to as a number.
function ops.claim()
	local before = ask_take()
	for _, fence in ipairs(call('ZRANGEBYSCORE', CLAIMS, '-inf', int(now), 'LIMIT', 0, 8)) do
		claim_end(fence)
	end
	if line_n > 0 then
		line_write()
	end
	if ARGV[12] then
		pick(12)
	else
		line_lend(before)
	end
	local fence, until_ms = '0', int(now + tonumber(ARGV[5]))
	if n > 0 then
		fence = int(call('HINCRBY', META, 'last_fence', 1))
		many('SADD', LENT .. fence, lent)
		call('ZADD', CLAIMS, until_ms, fence)
		call('HSET', BORROWERS, fence, ARGV[2])
	end
	finish()
	local first, lease = call('ZRANGE', SOON, 0, 0, 'WITHSCORES'), call('ZRANGE', CLAIMS, 0, 0, 'WITHSCORES')
	local slow = slowest == 0 and call('ZRANGE', SLOW, 0, 0, 'WITHSCORES') or {}
	local slot, next_ms = call('ZRANGE', SLOTS, 0, 0)[1], nil
	for _, ms in ipairs({first[2] or false, slot and tonumber(slot) * SLOT_MS or false, lease[2] or false, slow[2] or false}) do
		ms = ms and tonumber(ms)
		if ms and (not next_ms or ms < next_ms) then
			next_ms = ms
		end
	end
	return {fence, until_ms, deferred, next_ms and int(next_ms) or '', call('GET', EPOCH), lent, about}
end

-- lend id worker now lease_ms -> 0 there is no such feed; {fence, until, status, epoch, who has it}, fence '0': not lent
function ops.lend()
	local id, worker, now = ARGV[2], ARGV[3], now_of(ARGV[4])
	for _, fence in ipairs(call('ZRANGEBYSCORE', CLAIMS, '-inf', int(now), 'LIMIT', 0, 8)) do
		claim_end(fence)
	end
	local feed, status = call('HGET', FEEDS, id), call('ZSCORE', STATUS, id) or '0'
	if not feed then
		finish()
		return 0
	end
	line_write()
	local name = feed_part(feed, 'host')
	local fence, until_ms, holder = lent_by(id, name), '0', ''
	if fence then
		until_ms, holder = call('ZSCORE', CLAIMS, fence), call('HGET', BORROWERS, fence) or ''
		fence = '0'
	elseif status ~= '0' and status ~= '1' then
		fence = '0'
	else
		if status == '0' then -- one that is paused stands nowhere
			wheel_off(id, name, due_of(feed))
		end
		fence, until_ms = int(call('HINCRBY', META, 'last_fence', 1)), int(now + tonumber(ARGV[5]))
		call('SADD', LENT .. fence, id)
		call('ZADD', CLAIMS, until_ms, fence)
		call('HSET', BORROWERS, fence, worker)
	end
	finish()
	return {fence, until_ms, status, call('GET', EPOCH), holder}
end

-- release {id fence} ...
function ops.release()
	local ids = {}
	for i = 2, #ARGV, 2 do
		ids[#ids + 1] = ARGV[i]
	end
	for k, feed in ipairs(ask('HMGET', FEEDS, ids)) do
		local fence = ARGV[2 * k + 1]
		local m = feed and lent_as(fence, ids[k], feed_part(feed, 'host'))
		if m then
			lease_return(m, feed)
			lent_less(fence, {m})
		end
	end
	finish()
end

-- bury worker feed kind limit quarantined: give back what a dead worker held; charge the feed, if it had it
function ops.bury()
	local worker, crashed, kind, limit, quarantined = ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5]), ARGV[6]
	local borrowers, feed = call('HGETALL', BORROWERS), call('HGET', FEEDS, crashed)
	for i = 1, #borrowers, 2 do
		local fence = borrowers[i]
		if borrowers[i + 1] == worker then
			if feed and lent_as(fence, crashed, feed_part(feed, 'host')) then
				local front, http, fail_n, crash_n, rest = match(feed, '^(%S+ %S+ %S+ %S+ %S+) %d+ (%d+) (%d+) (%d+) (.*)$')
				crash_n = tonumber(crash_n) + 1
				call('HSET', FEEDS, crashed, front .. ' ' .. kind .. ' ' .. http .. ' ' .. fail_n .. ' ' .. int(crash_n) .. ' ' .. rest)
				if crash_n >= limit then
					call('ZADD', STATUS, 'NX', quarantined, crashed)
				end
			end
			claim_end(fence)
		end
	end
	finish()
end
