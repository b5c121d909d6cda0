-- SPDX-License-Identifier: ISC
--
-- What both scripts begin with. KEYS[1] is the shard's "meta" key; every other key shares its tag in braces, so all of them are on
-- the node that owns this slot, and the names made here are safe on a cluster too. ARGV[1] names the operation.

local call, fmt, sub, find, match = redis.call, string.format, string.sub, string.find, string.match
local P = sub(KEYS[1], 1, -5)
local META, FEEDS, URLS, STATUS, FAILING = KEYS[1], P .. 'feeds', P .. 'urls', P .. 'status', P .. 'failing'
local EPOCH, DUE, SLOTS, SOON, MOVED, JOINED = P .. 'epoch', P .. 'due:', P .. 'line', P .. 'waiting', P .. 'moved', P .. 'joined'
local PARKED, SLOW, HOSTS, CLAIMS = P .. 'parked', P .. 'slow', P .. 'budgets', P .. 'loans'
local BORROWERS, LENT = P .. 'borrowers', P .. 'lent:'
local ENTRIES, DATES, DAYS, ENTRY_N, STORING = P .. 'entries', P .. 'dates:', P .. 'days', P .. 'entry_n', P .. 'storing'
local VISITS, ORDER, RUNS, WORKERS = P .. 'visits', P .. 'visit_order', P .. 'runs', P .. 'workers'
local GROUPS = {[1] = P .. 'error', [2] = P .. 'validators', [4] = P .. 'about', [8] = P .. 'rhythm', [16] = P .. 'redirect'}
local SLOT_MS, DAY_MS = 10000, 86400000
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

-- A variadic command over n arguments from ARGV[from] on.
local function many_argv(cmd, key, from, n)
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

-- Members, "name=length:bytes" each, from a place in a value on: the bytes of one of them.
local function part(value, want, at)
	at = at or 1
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

-- A value in FEEDS: a line with what every visit writes, "place last_new_ms groups fence due_at_ms last_kind http_status fail_n crash_n
-- last_visit_ms last_ok_ms expect_us expect_dev_us expect_parts", then members: why, host, created_ms, url, and what the owner sets.
-- The place is the batch in VISITS that has its last visit, "-": none. What schema 3 has left has no expect_parts.
local function due_of(feed)
	return match(feed, '^%S+ %S+ %S+ %S+ (%S+)')
end

local function expect_of(feed)
	return tonumber((match(feed, '^%S+ %S+ %S+ %S+ %S+ %S+ %S+ %S+ %S+ %S+ %S+ (%d+)'))) or 0
end

local function feed_part(feed, want)
	return part(feed, want, find(feed, '\n', 1, true) + 1)
end

-- Where the members begin that visits leave alone.
local function own_at(feed)
	local at = find(feed, '\n', 1, true) + 1
	local _, last, len = find(feed, '^why=(%d+):', at)
	return last and last + len + 2 or at
end

-- Where a feed stands in line: "id", or "id@host" when its host has others. And back again.
local function place_of(id, name)
	return name and id .. '@' .. name or id
end

local function place_split(m)
	local at = find(m, '@', 2, true)
	if at then
		return sub(m, 1, at - 1), sub(m, at + 1)
	end
	return m, nil
end

local function slot_of(ms)
	return int(math.floor(tonumber(ms) / SLOT_MS))
end

-- An entry's date is known with its key, and in the list of its day: DATES with the number of the day, a line "id date" for each. These
-- lists only grow; what is gone, or has got another date, is passed over by who reads them, until it is swept.
local function days_add(id, date)
	local day = int(math.floor(tonumber(date) / DAY_MS))
	call('APPEND', DATES .. day, id .. ' ' .. date .. '\n')
	call('ZADD', DAYS, day, day)
end

-- How a feed is lent under this fence: as which member of the claim's set; nil: not.
local function lent_as(fence, id, name)
	if call('SISMEMBER', LENT .. fence, id) == 1 then
		return id
	elseif name and call('SISMEMBER', LENT .. fence, id .. '@' .. name) == 1 then
		return id .. '@' .. name
	end
	return nil
end

-- The claim that holds a feed, and as what; nil: none does.
local function lent_by(id, name)
	for _, fence in ipairs(call('ZRANGE', CLAIMS, 0, -1)) do
		local m = lent_as(fence, id, name)
		if m then
			return fence, m
		end
	end
	return nil
end

-- The line of a feed's visit in a batch, and where in the batch it is.
local function visit_in(batch, id)
	local lines = batch ~= '-' and call('HGET', VISITS, batch)
	local first = lines and find(lines, '\n' .. id .. ' ', 1, true)
	if not first then
		return nil
	end
	local line = match(lines, '[^\n]*', first + 1)
	return line, match(line, '^%d+ (%S+)'), lines, first
end
