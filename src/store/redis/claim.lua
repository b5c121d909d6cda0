-- SPDX-License-Identifier: ISC
--
-- Claims, and leases that come back without a visit.

-- claim worker now before lease_ms max host_max host_gap_ms -> {fence, until, deferred, next, epoch, {id or id@host ...}}
function ops.claim()
	local worker, now = ARGV[2], now_of(ARGV[3])
	local before = ARGV[4] == '0' and now or tonumber(ARGV[4])
	local max, host_max, gap = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
	local lent, n, deferred, left = {}, 0, 0, max * 4 + 1000

	-- lend a feed that was taken out of line, or park it
	local function lend(m, moved)
		local id, name = place_split(m)
		if not name then
			n = n + 1
			lent[n] = m
			return
		end
		local h = host(name)
		if moved then
			h.turn = h.turn - 1
		end
		if now >= h.next and (host_max == 0 or h.busy < host_max) then
			n = n + 1
			lent[n] = m
			h.busy = h.busy + 1
			h.next = math.max(h.next, now + gap)
		else
			local feed = call('HGET', FEEDS, id)
			if feed then
				local due = due_of(feed)
				call('ZADD', PARKED, due, id)
				call('ZADD', PARKED .. ':' .. name, due, id)
				h.parked = h.parked + 1
				deferred = deferred + 1
			end
		end
		if host_max == 0 or h.busy < host_max then
			turn_give(name, h)
		end
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

	-- those in a list whose hosts have got other feeds since
	local joined_n = call('HLEN', JOINED)
	local function joined_name(list)
		for i, name in ipairs(joined_n > 0 and ask('HMGET', JOINED, list) or {}) do
			if name then
				call('HDEL', JOINED, list[i])
				list[i] = list[i] .. '@' .. name
			end
		end
	end

	-- of a slot that has begun: who is due; the others get their exact places
	local function part_lend(list, upto)
		local ids, later = {}, {}
		for i, m in ipairs(list) do
			ids[i] = place_split(m)
		end
		for i, feed in ipairs(ask('HMGET', FEEDS, ids)) do
			local due = feed and due_of(feed)
			if due and tonumber(due) <= upto and n < max then
				lend(list[i], false)
			elseif due then
				later[#later + 1] = due
				later[#later + 1] = list[i]
			end
		end
		many('ZADD', SOON, later)
	end

	for _, fence in ipairs(call('ZRANGEBYSCORE', CLAIMS, '-inf', int(now), 'LIMIT', 0, 8)) do
		claim_end(fence)
	end
	if line_n > 0 then
		line_write()
	end
	local upto = math.min(now, before)
	while n < max and left > 0 do -- whatever is earliest
		local slot = call('ZRANGE', SLOTS, 0, 0)[1]
		local start = slot and tonumber(slot) * SLOT_MS
		local list = call('ZRANGE', SOON, '-inf', int(math.min(upto, start or upto)), 'BYSCORE', 'LIMIT', 0, math.min(max - n, left))
		if #list > 0 then
			soon_lend(list)
		elseif start and start <= upto then
			local ended = start + SLOT_MS - 1 <= upto
			local want = math.min(ended and max - n or math.max(max - n, 100), left)
			list = call('LPOP', DUE .. slot, want) or {}
			if #list < want then
				call('ZREM', SLOTS, slot)
			end
			joined_name(list)
			if not ended then
				part_lend(list, upto)
			else
				for i = 1, #list do
					lend(list[i], false)
				end
			end
		else
			break
		end
		left = left - math.max(#list, 1)
	end
	if before < now and n < max then -- due before that, but put off until after it
		for _, m in ipairs(call('ZRANGE', MOVED, '-inf', int(before), 'BYSCORE', 'LIMIT', 0, max * 4 + 1000)) do
			local wake = tonumber(call('ZSCORE', SOON, m))
			if n < max and wake > before and wake <= now then
				soon_lend({m})
			end
		end
	end

	local fence, until_ms = '0', int(now + tonumber(ARGV[5]))
	if n > 0 then
		fence = int(call('HINCRBY', META, 'last_fence', 1))
		many('SADD', LENT .. fence, lent)
		call('ZADD', CLAIMS, until_ms, fence)
		call('HSET', BORROWERS, fence, worker)
	end
	finish()
	local first, lease = call('ZRANGE', SOON, 0, 0, 'WITHSCORES'), call('ZRANGE', CLAIMS, 0, 0, 'WITHSCORES')
	local slot, next_ms = call('ZRANGE', SLOTS, 0, 0)[1], nil
	for _, ms in ipairs({first[2] or false, slot and tonumber(slot) * SLOT_MS or false, lease[2] or false}) do
		ms = ms and tonumber(ms)
		if ms and (not next_ms or ms < next_ms) then
			next_ms = ms
		end
	end
	return {fence, until_ms, deferred, next_ms and int(next_ms) or '', call('GET', EPOCH), lent}
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
