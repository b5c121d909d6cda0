-- SPDX-License-Identifier: ISC
--
-- Records: see redis_records.c.

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
