-- SPDX-License-Identifier: ISC
--
-- Lending. An active feed is in exactly one place: DUE (waiting, by the time it wakes), PARKED (due, but its host has no budget), or
-- LEASES (lent). In DUE it stands as "id" when it is the only feed of its host, else as "id@host"; MOVED names those that wait for
-- another time than they are due: put off for a pause their host asked for, or holding the turn of a crowded host.
--
-- A host with several feeds has a budget: feeds lent (busy) and the time of its next loan. A feed that finds none left is parked, and
-- from then on at most one feed of the host stands in DUE for all of them: it has the turn. Whoever returns a loan gives the turn on,
-- so parked feeds are met again without being looked at.

-- ---- hosts: read at first use, written back at the end ------------------------------------------------------------------------

local hosts = {}

local function host(name)
	local h = hosts[name]
	if h == nil then
		local v = call('HGET', HOSTS, name)
		h = {feed_n = 0, busy = 0, turn = 0, parked = 0, next = 0, sole = '0'}
		if v then
			local feed_n, busy, turn, parked, next_ok, sole = match(v, '^(%d+) (%d+) (%d+) (%d+) (%-?%d+) (%d+)$')
			h = {feed_n = tonumber(feed_n), busy = tonumber(busy), turn = tonumber(turn), parked = tonumber(parked),
				next = tonumber(next_ok), sole = sole}
		end
		hosts[name] = h
	end
	return h
end

local function hosts_write()
	local set, del = {}, {}
	for name, h in pairs(hosts) do
		if h.feed_n > 0 then
			set[#set + 1] = name
			set[#set + 1] = fmt('%d %d %d %d %d %s', h.feed_n, math.max(h.busy, 0), math.max(h.turn, 0),
				math.max(h.parked, 0), h.next, h.sole)
		else
			del[#del + 1] = name
		end
	end
	many('HSET', HOSTS, set)
	many('HDEL', HOSTS, del)
end

local function place_of(id, name)
	return name and id .. '@' .. name or id
end

-- The earliest parked feed of a host steps into DUE, unless another one of it stands there.
local function turn_give(name, h)
	if h.parked == 0 or h.turn > 0 then
		return
	end
	local first = call('ZPOPMIN', PARKED .. ':' .. name)
	local id, due = first[1], first[2]
	if not id then
		return
	end
	call('ZREM', PARKED, id)
	call('ZADD', DUE, int(math.max(tonumber(due), h.next)), id .. '@' .. name)
	call('ZADD', MOVED, due, id .. '@' .. name)
	h.parked = h.parked - 1
	h.turn = h.turn + 1
end

local function host_return(name, cooldown)
	local h = host(name)
	h.busy = h.busy - 1
	h.next = math.max(h.next, cooldown)
	turn_give(name, h)
end

-- One feed more; returns the host when it is counted there (it has other feeds).
local function host_join(name, id)
	local h = host(name)
	h.feed_n = h.feed_n + 1
	if h.feed_n == 1 then
		h.sole = id
		return nil
	end
	local sole = h.sole
	if sole ~= '0' then -- the first feed's place and loan are counted from now on
		local score, due, lease = call('ZSCORE', DUE, sole), call('ZSCORE', MOVED, sole), call('HGET', LEASES, sole)
		if score then
			call('ZREM', DUE, sole)
			call('ZADD', DUE, score, sole .. '@' .. name)
		elseif lease then
			call('HSET', LEASES, sole, lease .. '@' .. name)
			h.busy = h.busy + 1
		end
		if due then
			call('ZREM', MOVED, sole)
			call('ZADD', MOVED, due, sole .. '@' .. name)
			h.turn = h.turn + 1
		end
		h.sole = '0'
	end
	return name
end

local function host_leave(name, id)
	local h = host(name)
	h.feed_n = h.feed_n - 1
	if h.sole == id then
		h.sole = '0'
	end
end

-- ---- on and off the wheel -------------------------------------------------------------------------------------------------------

-- Take a feed that waits out of its place; a lease is left alone.
local function wheel_off(id, name)
	for _, m in ipairs({id, id .. '@' .. name}) do
		if call('ZREM', DUE, m) == 1 then
			if call('ZREM', MOVED, m) == 1 and m ~= id then
				local h = host(name)
				h.turn = h.turn - 1
				turn_give(name, h)
			end
			return
		end
	end
	if call('ZREM', PARKED, id) == 1 then
		local h = host(name)
		call('ZREM', PARKED .. ':' .. name, id)
		h.parked = h.parked - 1
	end
end

-- A lease has ended without a visit: back to its place, if the feed is still active.
local function lease_return(id, name)
	local wheel = call('HGET', WHEEL, id)
	call('HDEL', LEASES, id)
	if name then
		host_return(name, 0)
	end
	if wheel and not call('ZSCORE', STATUS, id) then
		call('ZADD', DUE, due_of(wheel), place_of(id, name))
	end
end

local function claim_drop(fence)
	call('ZREM', CLAIMS, fence)
	call('HDEL', CLAIM_LEFT, fence)
	call('HDEL', CLAIM_FEEDS, fence)
end

-- n leases of a claim are back.
local function claim_less(fence, n)
	if call('HINCRBY', CLAIM_LEFT, fence, -n) <= 0 then
		claim_drop(fence)
	end
end

-- Take back all that one claim lent.
local function claim_end(fence)
	local list = call('HGET', CLAIM_FEEDS, fence)
	if list then
		for id in string.gmatch(match(list, '\n(.*)$'), '%d+') do
			local mine, name = lease_is(call('HGET', LEASES, id), fence)
			if mine then
				lease_return(id, name)
			end
		end
	end
	claim_drop(fence)
end

-- ---- claim ------------------------------------------------------------------------------------------------------------------------

-- claim worker now before lease_ms max host_max host_gap_ms -> {fence, until, deferred, next, {id ...}, {wheel ...}}
function ops.claim()
	local worker, now = ARGV[2], now_of(ARGV[3])
	local before = ARGV[4] == '0' and now or tonumber(ARGV[4])
	local max, host_max, gap = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
	local ids, names, crowd, n, deferred = {}, {}, false, 0, 0

	-- lend a feed that was taken out of DUE, or park it
	local function lend(m, moved)
		local at = find(m, '@', 2, true)
		if not at then
			n = n + 1
			ids[n] = m
			return
		end
		local id, name = sub(m, 1, at - 1), sub(m, at + 1)
		local h = host(name)
		if moved then
			h.turn = h.turn - 1
		end
		if now >= h.next and (host_max == 0 or h.busy < host_max) then
			n = n + 1
			ids[n], names[id], crowd = id, name, true
			h.busy = h.busy + 1
			h.next = math.max(h.next, now + gap)
		else
			local wheel = call('HGET', WHEEL, id)
			if wheel then
				local due = due_of(wheel)
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

	for _, fence in ipairs(call('ZRANGEBYSCORE', CLAIMS, '-inf', int(now), 'LIMIT', 0, 8)) do
		claim_end(fence)
	end
	local left, upto = max * 4 + 1000, int(math.min(now, before))
	while n < max and left > 0 do -- in rounds: a loan may bring the next of its host
		local head = call('ZRANGE', DUE, '-inf', upto, 'BYSCORE', 'LIMIT', 0, math.min(max - n, left))
		if #head == 0 then
			break
		end
		local moved = call('ZCARD', MOVED) > 0 and ask('ZMSCORE', MOVED, head) or {}
		call('ZREMRANGEBYRANK', DUE, 0, #head - 1) -- exactly these
		for i = 1, #head do
			if moved[i] then
				call('ZREM', MOVED, head[i])
			end
			lend(head[i], moved[i])
		end
		left = left - #head
	end
	if before < now and n < max then -- due before that, but put off until after it
		for _, m in ipairs(call('ZRANGE', MOVED, '-inf', int(before), 'BYSCORE', 'LIMIT', 0, max * 4 + 1000)) do
			local wake = tonumber(call('ZSCORE', DUE, m))
			if n < max and wake > before and wake <= now then
				call('ZREM', DUE, m)
				call('ZREM', MOVED, m)
				lend(m, true)
			end
		end
	end

	local wheel, fence, until_ms = {}, '0', int(now + tonumber(ARGV[5]))
	if n > 0 then
		local leases, all = {}, true
		fence = int(call('HINCRBY', META, 'last_fence', 1))
		wheel = ask('HMGET', WHEEL, ids)
		for i = 1, n do
			local name = crowd and names[ids[i]]
			leases[2 * i - 1] = ids[i]
			leases[2 * i] = name and fence .. '@' .. name or fence
			all = all and wheel[i]
		end
		if not all then -- somebody deleted feeds by hand: the others are not held up
			local there, values, kept = {}, {}, {}
			for i = 1, n do
				if wheel[i] then
					there[#there + 1], values[#values + 1] = ids[i], wheel[i]
					kept[#kept + 1] = leases[2 * i - 1]
					kept[#kept + 1] = leases[2 * i]
				elseif names[ids[i]] then
					host_return(names[ids[i]], 0)
				end
			end
			ids, wheel, leases, n = there, values, kept, #there
		end
		many('HSET', LEASES, leases)
	end
	if n > 0 then
		call('ZADD', CLAIMS, until_ms, fence)
		call('HSET', CLAIM_LEFT, fence, n)
		call('HSET', CLAIM_FEEDS, fence, worker .. '\n' .. table.concat(ids, ' '))
	end
	hosts_write()
	local first, lease = call('ZRANGE', DUE, 0, 0, 'WITHSCORES'), call('ZRANGE', CLAIMS, 0, 0, 'WITHSCORES')
	local next_ms = first[2] and tonumber(first[2])
	if lease[2] and (not next_ms or tonumber(lease[2]) < next_ms) then
		next_ms = tonumber(lease[2])
	end
	return {fence, until_ms, deferred, next_ms and int(next_ms) or '', ids, wheel}
end

-- release {id fence} ...
function ops.release()
	for i = 2, #ARGV, 2 do
		local id, fence = ARGV[i], ARGV[i + 1]
		local mine, name = lease_is(call('HGET', LEASES, id), fence)
		if mine then
			lease_return(id, name)
			claim_less(fence, 1)
		end
	end
	hosts_write()
end

-- bury worker feed kind limit quarantined: give back what a dead worker held; charge the feed, if it had it
function ops.bury()
	local worker, crashed, kind, limit, quarantined = ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5]), ARGV[6]
	local claims = call('HGETALL', CLAIM_FEEDS)
	for i = 1, #claims, 2 do
		local fence = claims[i]
		if match(claims[i + 1], '^[^\n]*') == worker then
			local wheel = lease_is(call('HGET', LEASES, crashed), fence) and call('HGET', WHEEL, crashed)
			if wheel then
				local front, http, fail_n, crash_n, rest = match(wheel, '^(%d+ %-?%d+) %d+ (%d+) (%d+) (%d+) (.*)$', STATE)
				crash_n = tonumber(crash_n) + 1
				call('HSET', WHEEL, crashed, sub(wheel, 1, STATE - 1) .. front .. ' ' .. kind .. ' ' .. http .. ' ' .. fail_n ..
					' ' .. int(crash_n) .. ' ' .. rest)
				if crash_n >= limit then
					call('ZADD', STATUS, 'NX', quarantined, crashed)
				end
			end
			claim_end(fence)
		end
	end
	hosts_write()
end
