-- SPDX-License-Identifier: ISC
--
-- Outcomes, all in one go: nothing else happens on the server between the first and the last. The borrower has looked already whose
-- leases have ended (look, in read.lua, or its own memory of what it borrowed) and sends what is good only. "epoch" tells whether it
-- may still think so: when it has risen, nothing is written, and the borrower looks again.
--
-- commit now epoch others n stream_max entry_base shards shard worker beat batch visits runs {run}... loans {fence all n}... slots {slot n}...
--   {member of each loan, but where all of a claim come back}... {id in each slot}... plain {id feed}... extras {...}...
-- Most visits bring nothing: for these, words go from here into variadic commands without being touched. The others are extras:
-- "index id host due" "status wanted failed fails cooldown groups entries" feed, a value for each group; for a new address url and
-- host; for each entry "n" key hash date row content url title (new) or "c" key hash date row content id (changed).
-- others: some of the leases are not of the sender's own borrowing; then all are looked at, and the epoch rises for those who did.
-- Answers: -1 look again; or {epoch, {index, rc, new_n, changed_n}...} for what was found otherwise than it was sent.

-- Where the arguments are that come next.
local at

local function take()
	at = at + 1
	return ARGV[at]
end

local function take_n()
	return tonumber(take())
end

-- The entries of one visit that are new or changed, into lists that are written at the end.
local function entries_take(id, count, out)
	local now, new_n, changed_n, keys, rows, dates, contents = out.now, 0, 0, {}, out.rows, out.dates, out.contents
	local now_text, argv, stream = int(now), ARGV, out.stream ~= '0' and P .. 'new'
	local new_head = id .. ' ' .. now_text .. ' ' .. now_text .. ' 1 '
	for _ = 1, count do
		local key, hash, date, row, content = argv[at + 2], argv[at + 3], argv[at + 4], argv[at + 5], argv[at + 6]
		local eid
		if date == '' or tonumber(date) > now then
			date = now_text
		end
		if argv[at + 1] == 'n' then
			out.seq = out.seq + 1
			eid = int(out.seq * out.shards + out.shard)
			row = new_head .. row
			new_n = new_n + 1
			if stream then
				call('XADD', stream, 'MAXLEN', '~', out.stream, '*', 'entry', eid, 'feed', id, 'url', argv[at + 7], 'title', argv[at + 8])
			end
			at = at + 8
		else
			eid = argv[at + 7]
			at = at + 7
			local seen, revision = match(call('HGET', ENTRIES, eid) or '', '^%d+ (%d+) %d+ (%d+) ')
			if seen then
				date = tonumber(date) > tonumber(seen) and seen or date
				row = id .. ' ' .. seen .. ' ' .. now_text .. ' ' .. int(tonumber(revision) + 1) .. ' ' .. row
				changed_n = changed_n + 1
				call('HDEL', CONTENTS, eid)
			else -- retention took it, and it stays away
				eid = '0'
			end
		end
		keys[#keys + 1] = key
		keys[#keys + 1] = hash .. ' ' .. eid
		if eid ~= '0' then
			local n = #rows
			rows[n + 1], rows[n + 2] = eid, row
			dates[n + 1], dates[n + 2] = date, fmt('%015d', tonumber(eid))
			if content ~= '' then
				contents[#contents + 1] = eid
				contents[#contents + 1] = content
			end
		end
	end
	many('HSET', P .. 'keys:' .. id, keys)
	if new_n > 0 then
		call('HINCRBY', ENTRY_N, id, new_n)
		out.new_n = out.new_n + new_n
	end
	return new_n, changed_n
end

-- A new address: false when another feed has it; else the feed's value with it, and the host that counts it from now on.
local function url_take(id, name, feed, url, new_host, out)
	local old_host, created, old = feed_part(feed, 'host'), feed_part(feed, 'created_ms'), feed_part(feed, 'url')
	if url == old then
		return feed, name
	elseif new_host == '' or call('HEXISTS', URLS, url) == 1 then
		return false, name
	end
	local front = part_make('host', old_host) .. part_make('created_ms', created) .. part_make('url', old)
	local own = own_at(feed)
	call('HDEL', URLS, old)
	call('HSET', URLS, url, id)
	out.joins = true
	if old_host ~= new_host then -- the loan has been given back to the old one; nothing is counted at the new one
		host_leave(old_host, id)
		name = host_join(new_host, id)
	end
	return sub(feed, 1, own - 1) .. part_make('host', new_host) .. part_make('created_ms', created) .. part_make('url', url) ..
		sub(feed, own + #front), name
end

-- A visit that has an extra: groups, failures, the address, entries.
local function extra_take(out)
	local index, id, name, due = match(take(), '^(%d+) (%d+) (%S*) (%-?%d+)$')
	local status, wanted, failed, fail_n, cooldown, bits, entries = match(take(), '^(%d+) (%d+) (%d+) (%d+) (%-?%d+) (%d+) (%d+)$')
	local feed, new_n, changed_n = take(), 0, 0
	name, cooldown, bits = name ~= '' and name or nil, tonumber(cooldown), tonumber(bits)
	for _, bit in ipairs({1, 2, 4, 8, 16}) do
		if math.floor(bits / bit) % 2 == 1 then
			local list = out.groups[GROUPS[bit]] or {}
			out.groups[GROUPS[bit]] = list
			list[#list + 1] = id
			list[#list + 1] = take()
		end
	end
	if fail_n ~= '0' then
		call('ZADD', FAILING, fail_n, id)
	elseif failed ~= '0' then
		call('ZREM', FAILING, id)
	end
	if name then
		host_return(name, cooldown)
	elseif out.joins and call('HGET', JOINED, id) then -- a visit before this one has moved to its host
		name = call('HGET', JOINED, id)
		call('HDEL', JOINED, id)
		host(name).next = math.max(host(name).next, cooldown)
	end
	if bits >= 32 then
		local url, new_host, moved = take(), take(), nil
		moved, name = url_take(id, name, feed, url, new_host, out)
		if not moved then
			out.answer[#out.answer + 1] = {index, 'taken', 0, 0}
		elseif name then
			host(name).next = math.max(host(name).next, cooldown)
		end
		feed = moved or feed
	end
	if entries ~= '0' then
		new_n, changed_n = entries_take(id, tonumber(entries), out)
		out.answer[#out.answer + 1] = {index, '', new_n, changed_n}
		if new_n > 0 then
			local place, rest = match(feed, '^(%S+) %S+ (.*)$')
			feed = place .. ' ' .. int(out.now) .. ' ' .. rest
		end
	end
	out.feeds[#out.feeds + 1] = id
	out.feeds[#out.feeds + 1] = feed
	if status ~= '0' then
		return -- what the owner set meanwhile stays
	elseif wanted ~= '0' then
		call('ZADD', STATUS, wanted, id)
	elseif not name and cooldown > tonumber(due) then -- the only feed of its host is put off here
		call('ZADD', SOON, int(cooldown), id)
		call('ZADD', MOVED, due, id)
	else
		due_put(place_of(id, name), due)
	end
end

-- Somebody else may have brought them back, and then the epoch has not risen.
local function still_lent(loans, from)
	for _, loan in ipairs(loans) do
		for i = from, from + loan[3] - 1 do
			if call('SISMEMBER', LENT .. loan[1], ARGV[i]) == 0 then
				return false
			end
		end
		from = from + loan[3]
	end
	return true
end

local function visits_put(n, batch, lines, runs)
	local first = int(call('HINCRBY', META, 'last_visit', n) - n + 1)
	call('HSET', VISITS, batch, lines)
	call('ZADD', ORDER, first, batch)
	call('HINCRBY', META, 'visit_n', n)
	for _, run in ipairs(runs) do
		call('HSETNX', RUNS, run, first)
	end
end

function ops.commit()
	local epoch, n = call('HGET', META, 'epoch'), tonumber(ARGV[5])
	if n > 0 and epoch ~= ARGV[3] then
		return -1
	end
	local out = {now = now_of(ARGV[2]), stream = ARGV[6], seq = tonumber(ARGV[7]), shards = tonumber(ARGV[8]), shard = tonumber(ARGV[9]),
		rows = {}, contents = {}, dates = {}, new_n = 0, groups = {}, feeds = {}, answer = {}}
	local worker, beat, batch, lines = ARGV[10], ARGV[11], ARGV[12], ARGV[13]
	local loans, slots, runs = {}, {}, {}
	at = 13
	for i = 1, take_n() do
		runs[i] = take()
	end
	for i = 1, take_n() do
		loans[i] = {take(), take() == '1', take_n()}
	end
	for i = 1, take_n() do
		slots[i] = {take(), take_n()}
	end
	if ARGV[4] == '1' and not still_lent(loans, at + 1) then
		return -1
	end
	if n > 0 then
		visits_put(n, batch, lines, runs)
	end
	for _, loan in ipairs(loans) do
		local fence = loan[1]
		if loan[2] then
			call('DEL', LENT .. fence)
			claim_drop(fence)
		else
			many_argv('SREM', LENT .. fence, at + 1, loan[3])
			at = at + loan[3]
			if call('EXISTS', LENT .. fence) == 0 then
				claim_drop(fence)
			end
		end
	end
	local known = {}
	for _, slot in ipairs(slots) do
		many_argv('RPUSH', DUE .. slot[1], at + 1, slot[2])
		at = at + slot[2]
		known[#known + 1] = slot[1]
		known[#known + 1] = slot[1]
	end
	many('ZADD', SLOTS, known)
	local plain = take_n()
	many_argv('HSET', FEEDS, at + 1, 2 * plain)
	at = at + 2 * plain

	local extras = take_n()
	if extras > 0 then
		if out.shards == 1 then
			out.seq = tonumber(call('HGET', META, 'last_entry'))
		end
		for _ = 1, extras do
			extra_take(out)
		end
		many('HSET', FEEDS, out.feeds)
		for key, list in pairs(out.groups) do
			many('HSET', key, list)
		end
		many('HSET', ENTRIES, out.rows)
		many('HSET', CONTENTS, out.contents)
		many('ZADD', DATES, out.dates)
		if out.new_n > 0 then
			call('HINCRBY', META, 'entry_n', out.new_n)
			if out.shards == 1 then
				call('HSET', META, 'last_entry', int(out.seq))
			end
		end
	end
	if beat ~= '' then
		call('HSET', WORKERS, worker, beat .. part_make('at_ms', int(out.now)))
	end
	-- "0": what the sender remembers is in doubt too
	table.insert(out.answer, 1, epoch_rises and '0' or ARGV[4] == '1' and int(tonumber(epoch) + 1) or epoch)
	epoch_rises = epoch_rises or ARGV[4] == '1'
	finish()
	return out.answer
end
