-- SPDX-License-Identifier: ISC
--
-- What is one for the whole store, in the cell "meta": leases, numbers, records and events; and the
-- fences, which each cell has of its own shards. Lease, shards and fences: lease.c tells in which
-- order they are written.
--
--	workers  hash, lease to "until_ms lease_ms idle name"
--	shards   hash, shard to "lease epoch quiet_since_ms"; lease 0, or absent: free
--	stale    set of the shards whose cell may have another fence yet (cluster only)
--	fence    hash of each cell, shard to "lease epoch"

local ROW = '^(%d+) (%d+) (%S+)$'

local function fence(k, shard, lease, epoch)
	local was = match(call('HGET', k .. 'fence', shard) or '', '%d+$')
	if was and tonumber(was) > tonumber(epoch) then
		return 0
	end
	call('HSET', k .. 'fence', shard, lease .. ' ' .. epoch)
	return 1
end

-- fence {shard lease epoch}... -> 1: so it is; 0: a later epoch has come
function ops.fence()
	local answer = {}
	for i = 1, take_n() do
		answer[i] = fence(P, take(), take(), take())
	end
	return answer
end

-- fenced {shard epoch}...: the cells know
function ops.fenced()
	for _ = 1, take_n() do
		local shard, epoch = take(), take()
		if select(2, match(call('HGET', P .. 'shards', shard) or '', ROW)) == epoch then
			call('SREM', P .. 'stale', shard)
		end
	end
end

local one

local function shard_put(shard, lease, epoch, quiet)
	call('HSET', P .. 'shards', shard, lease .. ' ' .. epoch .. ' ' .. quiet)
	if one then
		fence(cell(shard % CELLS), shard, lease, epoch)
	else
		call('SADD', P .. 'stale', shard)
	end
end

-- Of all shards: whose, epoch, quiet.
local function shards_read()
	local lease, epoch, quiet, all = {}, {}, {}, call('HGETALL', P .. 'shards')
	for i = 1, #all, 2 do
		local s = tonumber(all[i])
		lease[s], epoch[s], quiet[s] = match(all[i + 1], ROW)
	end
	return lease, epoch, quiet
end

-- {shard lease epoch}... of those that are stale.
local function stale_list()
	local out = {}
	for _, shard in ipairs(call('SMEMBERS', P .. 'stale')) do
		local lease, epoch = match(call('HGET', P .. 'shards', shard), ROW)
		out[#out + 1], out[#out + 2], out[#out + 3] = shard, lease, epoch
	end
	return out
end

-- Leases that are over: their shards are free, and as quiet as now.
local function free(over, t)
	local lease, epoch = shards_read()
	for s = 0, 1023 do
		if lease[s] and over[lease[s]] then
			shard_put(s, '0', int(epoch[s] + 1), t)
		end
	end
	for id in pairs(over) do
		call('HDEL', P .. 'workers', id)
	end
end

-- beat one lease name lease_ms idle full -> nil: it is over; or {lease, living, idle, {stale},
-- {shard quiet ...}}
function ops.beat()
	one = take() == '1'
	local id, name, lease_ms, idle, full, t = take(), take(), take_n(), take(), take(), now()
	if id ~= '0' and call('HEXISTS', P .. 'workers', id) == 0 then
		return false
	elseif id == '0' then
		id = int(call('HINCRBY', P .. 'meta', 'lease_id', 1))
	end
	call('HSET', P .. 'workers', id, int(t + lease_ms) .. ' ' .. lease_ms .. ' ' .. idle .. ' ' .. name)
	local all, over, living, idle_n = call('HGETALL', P .. 'workers'), {}, 0, 0
	for i = 1, #all, 2 do
		local ends, is_idle = match(all[i + 1], '^(%S+) %S+ (%d)')
		if all[i] ~= id and tonumber(ends) < t then
			over[all[i]] = true
		else
			living, idle_n = living + 1, idle_n + (all[i] ~= id and is_idle == '1' and 1 or 0)
		end
	end
	if next(over) then
		free(over, int(t))
	end
	local lease, epoch, quiet = shards_read()
	local part = full == '1' and 0 or idle == '1' and 1024 or math.ceil(1024 / living)
	local held, n = {}, 0
	for s = 0, 1023 do
		n = n + (lease[s] == id and 1 or 0)
	end
	for s = 0, 1023 do
		if n < part and (not lease[s] or lease[s] == '0') then
			quiet[s], lease[s], n = quiet[s] or '0', id, n + 1
			shard_put(s, id, int((epoch[s] or 0) + 1), quiet[s])
		end
		if lease[s] == id then
			held[#held + 1], held[#held + 2] = int(s), quiet[s]
		end
	end
	return {id, living, idle_n, stale_list(), held}
end

-- give one lease worker leave {shard quiet}... -> {stale}
function ops.give()
	one = take() == '1'
	local id, worker, leave, over, t = take(), take(), take(), {}, int(now())
	for _ = 1, take_n() do
		local shard, quiet = take(), take()
		local lease, epoch = match(call('HGET', P .. 'shards', shard) or '', ROW)
		if lease == id then
			shard_put(shard, '0', int(epoch + 1), quiet)
		end
	end
	if id ~= '0' then
		over[id] = leave == '1' or nil
	else
		local all = call('HGETALL', P .. 'workers')
		for i = 1, #all, 2 do
			over[all[i]] = match(all[i + 1], '^%S+ %S+ %S+ (.*)$') == worker or nil
		end
	end
	if next(over) then
		free(over, t)
	end
	return stale_list()
end

-- ---- numbers -----------------------------------------------------------------------------------

-- On a cluster entries are numbered in another cell than they are stored in: a range is taken,
-- stored, and told (used). Until then nobody shows what is above it. numbers visits entries old_ms
-- -> {last visit, last entry, {ranges taken before old_ms ...}}
function ops.numbers()
	local visits, entries, old, t, gone = take(), take_n(), take_n(), now(), {}
	local visit = call('HINCRBY', P .. 'meta', 'visit_id', visits)
	local entry = call('HINCRBY', P .. 'meta', 'entry_id', int(entries))
	if entries > 0 then
		call('HSET', P .. 'taken', int(entry - entries), int(t))
	end
	local all = call('HGETALL', P .. 'taken')
	for i = 1, #all, 2 do
		if tonumber(all[i + 1]) < t - old then
			gone[#gone + 1] = all[i]
		end
	end
	return {visit - visits, entry - entries, gone}
end

-- moved: a feed goes to another cell, or into another feed
function ops.moved()
	call('HINCRBY', P .. 'meta', 'moved', 1)
end

-- floor n: what was numbered below is not stored here any more
function ops.floor()
	local n = take()
	if tonumber(call('HGET', P .. 'meta', 'floor') or 0) < tonumber(n) then
		call('HSET', P .. 'meta', 'floor', n)
	end
end

-- ---- records -----------------------------------------------------------------------------------

-- record_put name value at until|- if_absent wake -> 1: one was there, and stays
function ops.record_put()
	local name, value, ms, ends, if_absent, wake = take(), take(), take(), take(), take(), take()
	local was = if_absent == '1' and call('HGET', P .. 'records', name)
	local over = was and tonumber(match(was, '^%S+ (%-?%d+) '))
	if was and not (over and over <= tonumber(ms)) then
		return 1
	end
	call('HSET', P .. 'records', name, ms .. ' ' .. ends .. ' ' .. value)
	call('ZADD', P .. 'record_names', 0, name)
	if ends == '-' then
		call('ZREM', P .. 'record_ends', name)
	else
		call('ZADD', P .. 'record_ends', ends, name)
	end
	if wake == '1' then
		call('PUBLISH', ARGV[2], ARGV[3])
	end
	return 0
end

local function record_drop(name)
	call('ZREM', P .. 'record_names', name)
	call('ZREM', P .. 'record_ends', name)
	return call('HDEL', P .. 'records', name)
end

-- record_remove name any value -> 0: there is none (with that value)
function ops.record_remove()
	local name, any, value = take(), take(), take()
	local was = call('HGET', P .. 'records', name)
	if not was or (any == '0' and match(was, '^%S+ %S+ (.*)$') ~= value) then
		return 0
	end
	return record_drop(name)
end

-- record_prune now max -> how many went
function ops.record_prune()
	local names = call('ZRANGEBYSCORE', P .. 'record_ends', '-inf', take(), 'LIMIT', 0, take())
	for _, name in ipairs(names) do
		record_drop(name)
	end
	return #names
end

-- ---- events ------------------------------------------------------------------------------------

-- event_put {id ms row}... dead {id ms row}...: rows by number, in order of their time
function ops.event_put()
	for _ = 1, take_n() do
		local id, ms, row = take(), take(), take()
		if call('HSETNX', P .. 'incoming', id, row) == 1 then
			call('ZADD', P .. 'incoming_ids', ms, id)
		end
	end
	for _ = 1, take_n() do
		local id, ms, row = take(), take(), take()
		call('HSET', P .. 'incoming_dead', id, row)
		call('ZADD', P .. 'incoming_dead_ids', ms, id)
	end
end

-- event_remove {id}...
function ops.event_remove()
	for _ = 1, take_n() do
		local id = take()
		call('HDEL', P .. 'incoming_dead', id)
		call('ZREM', P .. 'incoming_dead_ids', id)
	end
end

-- event_prune name before max: those whose own time (the number at the row's begin) is older, of
-- the first so many -> how many
function ops.event_prune()
	local name, before, gone = P .. take(), take_n(), {}
	local ids = call('ZRANGE', name .. '_ids', 0, take_n() - 1)
	for i, row in ipairs(ask('HMGET', name, ids)) do
		if not row or tonumber(match(row, '^%S+')) < before then
			gone[#gone + 1] = ids[i]
		end
	end
	many('HDEL', name, gone)
	many('ZREM', name .. '_ids', gone)
	return #gone
end

-- create schema -> the schema that is there
function ops.make()
	call('HSETNX', P .. 'meta', 'schema', take())
	return call('HGET', P .. 'meta', 'schema')
end
