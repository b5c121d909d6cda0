-- SPDX-License-Identifier: ISC
--
-- Lending. An active feed is in exactly one place: in line (waiting, by the time it wakes), PARKED (due, but its host has no budget), or
-- in the set LENT of a claim. In these it stands as "id" when it is the only feed of its host, else as "id@host". Only what was lent to
-- bring its entries is always "id" in LENT: it is in no budget.
--
-- The line is a list for each ten seconds, DUE with the number of the slot, for those that wake when they are due; SLOTS says which lists
-- there are. What a slot holds is in no order, so the slot that has begun and not ended is sorted into SOON, where each has its exact
-- time; there stand also those that wake at another time than they are due: put off for a pause their host asked for, or holding the
-- turn of a crowded host. MOVED has their due times. Lists cost a tenth of what one large sorted set does, and a fleet that is behind
-- takes from slots that have ended. JOINED has feeds that stand in a list by their number only, though their host has got others since.
-- Nobody finds a certain feed in a long list, so who asks for feeds by their numbers first makes sets of the lists they are in: DUE with
-- the slot and ":set". SLOW has, by their due times, feeds that took too long for who met them in line, and SLOW_us how long.
--
-- A host with several feeds has a budget: feeds lent (busy) and the time of its next loan. Who has all that is lent of it (holder) may
-- have more than others, and ahead of that time, but not before a pause is over that the host asked for (cool). The gap between loans
-- and what visits take are learned (pace, expect). A feed that finds no budget left is parked, and
-- from then on at most one feed of the host stands in line for all of them: it has the turn. Whoever returns a loan gives the turn on,
-- so parked feeds are met again without being looked at.
--
-- Who borrowed remembers what it needs to write its outcomes without asking again. EPOCH rises with all that may make that
-- memory wrong: a lease taken back, or a change to a feed while it is lent. It is a key of its own, for it is watched.

local epoch_rises = false
local line, line_n = {}, 0 -- who gets in line: by slot, written at the end

local function due_put(m, ms)
	local slot = slot_of(ms)
	local list = line[slot]
	if not list then
		list = {}
		line[slot] = list
	end
	list[#list + 1] = m
	line_n = line_n + 1
end

-- The only feed of its host: it is put off while the pause that the host asked for lasts.
local function lone_put(id, due, cool)
	if cool > tonumber(due) then
		call('ZADD', SOON, int(cool), id)
		call('ZADD', MOVED, due, id)
	else
		due_put(id, due)
	end
end

local function line_write()
	local slots = {}
	for slot, list in pairs(line) do
		many('RPUSH', DUE .. slot, list)
		slots[#slots + 1] = slot
		slots[#slots + 1] = slot
	end
	many('ZADD', SLOTS, slots)
	line, line_n = {}, 0
end

-- ---- hosts: read at first use, written back at the end ------------------------------------------------------------------------

local hosts = {}

local function host(name)
	local h = hosts[name]
	if h == nil then
		local v = call('HGET', HOSTS, name)
		h = {feed_n = 0, busy = 0, turn = 0, parked = 0, next = 0, sole = '0', pace = 0, expect = 0, cool = 0, holder = '0'}
		if v then
			local feed_n, busy, turn, parked, next_ok, sole, rest = match(v, '^(%d+) (%d+) (%d+) (%d+) (%-?%d+) (%d+)(.*)$')
			h.feed_n, h.busy, h.turn, h.parked = tonumber(feed_n), tonumber(busy), tonumber(turn), tonumber(parked)
			h.next, h.sole = tonumber(next_ok), sole
			if rest ~= '' then
				local pace, expect, cool, holder = match(rest, '^ (%d+) (%d+) (%-?%d+) (%-?%d+)$')
				h.pace, h.expect, h.cool, h.holder = tonumber(pace), tonumber(expect), tonumber(cool), holder
			end
		end
		hosts[name] = h
	end
	return h
end

local function hosts_write()
	local set, del = {}, {}
	for name, h in pairs(hosts) do
		if h.feed_n > 0 then
			local v = fmt('%d %d %d %d %d %s', h.feed_n, math.max(h.busy, 0), math.max(h.turn, 0), math.max(h.parked, 0), h.next, h.sole)
			if h.pace > 0 or h.expect > 0 or h.cool > 0 or h.holder ~= '0' then -- what most hosts do not have
				v = v .. fmt(' %d %d %d %s', h.pace, h.expect, h.cool, h.holder)
			end
			set[#set + 1] = name
			set[#set + 1] = v
		else
			del[#del + 1] = name
		end
	end
	many('HSET', HOSTS, set)
	many('HDEL', HOSTS, del)
end

-- The earliest parked feed of a host steps into line, unless another one of it stands there.
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
	call('ZADD', SOON, int(math.max(tonumber(due), h.next)), id .. '@' .. name)
	call('ZADD', MOVED, due, id .. '@' .. name)
	h.parked = h.parked - 1
	h.turn = h.turn + 1
end

local function host_cool(h, cooldown)
	h.next = math.max(h.next, cooldown)
	h.cool = math.max(h.cool, cooldown)
end

local function host_return(name, cooldown, next_ms)
	local h = host(name)
	h.busy = h.busy - 1
	if h.busy <= 0 then
		h.holder = '0'
	end
	h.next = math.max(h.next, next_ms)
	host_cool(h, cooldown)
	turn_give(name, h)
	return h
end

local function slow_put(m, due, us)
	call('ZADD', SLOW, due, m)
	call('ZADD', SLOW .. '_us', us, m)
end

local function slow_off(m)
	return call('ZREM', SLOW, m) == 1 and call('ZREM', SLOW .. '_us', m) == 1
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
		local score, due, late = call('ZSCORE', SOON, sole), call('ZSCORE', MOVED, sole), call('ZSCORE', SLOW, sole)
		local fence = not score and not late and lent_by(sole, nil)
		if score then
			call('ZREM', SOON, sole)
			call('ZADD', SOON, score, sole .. '@' .. name)
		elseif late then
			local us = call('ZSCORE', SLOW .. '_us', sole)
			slow_off(sole)
			slow_put(sole .. '@' .. name, late, us)
		elseif fence then
			call('SREM', LENT .. fence, sole)
			call('SADD', LENT .. fence, sole .. '@' .. name)
			h.busy = h.busy + 1
			epoch_rises = true
		elseif not call('ZSCORE', STATUS, sole) then
			call('HSET', JOINED, sole, name)
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

-- What a script has changed without writing it at once.
local function finish()
	line_write()
	hosts_write()
	if epoch_rises then
		call('INCR', EPOCH)
	end
end

-- ---- on and off the wheel -------------------------------------------------------------------------------------------------------

-- Take a feed that waits, and is due then, out of its place; a lease is left alone.
local function wheel_off(id, name, due)
	call('HDEL', JOINED, id)
	for _, m in ipairs({id, id .. '@' .. name}) do
		if call('ZREM', SOON, m) == 1 then
			if call('ZREM', MOVED, m) == 1 and m ~= id then
				local h = host(name)
				h.turn = h.turn - 1
				turn_give(name, h)
			end
			return
		elseif slow_off(m) or call('SREM', DUE .. slot_of(due) .. ':set', m) == 1 or call('LREM', DUE .. slot_of(due), 1, m) == 1 then
			return
		end
	end
	if call('ZREM', PARKED, id) == 1 then
		local h = host(name)
		call('ZREM', PARKED .. ':' .. name, id)
		h.parked = h.parked - 1
	end
end

-- Where a feed stands whose loan was in no budget.
local function place_uncounted(id, feed)
	local name = feed_part(feed, 'host')
	return host(name).sole ~= id and name or nil
end

-- A lease has ended without a visit: back to its place, if the feed is still active.
local function lease_return(m, feed)
	local id, name = place_split(m)
	if name then
		host_return(name, 0, 0)
	end
	if feed and not call('ZSCORE', STATUS, id) then
		due_put(name and m or place_of(id, place_uncounted(id, feed)), due_of(feed))
	end
	epoch_rises = true
end

local function claim_drop(fence)
	call('ZREM', CLAIMS, fence)
	call('HDEL', BORROWERS, fence)
end

-- Some leases of a claim are back.
local function lent_less(fence, list)
	many('SREM', LENT .. fence, list)
	if call('EXISTS', LENT .. fence) == 0 then
		claim_drop(fence)
	end
end

-- Take back all that one claim lent.
local function claim_end(fence)
	local list, ids = call('SMEMBERS', LENT .. fence), {}
	for i, m in ipairs(list) do
		ids[i] = place_split(m)
	end
	for i, feed in ipairs(ask('HMGET', FEEDS, ids)) do
		lease_return(list[i], feed)
	end
	call('DEL', LENT .. fence)
	claim_drop(fence)
end
