-- SPDX-License-Identifier: ISC
--
-- Rows as another store had them, in one go. What is there already is passed over.
--
-- load {f id url host created due status fail_n last_new groups members state {value of each group}}...
--      {e feed id key hash date row content}... {k feed key hash}... {v id feed run new changed line}...
-- Answers 0, or {id, other}: a feed whose id or url is that of another one, and then nothing was written.

local function feed_conflict(id, url)
	local feed, other = call('HGET', FEEDS, id), call('HGET', URLS, url)
	if feed and part(feed, 'url') ~= url then
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
	call('HSET', FEEDS, id, part_make('host', name) .. part_make('created_ms', created) .. part_make('url', url) .. ARGV[a + 9])
	call('HSET', WHEEL, id, fmt('%s %014d %02d ', NEVER, tonumber(last_new), groups) .. ARGV[a + 10])
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
		call('ZADD', DUE, due, place_of(id, counted))
	else
		call('ZADD', STATUS, status, id)
	end
	rises('last_feed', id)
end

local function entry_load(a)
	local feed, id, key, hash, date, row, content = unpack(ARGV, a, a + 6)
	local keys = P .. 'keys:' .. feed
	if call('HEXISTS', FEEDS, feed) == 0 or call('HEXISTS', keys, key) == 1 or call('HEXISTS', ENTRIES, id) == 1 then
		return
	end
	call('HSET', keys, key, hash .. ' ' .. id)
	call('HSET', ENTRIES, id, row)
	call('ZADD', DATES, date, fmt('%015d', tonumber(id)))
	if content ~= '' then
		call('HSET', CONTENTS, id, content)
	end
	call('HINCRBY', ENTRY_N, feed, 1)
	call('HINCRBY', META, 'entry_n', 1)
	rises('last_entry', id)
	if tonumber(id) < tonumber(call('HGET', META, 'first_entry')) then
		call('HSET', META, 'first_entry', id)
	end
end

-- A visit stands at the place of its number; what is missing between is empty.
local function visit_load(a)
	local id, feed, run, new_n, changed_n, line = unpack(ARGV, a, a + 5)
	local at, n, gone = tonumber(id) - 1, call('LLEN', VISITS), tonumber(call('HGET', META, 'visits_gone'))
	local wheel = call('HGET', WHEEL, feed)
	if not wheel then
		return
	elseif n == 0 then
		gone = at
	end
	while gone > at do
		call('LPUSH', VISITS, '')
		gone, n = gone - 1, n + 1
	end
	while gone + n <= at do
		call('RPUSH', VISITS, '')
		n = n + 1
	end
	call('HSET', META, 'visits_gone', int(gone))
	if call('LINDEX', VISITS, at - gone) ~= '' then
		return
	end
	local newest = sub(wheel, 1, 13) < fmt('%013d', at) or sub(wheel, 1, 19) == NEVER
	call('LSET', VISITS, at - gone, (newest and sub(wheel, 1, 19) or NEVER) .. ' ' .. feed .. ' ' .. new_n .. ' ' .. changed_n .. ' ' ..
		line)
	if newest then
		call('HSET', WHEEL, feed, fmt('%013d/%05d', at, 1) .. sub(wheel, 20))
	end
	call('HINCRBY', META, 'visit_n', 1)
	if run ~= '0' then
		call('HSETNX', RUNS, run, int(at))
	end
end

function ops.load()
	local a = 2
	local width = {e = 8, k = 4, v = 7}
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
	hosts_write()
	return 0
end
