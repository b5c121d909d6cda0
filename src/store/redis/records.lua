-- SPDX-License-Identifier: ISC
--
-- Records (see redis_records.c), and events that are set aside (redis_events.c).

local RECORDS, NAMES, ENDS = P .. 'records', P .. 'record_names', P .. 'record_ends'

-- record_put name value at until|- if_absent -> 1: one was there, and stays
function ops.record_put()
	local name, value, at, ends, if_absent = unpack(ARGV, 2, 6)
	local was = if_absent == '1' and call('HGET', RECORDS, name)
	local over = was and tonumber(match(was, '^%S+ (%-?%d+) '))
	if was and not (over and over <= tonumber(at)) then
		return 1
	end
	call('HSET', RECORDS, name, at .. ' ' .. ends .. ' ' .. value)
	call('ZADD', NAMES, 0, name)
	if ends == '-' then
		call('ZREM', ENDS, name)
	else
		call('ZADD', ENDS, ends, name)
	end
	return 0
end

local function record_drop(name)
	call('ZREM', NAMES, name)
	call('ZREM', ENDS, name)
	return call('HDEL', RECORDS, name)
end

-- record_remove name [value] -> 0: there is none (with that value)
function ops.record_remove()
	local name, value = ARGV[2], ARGV[3]
	local was = value and call('HGET', RECORDS, name)
	if value and (not was or match(was, '^%S+ %S+ (.*)$') ~= value) then
		return 0
	end
	return record_drop(name)
end

-- record_prune now max -> how many went
function ops.record_prune()
	local names = call('ZRANGEBYSCORE', ENDS, '-inf', ARGV[2], 'LIMIT', 0, ARGV[3])
	for _, name in ipairs(names) do
		record_drop(name)
	end
	return #names
end

-- event_bury ms "id " member: in place of the one with that id. Those of a millisecond are in order of their ids.
function ops.event_bury()
	local key, ms, id, member = P .. 'incoming_dead', ARGV[2], ARGV[3], ARGV[4]
	local lo, hi = call('ZCOUNT', key, '-inf', '(' .. ms), call('ZCOUNT', key, '-inf', ms)
	while lo < hi do
		local mid = math.floor((lo + hi) / 2)
		if sub(call('ZRANGE', key, mid, mid)[1], 1, #id) < id then
			lo = mid + 1
		else
			hi = mid
		end
	end
	local was = call('ZRANGE', key, lo, lo)[1]
	if was and sub(was, 1, #id) == id then
		call('ZREM', key, was)
	end
	call('ZADD', key, ms, member)
end
