-- SPDX-License-Identifier: ISC
--
-- What both scripts begin with. KEYS[1] is the shard's "meta" key; every other key shares its tag in braces, so all of them are on
-- the node that owns this slot, and the names made here are safe on a cluster too. ARGV[1] names the operation.

local call, fmt, sub, find, match = redis.call, string.format, string.sub, string.find, string.match
local P = sub(KEYS[1], 1, -5)
local META, FEEDS, URLS, WHEEL, STATUS, FAILING = KEYS[1], P .. 'feeds', P .. 'urls', P .. 'wheel', P .. 'status', P .. 'failing'
local DUE, MOVED, PARKED, HOSTS = P .. 'due', P .. 'moved', P .. 'parked', P .. 'hosts'
local LEASES, CLAIMS, CLAIM_LEFT, CLAIM_FEEDS = P .. 'leases', P .. 'claims', P .. 'claim_left', P .. 'claim_feeds'
local ENTRIES, CONTENTS, DATES, ENTRY_N = P .. 'entries', P .. 'contents', P .. 'dates', P .. 'entry_n'
local VISITS, RUNS, WORKERS = P .. 'visits', P .. 'runs', P .. 'workers'
local GROUPS = {[1] = P .. 'error', [2] = P .. 'validators', [4] = P .. 'about', [8] = P .. 'rhythm', [16] = P .. 'redirect'}
local LARGE = '-' -- the one field of LEASES that is none
local ops = {}

-- A whole number as text: Lua would write large ones with an exponent.
local function int(n)
	return fmt('%d', n)
end

-- One variadic command over a list, in portions that fit on Lua's stack (an even number, for pairs).
local function many(cmd, key, list)
	for i = 1, #list, 4000 do
		call(cmd, key, unpack(list, i, math.min(i + 3999, #list)))
	end
end

-- The same for HMGET and its like: one answer per name.
local function ask(cmd, key, names)
	local all = {}
	if #names == 0 then
		return all
	elseif #names <= 4000 then
		return call(cmd, key, unpack(names))
	end
	for i = 1, #names, 4000 do
		for j, v in ipairs(call(cmd, key, unpack(names, i, math.min(i + 3999, #names)))) do
			all[i + j - 1] = v
		end
	end
	return all
end

-- HMGET and its like for n names that stand among the arguments.
local function ask_argv(cmd, key, from, n)
	if n == 0 then
		return {}
	elseif n <= 4000 then
		return call(cmd, key, unpack(ARGV, from, from + n - 1))
	end
	local names = {}
	for i = 1, n do
		names[i] = ARGV[from + i - 1]
	end
	return ask(cmd, key, names)
end

-- A variadic command over n arguments; of some only, where ok says which.
local function many_argv(cmd, key, from, n, ok, all)
	if ok and not all then
		local list = {}
		for i = 1, n do
			list[#list + 1] = ok[i] and ARGV[from + i - 1] or nil
		end
		many(cmd, key, list)
		return
	end
	for i = from, from + n - 1, 4000 do
		call(cmd, key, unpack(ARGV, i, math.min(i + 3999, from + n - 1)))
	end
end

-- Times may come as "0": then it is the server's clock.
local function now_of(text)
	if text ~= '0' then
		return tonumber(text)
	end
	local t = call('TIME')
	return t[1] * 1000 + math.floor(t[2] / 1000)
end

-- A value of "name=length:bytes" members: the bytes of one of them.
local function part(value, want)
	local at = 1
	while true do
		local _, last, name, len = find(value, '^([%w_]+)=(%d+):', at)
		if not last then
			return nil
		elseif name == want then
			return sub(value, last + 1, last + len)
		end
		at = last + len + 2
	end
end

local function part_make(name, bytes)
	return name .. '=' .. #bytes .. ':' .. bytes .. '\n'
end

-- A value in WHEEL: what the store keeps, in fixed columns, then the feed's state as the last visit left it:
--   1-19 place of its last visit and how many were stored with it, 21-34 last_new_ms, 36-37 groups that are there, from 39
--   "fence due_at_ms last_kind http_status fail_n crash_n last_visit_ms last_ok_ms expect_us expect_dev_us =why"
local STATE = 39
local NEVER = '0000000000000/00000'

local function due_of(wheel)
	return match(wheel, '^%d+ (%-?%d+)', STATE)
end

-- Is this a lease under that fence? And the host it counts for, nil: none.
local function lease_is(lease, fence)
	if lease == fence then
		return true, nil
	elseif lease and sub(lease, 1, #fence + 1) == fence .. '@' then
		return true, sub(lease, #fence + 2)
	end
	return false, nil
end

-- A feed's visits: the line of its last one and what stands in it; walks on by the place in front.
local function visit_at(place, id, gone)
	local from, n = tonumber(sub(place, 1, 13)), tonumber(sub(place, 15, 19))
	if n == 0 or from + n <= gone then
		return nil
	end
	local first = math.max(from - gone, 0)
	for i, line in ipairs(call('LRANGE', VISITS, first, from - gone + n - 1)) do
		if sub(line, 21, 21 + #id) == id .. ' ' then
			return line, first + i - 1
		end
	end
	return nil
end
