-- SPDX-License-Identifier: ISC
--
-- Leases, addresses, ids, records and events.
--
--	meta     hash: schema_version, cells (1), visit_n, the last ids (entry_id, visit_id, feed_id, lease_id),
--	         merge_n: the number of merges; changes_pruned_id. entry_id also numbers changes
--	urls     hash, address to the feed that has it
--	reserved_ids  hash, the id below a range of reserved entry ids to the time of the reservation
--	workers  hash, lease to "until_ms lease_ms idle name"
--	lease:ID exists while the lease does: commits watch it
--	event_ids  hash, number of a range of ids to the last serial number reserved (events.c)
--	shards   hash, shard to "lease quiet_since_ms"; lease 0, or absent: free

-- Two tables by shard: its lease, and its quiet_since_ms.
local function lease_shards_read()
	local lease, quiet, all = {}, {}, call('HGETALL', P .. 'shards')
	for i = 1, #all, 2 do
		local s = tonumber(all[i])
		lease[s], quiet[s] = match(all[i + 1], '^(%d+) (%S+)$')
	end
	return lease, quiet
end

-- End these leases (a set). Their shards are free, and quiet since t.
local function leases_finish(over, t)
	for id in pairs(over) do
		call('HDEL', P .. 'workers', id)
		call('DEL', P .. 'lease:' .. id)
	end
	if next(over) then
		for s, lease in pairs((lease_shards_read())) do
			if over[lease] then
				call('HSET', P .. 'shards', s, '0 ' .. t)
			end
		end
	end
end

local function next_list()
	local list = {}
	for i = 1, next_int() do
		list[i] = next_arg()
	end
	return list
end

-- heartbeat lease name lease_ms idle full expected late -> nil: the lease is over; or {lease, living,
-- idle, {shard quiet ...}}
function ops.heartbeat()
	local id, name, lease_ms, idle, full, t = next_arg(), next_arg(), next_int(), next_arg(), next_arg(), now()
	local expected, late = next_int(), next_arg()
	if id ~= '0' and call('HEXISTS', P .. 'workers', id) == 0 then
		return false
	elseif id == '0' then
		id = int(call('HINCRBY', P .. 'meta', 'lease_id', 1))
		call('SET', P .. 'lease:' .. id, '')
	end
	call('HSET', P .. 'workers', id, int(t + lease_ms) .. ' ' .. lease_ms .. ' ' .. idle .. ' ' .. name)
	local all, over, living, idle_n = call('HGETALL', P .. 'workers'), {}, 0, 0
	for i = 1, #all, 2 do
		local ends, is_idle = match(all[i + 1], '^(%S+) %S+ (%d)')
		if all[i] ~= id and tonumber(ends) < t and late == '0' then
			over[all[i]] = true
		else
			living, idle_n = living + 1, idle_n + (all[i] ~= id and is_idle == '1' and 1 or 0)
		end
	end
	leases_finish(over, int(t))
	local lease, quiet = lease_shards_read()
	local held, n, free_n = {}, 0, 0
	for s = 0, 1023 do
		n = n + (lease[s] == id and 1 or 0)
		free_n = free_n + ((not lease[s] or lease[s] == '0') and 1 or 0)
	end
	-- as store_take_count() in driver.h
	local wants = math.ceil(1024 / math.max(living, expected)) - n
	wants = full == '1' and 0 or idle == '1' and math.max(wants, math.ceil(free_n / (idle_n + 1))) or wants
	for s = 0, 1023 do
		if wants > 0 and (lease[s] or '0') == '0' then
			quiet[s], lease[s], wants = quiet[s] or '0', id, wants - 1
			call('HSET', P .. 'shards', s, id .. ' ' .. quiet[s])
		end
		if lease[s] == id then
			held[#held + 1], held[#held + 2] = int(s), quiet[s]
		end
	end
	return {id, living, idle_n, held}
end

-- release lease worker leave {shard quiet}... feed max: release shards; with leave end the lease; with
-- lease 0 end all leases of the worker. A visit of the feed (0: none) killed the worker: after max such
-- visits it is quarantined
function ops.release()
	local id, worker, leave, over = next_arg(), next_arg(), next_arg(), {}
	for _ = 1, next_int() do
		local shard, quiet = next_arg(), next_arg()
		if match(call('HGET', P .. 'shards', shard) or '', '^%d+') == id then
			call('HSET', P .. 'shards', shard, '0 ' .. quiet)
		end
	end
	local all = call('HGETALL', P .. 'workers')
	for i = 1, #all, 2 do
		if (all[i] == id and leave == '1') or (id == '0' and match(all[i + 1],
			'^%S+ %S+ %S+ (.*)$') == worker) then
			over[all[i]] = true
		end
	end
	leases_finish(over, int(now()))
	feed_crashed(next_arg(), next_int())
end

-- ---- addresses and ids -------------------------------------------------------------------------

-- raise name n other: new ids are above n. If name was below it, other ('': none) is not below it either
function ops.raise()
	local name, n, other = next_arg(), next_arg(), next_arg()
	if meta_raise(name, n) == 1 and other ~= '' then
		meta_raise(other, n)
	end
end

-- ids_reserve n old_ms -> the id below the range: reserve n entry ids, which the commit stores and then
-- removes from `reserved_ids`. Until then readers that follow by id see nothing above the range. Ranges
-- that were reserved more than old_ms ago are given up.
function ops.ids_reserve()
	local n, old, t = next_int(), next_int(), now()
	local last = call('HINCRBY', P .. 'meta', 'entry_id', int(n)) - n
	if n > 0 then
		call('HSET', P .. 'reserved_ids', int(last), int(t))
	end
	local all = call('HGETALL', P .. 'reserved_ids')
	for i = 1, #all, 2 do
		if tonumber(all[i + 1]) < t - old then
			call('INCR', P .. 'revoked')
			call('HDEL', P .. 'reserved_ids', all[i])
		end
	end
	return last
end

-- ---- records -----------------------------------------------------------------------------------

-- The orders' version: orders.c. 0: the record is no order.
local function orders_raise(step)
	if step ~= '0' then
		call('INCRBY', P .. 'orders', step)
	end
end

-- orders_raise step -> the version
function ops.orders_raise()
	return call('INCRBY', P .. 'orders', next_arg())
end

local function record_store(name, ms, ends, value)
	call('HSET', P .. 'records', name, ms .. ' ' .. ends .. ' ' .. value)
	call('ZADD', P .. 'record_names', 0, name)
	if ends == '-' then
		call('ZREM', P .. 'record_ends', name)
	else
		call('ZADD', P .. 'record_ends', ends, name)
	end
end

-- Has the kind a later key, as long as this one? A reader that goes by key would miss this one.
local function kind_is_past(name)
	local kind = match(name, '^%S+')
	for _, later in ipairs(call('ZRANGEBYLEX', P .. 'record_names', '(' .. name, '(' .. kind .. '!')) do
		if #later == #name then
			return true
		end
	end
	return false
end

-- record_put name value at until|- if_absent wake step -> 1: a record exists and stays
function ops.record_put()
	local name, value, ms, ends, if_absent, wake = next_arg(), next_arg(), next_arg(), next_arg(), next_arg(),
		next_arg()
	if if_absent == '1' and wake == '1' and kind_is_past(name) then
		return 1
	end
	local was = if_absent == '1' and call('HGET', P .. 'records', name)
	local over = was and tonumber(match(was, '^%S+ (%-?%d+) '))
	if was and not (over and over <= tonumber(ms)) then
		return 1
	end
	record_store(name, ms, ends, value)
	if wake == '1' then
		call('PUBLISH', ARGV[2], ARGV[3])
	end
	orders_raise(next_arg())
	return 0
end

local function record_drop(name)
	call('ZREM', P .. 'record_names', name)
	call('ZREM', P .. 'record_ends', name)
	return call('HDEL', P .. 'records', name)
end

-- record_remove name any value step -> 0: no such record (with that value, unless any is 1)
function ops.record_remove()
	local name, any, value = next_arg(), next_arg(), next_arg()
	local was = call('HGET', P .. 'records', name)
	if not was or (any == '0' and match(was, '^%S+ %S+ (.*)$') ~= value) then
		return 0
	end
	orders_raise(next_arg())
	return record_drop(name)
end

-- record_prune now max -> the number of removed records
function ops.record_prune()
	local names = call('ZRANGEBYSCORE', P .. 'record_ends', '-inf', next_arg(), 'LIMIT', 0, next_arg())
	for _, name in ipairs(names) do
		record_drop(name)
	end
	return #names
end

-- ---- events ------------------------------------------------------------------------------------

local function events_drop(name, ids)
	call_batched('HDEL', P .. name, ids)
	call_batched('ZREM', P .. name .. '_ids', ids)
	return #ids
end

-- The event of a dead letter: between its time and its reason.
local function dead_letter_event(row)
	return match(row or '', '^%S+ ([^\n]*)\n')
end

-- Put an event that is new. True: another event has its id.
local function event_put_one(id, ms, row, new)
	if call('HSETNX', P .. 'incoming', id, row) == 0 then
		return call('HGET', P .. 'incoming', id) ~= row
	end
	call('ZADD', P .. 'incoming_ids', ms, id)
	new[#new + 1] = id
end

local function dead_letter_put_one(id, ms, row, new)
	local was = call('HGET', P .. 'dead_letters', id)
	if was and dead_letter_event(was) ~= dead_letter_event(row) then
		return true
	end
	call('HSET', P .. 'dead_letters', id, row)
	if not was then
		call('ZADD', P .. 'dead_letters_ids', ms, id)
		new[#new + 1] = id
	end
end

-- event_put {id ms row}... {id ms row}... -> {nth ...}: events, then dead letters; ms orders them.
-- nth, from 0: those whose id belongs to another event; then none is stored
function ops.event_put()
	local new, clashes, nth = {incoming = {}, dead_letters = {}}, {}, 0
	for _, name in ipairs({'incoming', 'dead_letters'}) do
		local put = name == 'incoming' and event_put_one or dead_letter_put_one
		for _ = 1, next_int() do
			local id, ms, row = next_arg(), next_arg(), next_arg()
			if put(id, ms, row, new[name]) then
				clashes[#clashes + 1] = nth
			end
			nth = nth + 1
		end
	end
	for name, ids in pairs(#clashes > 0 and new or {}) do
		events_drop(name, ids)
	end
	return clashes
end

-- The highest serial number from first to last of a stored event or dead letter, or one more: the
-- ids have more digits than Lua's numbers. nil: none.
local function serial_stored(name, first, last, epoch)
	local function ms(serial)
		return int(epoch + math.floor(serial / 4096))
	end
	local id = call('ZREVRANGEBYSCORE', P .. name .. '_ids', ms(last), ms(first), 'LIMIT', 0, 1)[1]
	local serial = id and math.floor(tonumber(id) / 1024) + 1
	return serial and serial >= first and serial or nil
end

-- event_ids first epoch range clashes -> {number first}: reserve a range of ids (driver.h)
function ops.event_ids()
	local least, epoch, range, clashes = next_int(), next_int(), next_int(), next_arg()
	local all, high, number, lowest = call('HGETALL', P .. 'event_ids'), {}, nil, nil
	for i = 1, #all, 2 do
		high[tonumber(all[i])] = tonumber(all[i + 1])
	end
	for i = 1023, 0, -1 do
		if not lowest or (high[i] or 0) < lowest then
			number, lowest = i, high[i] or 0
		end
	end
	local first = math.max(lowest + 1, least, (now() - epoch) * 4096)
	local stored
	repeat
		local a = serial_stored('incoming', first, first + range - 1, epoch)
		local b = serial_stored('dead_letters', first, first + range - 1, epoch)
		stored = (a or b) and math.max(a or 0, b or 0)
		first = stored and stored + 1 or first
	until not stored or first > 2 ^ 53 - range
	if first <= 2 ^ 53 - range then
		call('HSET', P .. 'event_ids', number, int(first + range - 1))
		call('HINCRBY', P .. 'meta', 'event_clashes', clashes)
	end
	return {number, int(first)}
end

-- event_remove {id}...: dead letters
function ops.event_remove()
	events_drop('dead_letters', next_list())
end

-- event_prune name before max -> the number removed: looks at the first max rows, and removes those
-- whose own time (the first field of a row) is before `before`
function ops.event_prune()
	local name, before, gone = next_arg(), next_int(), {}
	local ids = call('ZRANGE', P .. name .. '_ids', 0, next_int() - 1)
	for i, row in ipairs(read_batched('HMGET', P .. name, ids)) do
		if not row or tonumber(match(row, '^%S+')) < before then
			gone[#gone + 1] = ids[i]
		end
	end
	return events_drop(name, gone)
end

-- make schema -> the schema and the number of parts of the store, which is created if missing
function ops.make()
	if call('HSETNX', P .. 'meta', 'schema_version', next_arg()) == 1 then
		call('HSET', P .. 'meta', 'cells', 1)
	end
	return call('HMGET', P .. 'meta', 'schema_version', 'cells')
end
