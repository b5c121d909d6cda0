-- SPDX-License-Identifier: ISC
--
-- Lending certain feeds, by their numbers, and leases that come back without a visit.

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

local function pick()
	local from = 12
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

-- pick, what a claim is asked, {id}...: the same, but only these
function ops.pick()
	return claim(pick)
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
