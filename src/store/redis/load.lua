-- SPDX-License-Identifier: ISC
--
-- Rows as another store had them, in one go. What is there already is passed over.
--
-- load {f id url host created due status fail_n last_new groups members state {value of each group}}...
--      {e feed id key hash date row}... {k feed key hash}... {v id feed run new changed line}...
-- Answers 0, or {id, other}: a feed whose id or url is that of another one, and then nothing was written.

local function feed_conflict(id, url)
	local feed, other = call('HGET', FEEDS, id), call('HGET', URLS, url)
	if feed and feed_part(feed, 'url') ~= url then
		return id
	elseif other and other ~= id then
		return other
	end
	return nil
end

local function bits_of(groups)
	local n = 0
	for _, bit in ipairs({1, 2, 4, 8, 16}) do
		n = n + math.floor(groups / bit) % 2
	end
	return n
end

local function rises(name, n)
	if tonumber(n) > tonumber(call('HGET', META, name)) then
		call('HSET', META, name, n)
	end
end

local function feed_load(a)
	local id, url, name, created, due, status = ARGV[a], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ARGV[a + 5]
	local fail_n, last_new, groups = ARGV[a + 6], ARGV[a + 7], tonumber(ARGV[a + 8])
	local value = a + 11
	if call('HEXISTS', FEEDS, id) == 1 then
		return
	end
	call('HSET', URLS, url, id)
	local text, members = match(ARGV[a + 10], '^([^\n]*)\n(.*)$')
	call('HSET', FEEDS, id, fmt('- %s %d ', last_new, groups) .. text .. '\n' .. members .. part_make('host', name) ..
		part_make('created_ms', created) .. part_make('url', url) .. ARGV[a + 9])
	for _, bit in ipairs({1, 2, 4, 8, 16}) do
		if math.floor(groups / bit) % 2 == 1 then
			call('HSET', GROUPS[bit], id, ARGV[value])
			value = value + 1
		end
	end
	if fail_n ~= '0' then
		call('ZADD', FAILING, fail_n, id)
	end
	local counted = host_join(name, id)
	if status == '0' then
		due_put(place_of(id, counted), due)
	else
		call('ZADD', STATUS, status, id)
	end
	rises('last_feed', id)
end

local function entry_load(a)
	local feed, id, key, hash, date, row = unpack(ARGV, a, a + 5)
	local keys = P .. 'keys:' .. feed
	if call('HEXISTS', FEEDS, feed) == 0 or call('HEXISTS', keys, key) == 1 or call('HEXISTS', ENTRIES, id) == 1 then
		return
	end
	call('HSET', keys, key, hash .. ' ' .. id .. ' ' .. date)
	call('HSET', ENTRIES, id, row)
	days_add(id, date)
	call('HINCRBY', ENTRY_N, feed, 1)
	call('HINCRBY', META, 'entry_n', 1)
	rises('last_entry', id)
	if tonumber(id) < tonumber(call('HGET', META, 'first_entry')) then
		call('HSET', META, 'first_entry', id)
	end
end

-- Visits of one load go into batches by their numbers; what is missing between is empty.
local GAP = 100
local batch -- that is being made: first, last, lines

local function batch_write()
	if batch then
		call('HSET', VISITS, batch.name, table.concat(batch.lines))
		call('ZADD', ORDER, int(batch.first), batch.name)
	end
	batch = nil
end

-- The batch that may hold this number: its name, its lines, and where the line with that number begins.
local known = {}

local function batch_with(number)
	local found = call('ZREVRANGEBYSCORE', ORDER, int(number), '-inf', 'WITHSCORES', 'LIMIT', 0, 1)
	local name, first = found[1], tonumber(found[2])
	if not name then
		return nil
	end
	if known.name ~= name then
		local lines = call('HGET', VISITS, name)
		known = {name = name, lines = lines, at = {}}
		for pos in string.gmatch(lines, '()\n') do
			known.at[#known.at + 1] = pos
		end
	end
	return name, known.lines, known.at[number - first + 1]
end

local function visit_load(a)
	local number, feed, run, new_n, changed_n, text = tonumber(ARGV[a]), unpack(ARGV, a + 1, a + 5)
	local value = call('HGET', FEEDS, feed)
	if not value then
		return
	end
	local place, rest = match(value, '^(%S+) (.*)$')
	local name, lines, at
	if batch and place ~= batch.name and number > batch.last and number - batch.last <= GAP and
		#call('ZRANGEBYSCORE', ORDER, int(batch.last), int(number), 'LIMIT', 0, 1) == 0 then
		name = batch.name
	else
		batch_write()
		name, lines, at = batch_with(number)
		if at and find(lines, '^\n[^\n]', at) then
			return -- it is there
		end
	end
	-- a feed is in a batch once, or its chain would not find the others
	local newest = not at and (place == '-' or tonumber(call('ZSCORE', ORDER, place) or 0) < number)
	local own = batch and batch.name or 'l' .. int(number)
	text = '\n' .. feed .. ' ' .. (newest and place or '-') .. ' 0 ' .. new_n .. ' ' .. changed_n .. ' ' .. text
	if at then
		call('HSET', VISITS, name, sub(lines, 1, at - 1) .. text .. sub(lines, at + 1))
		known = {}
	else
		batch = batch or {name = own, first = number, last = number - 1, lines = {}}
		for _ = batch.last + 2, number do
			batch.lines[#batch.lines + 1] = '\n'
		end
		batch.lines[#batch.lines + 1] = text
		batch.last = number
	end
	if newest then
		call('HSET', FEEDS, feed, own .. ' ' .. rest)
	end
	call('HINCRBY', META, 'visit_n', 1)
	rises('last_visit', int(number))
	if run ~= '0' then
		call('HSETNX', RUNS, run, int(number))
	end
end

function ops.load()
	local a = 2
	local width = {e = 7, k = 4, v = 7}
	while ARGV[a] == 'f' do
		local other = feed_conflict(ARGV[a + 1], ARGV[a + 2])
		if other then
			return {ARGV[a + 1], other}
		end
		a = a + 12 + bits_of(tonumber(ARGV[a + 9]))
	end
	a = 2
	while a <= #ARGV do
		local kind = ARGV[a]
		if kind == 'f' then
			feed_load(a + 1)
			a = a + 12 + bits_of(tonumber(ARGV[a + 9]))
		else
			if kind == 'e' then
				entry_load(a + 1)
			elseif kind == 'k' and call('HEXISTS', FEEDS, ARGV[a + 1]) == 1 then
				call('HSETNX', P .. 'keys:' .. ARGV[a + 1], ARGV[a + 2], ARGV[a + 3] .. ' 0')
			elseif kind == 'v' then
				visit_load(a + 1)
			end
			a = a + width[kind]
		end
	end
	batch_write()
	finish()
	return 0
end
