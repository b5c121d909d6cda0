-- SPDX-License-Identifier: ISC
--
-- Older schemas. A store is made over in portions, each a step of this script, so the server answers others meanwhile; "upgrade" in META
-- says how far it has come, and whoever opens the store goes on from there. The first step takes the old keys away, so workers of the
-- old version find nothing to lend and no lease of theirs; what they had is lent again. Numbers stay what they were.
--
-- In schema 1 one sorted set was the line, and leases and visits were values of their own. In schema 2 an entry's content was a value of
-- its own, and one sorted set had the dates of all. Schema 3 knew of no slow feeds, and a host's value was shorter; values of feeds and lines of
-- visits are too until they are written again, and are read as they are.

local PORTION = 500

local function old(name)
	return P .. 'old:' .. name
end

-- What schemas 1 to 3 called otherwise. The names are new so that workers of the old version, who would not understand what stands there,
-- find nothing.
local function names_over()
	for from, to in pairs({hosts = HOSTS, claims = CLAIMS}) do
		if call('EXISTS', P .. from) == 1 and call('EXISTS', to) == 0 then
			call('RENAME', P .. from, to)
		end
	end
end

local function line_over(names)
	for from, to in pairs(names) do
		call('ZUNIONSTORE', to, 2, P .. from, to, 'AGGREGATE', 'MIN')
		call('UNLINK', P .. from)
	end
end

local function begin()
	for _, name in ipairs({'feeds', 'wheel', 'due', 'moved', 'visits'}) do
		if call('EXISTS', P .. name) == 1 then
			call('RENAME', P .. name, old(name))
		end
	end
	call('UNLINK', P .. 'leases', CLAIMS, P .. 'claim_left', P .. 'claim_feeds', PARKED)
	local runs = call('HGETALL', RUNS)
	for i = 1, #runs, 2 do
		call('HSET', RUNS, runs[i], int(tonumber(runs[i + 1]) + 1))
	end
	call('HSET', META, 'schema', 2, 'epoch', 1, 'last_visit', call('HGET', META, 'visits_gone'))
	return 'hosts 0'
end

-- Nothing is lent, so nothing counts.
local function hosts_over(cursor)
	local page = call('HSCAN', HOSTS, cursor, 'COUNT', PORTION)
	for i = 1, #page[2], 2 do
		local h = host(page[2][i])
		h.busy, h.turn, h.parked = 0, 0, 0
		call('UNLINK', PARKED .. ':' .. page[2][i])
	end
	return page[1] == '0' and 'feeds 0' or 'hosts ' .. page[1]
end

-- One feed: its members and its wheel, in fixed columns, become one value.
local function feed_over(id, members, wheel)
	local numbers, words = match(wheel, '^([-%d ]*)(.*)$', 39)
	local why = sub(words, 1, 1) == '=' and part_make('why', sub(words, 2)) or ''
	local feed = fmt('- %d %d ', tonumber(sub(wheel, 21, 34)), tonumber(sub(wheel, 36, 37))) .. match(numbers, '^(.-) *$') .. '\n' ..
		why .. members
	call('HSET', FEEDS, id, feed)
	if call('ZSCORE', STATUS, id) then
		return
	end
	local name, wake, due = part(members, 'host'), call('ZSCORE', old('due'), id), call('ZSCORE', old('moved'), id)
	if wake and due then
		call('ZADD', SOON, wake, id)
		call('ZADD', MOVED, due, id)
	else
		due_put(place_of(id, host(name).sole ~= id and name or nil), due_of(feed))
	end
end

local function feeds_over(from)
	local ids, last = {}, tonumber(call('HGET', META, 'last_feed'))
	local shards, shard = tonumber(call('HGET', META, 'shards')), tonumber(call('HGET', META, 'shard'))
	for seq = from + 1, math.min(from + PORTION, last) do
		ids[#ids + 1] = int((seq - 1) * shards + shard + 1)
	end
	local members, wheel = ask('HMGET', old('feeds'), ids), ask('HMGET', old('wheel'), ids)
	for i, id in ipairs(ids) do
		if members[i] and wheel[i] then
			feed_over(id, members[i], wheel[i])
		end
	end
	return from + PORTION < last and 'feeds ' .. int(from + PORTION) or 'visits 0'
end

-- A visit's line: its feed, and what follows that, without line ends.
local function visit_over(text)
	local feed, found, rest = match(text, '^%S+ (%d+) (%d+ %d+ )(.*)$')
	if not feed then
		return nil
	end
	local numbers, words = match(rest, '^([-%d ]*)(.*)$')
	words = string.gsub(string.gsub(words, '\\', '\\\\'), '\n', '\\n')
	return feed, found .. numbers .. words
end

-- A feed is in a batch once.
local function visits_over(from)
	local gone = tonumber(call('HGET', META, 'visits_gone'))
	local lines, n = call('LRANGE', old('visits'), from, from + PORTION - 1), call('LLEN', old('visits'))
	local texts, seen, first = {}, {}, 1
	local function batch_write(upto)
		if upto >= first then
			local name = 'm' .. int(gone + from + first)
			call('HSET', VISITS, name, table.concat(texts))
			call('ZADD', ORDER, int(gone + from + first), name)
			for feed, rest in pairs(seen) do
				call('HSET', FEEDS, feed, name .. ' ' .. rest)
			end
		end
		texts, seen, first = {}, {}, upto + 1
	end
	for i, text in ipairs(lines) do
		local feed, rest = visit_over(text)
		if feed and seen[feed] then
			batch_write(i - 1)
		end
		local value = feed and call('HGET', FEEDS, feed)
		if value then
			local place
			place, seen[feed] = match(value, '^(%S+) (.*)$')
			texts[#texts + 1] = '\n' .. feed .. ' ' .. place .. ' 0 ' .. rest
		else
			texts[#texts + 1] = '\n'
		end
	end
	batch_write(#lines)
	call('HSET', META, 'last_visit', int(gone + n))
	return from + PORTION < n and 'visits ' .. int(from + PORTION) or 'done'
end

-- From schema 2 on; or from 1, whose line stands where it belongs already.
local function begin_3()
	line_over({slots = SLOTS, soon = SOON})
	for _, name in ipairs({'entries', 'contents', 'dates'}) do
		if call('EXISTS', P .. name) == 1 then
			call('RENAME', P .. name, old(name))
		end
	end
	for _, fence in ipairs(call('ZRANGE', CLAIMS, 0, -1)) do
		claim_end(fence)
	end
	call('SET', EPOCH, int(tonumber(call('HGET', META, 'epoch')) + 1))
	call('HDEL', META, 'epoch')
	call('HSET', META, 'schema', 3)
	return 'entries 0'
end

-- Row and content become one value, and the date stands with the key and in the list of its day.
local function entries_over(cursor)
	local page = call('HSCAN', old('entries'), cursor, 'COUNT', PORTION)
	local ids, rows, names, known = {}, {}, {}, {}
	for i = 1, #page[2], 2 do
		ids[#ids + 1] = page[2][i]
		names[#names + 1] = fmt('%015d', tonumber(page[2][i]))
	end
	local contents, dates = ask('HMGET', old('contents'), ids), ask('ZMSCORE', old('dates'), names)
	for i, id in ipairs(ids) do
		local row = page[2][2 * i]
		local feed, seen = match(row, '^(%d+) (%d+) ')
		local members = find(row, 'key=', 1, true)
		local date = dates[i] or seen
		rows[#rows + 1] = id
		rows[#rows + 1] = row .. (contents[i] or '')
		known[feed] = known[feed] or {}
		table.insert(known[feed], part(row, 'key', members))
		table.insert(known[feed], part(row, 'hash', members) .. ' ' .. id .. ' ' .. date)
		days_add(id, date)
	end
	many('HSET', ENTRIES, rows)
	for feed, list in pairs(known) do
		many('HSET', P .. 'keys:' .. feed, list)
	end
	many('HDEL', old('entries'), ids)
	many('HDEL', old('contents'), ids)
	return (page[1] ~= '0' or call('EXISTS', old('entries')) == 1) and 'entries ' .. page[1] or 'done'
end

-- From schema 3 on. What was lent is lent again. Where hosts say which shard a feed is on, they stay what they were.
local function begin_4()
	line_over({queue = SLOTS, next = SOON})
	for _, fence in ipairs(call('ZRANGE', CLAIMS, 0, -1)) do
		claim_end(fence)
	end
	epoch_rises = true
	if call('HGET', META, 'shards') ~= '1' then
		call('HSET', META, 'exact_hosts', 1)
	end
	call('HSET', META, 'schema', 4)
	return 'done'
end

-- upgrade -> {schema, what is next, or ''}
function ops.upgrade()
	if tonumber(call('HGET', META, 'schema')) < 4 then
		names_over()
	end
	local stage, at = match(call('HGET', META, 'upgrade') or '', '^(%a+) ?(%d*)')
	if stage == 'hosts' then
		stage = hosts_over(at)
	elseif stage == 'feeds' then
		stage = feeds_over(tonumber(at))
	elseif stage == 'visits' then
		stage = visits_over(tonumber(at))
		if stage == 'done' then
			call('UNLINK', old('feeds'), old('wheel'), old('due'), old('moved'), old('visits'))
			call('HDEL', META, 'visits_gone')
			stage = begin_3()
		end
	elseif stage == 'entries' then
		stage = entries_over(at)
	elseif call('HGET', META, 'schema') == '1' then
		stage = begin()
	elseif call('HGET', META, 'schema') == '2' then
		stage = begin_3()
	else
		stage = 'done'
	end
	if stage == 'done' and call('HGET', META, 'schema') == '3' then
		stage = begin_4()
	end
	if stage == 'done' then
		call('UNLINK', old('entries'), old('contents'), old('dates'))
		call('HDEL', META, 'upgrade')
	else
		call('HSET', META, 'upgrade', stage)
	end
	finish()
	return {tonumber(call('HGET', META, 'schema')), stage == 'done' and '' or stage}
end
