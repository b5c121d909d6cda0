-- SPDX-License-Identifier: ISC
--
-- The library that servers run: these files in a row, loaded once, so that a call finds its
-- functions made. KEYS[1] of a call is the tag of a cell ("{feedwheel/7}:"), and never a key
-- itself: all keys of the cell begin with it, and so lie on the node that runs this. ARGV: the
-- operation, the channel, who we are there; what follows is taken one by one.

local call, fmt, sub, find, match -- set by the first call: there is no string while this is loaded
local P, BASE, ARGV, at           -- of this call
local CELLS = 16 -- RS_CELLS
local GROUPS = {'address', 'own', 'error', 'validators', 'meta', 'rhythm', 'redirect'}
local ops = {}

-- A row of `state`: "status fail_n crash_n due visit new shard host moves last rest". What a visit
-- writes comes first, numbers have fixed widths, so that a commit takes a row apart without reading
-- it. visit: the time of the last one; last: its number in `visits`; moves: how often the feed went
-- to another cell; rest: C's, see pack.c. Times and hosts are texts here: Lua's numbers are not
-- wide enough.
local STATE = '^(%d) (%d+) (%d+) (%S+) (%S+) (%S+) (%d+) (%S+) (%d+) (%d+) (.*)$'
local STATE_MAKE = '%s %010d %010d %s %s %s %04d %s %010d %020d %s'
local TIME = '%020d'

local function take()
	at = at + 1
	return ARGV[at]
end

local function take_n()
	return tonumber(take())
end

-- A whole number as text: Lua would write large ones with an exponent.
local function int(n)
	return fmt('%d', n)
end

local function now()
	local t = call('TIME')
	return t[1] * 1000 + math.floor(t[2] / 1000)
end

-- One variadic command over a list, in portions that fit on Lua's stack (an even number, for
-- pairs).
local function many(cmd, key, list)
	for i = 1, #list, 4000 do
		call(cmd, key, unpack(list, i, math.min(i + 3999, #list)))
	end
end

-- The same for HMGET and its like: one answer per name.
local function ask(cmd, key, names)
	local all, n = {}, #names
	if n == 0 then
		return all
	elseif n <= 4000 then
		return call(cmd, key, unpack(names))
	end
	for i = 1, n, 4000 do
		for j, v in ipairs(call(cmd, key, unpack(names, i, math.min(i + 3999, n)))) do
			all[i + j - 1] = v
		end
	end
	return all
end

-- Members, "name=length:bytes" each, from a place in a value on: the bytes of one of them.
local function part(value, want, from)
	while true do
		local _, last, name, len = find(value, '^([%w_]+)=(%d+):', from)
		if not last then
			return nil
		elseif name == want then
			return sub(value, last + 1, last + len)
		end
		from = last + len + 2
	end
end

local function state_split(row)
	local status, fail, crash, due, visit, new, shard, host, moves, last, rest = match(row or '', STATE)
	if status then
		return status, tonumber(fail), tonumber(crash), due, visit, new, tonumber(shard), host, tonumber(moves), tonumber(last), rest
	end
end

local function state_make(...)
	return fmt(STATE_MAKE, ...)
end

-- A feed's visits, from a number back: the function gets number and row, and ends the walk by
-- returning true.
local function history(k, last, f)
	while last ~= 0 do
		local id = int(last)
		local row = call('HGET', k .. 'visits', id)
		if not row or f(id, row) then
			return
		end
		last = tonumber(match(row, '^%d+ (%d+)'))
	end
end

local function cell(n)
	return '{' .. BASE .. '/' .. n .. '}:'
end

-- The schedule of these shards (a set) changed: their owners are told.
local function changed(k, shards)
	for shard in pairs(shards) do
		call('HINCRBY', k .. 'version', shard, 1)
	end
	if next(shards) then
		call('PUBLISH', ARGV[2], ARGV[3])
	end
end
