-- SPDX-License-Identifier: ISC
--
-- Outcomes, all in one go: nothing else happens on the server between the first and the last. The borrower has looked already whose
-- leases have ended (look, in read.lua, or its own memory of what it borrowed) and sends what is good only. The epoch tells whether it
-- may still think so: when it has risen, nothing is written, and the borrower looks again. Entries do not come here: they are plain
-- commands in one transaction with this script, see redis_news.c.
--
-- commit now epoch others n worker beat batch visits runs {run}... loans {fence all n}... slots {slot n}...
--   {member of each loan, but where all of a claim come back}... {id in each slot}... plain {id feed}... extras {...}...
-- Most visits bring nothing: for these, words go from here into variadic commands without being touched. The others are extras:
-- "index id host due" "status wanted failed fails cooldown groups pushed mood took_us wait" feed, a value for each group; for a new address or
-- host url and host. pushed: its due time stays as it stands, and its loan was in no budget. took_us: what its host is known by; 0: nothing.
-- wait: so long from now on nobody asks its host.
-- others: some of the leases are not of the sender's own borrowing; then all are looked at, and the epoch rises for those who did.
-- Answers: -1 look again; or {epoch, index ...} of those whose new address another feed has.

local PACE_MIN_MS, PACE_MAX_MS, PACE_STEP_MS, PACE_NONE_MS = 1000, 600000, 10000, 50 -- FW_PACE_*

-- Where the arguments are that come next.
local at

local function take()
	at = at + 1
	return ARGV[at]
end

local function take_n()
	return tonumber(take())
end

-- A new address, or a new host: false when another feed has it; else the feed's value with it, and the host that counts it from now on.
local function url_take(id, name, feed, url, new_host, out)
	local old_host, created, old = feed_part(feed, 'host'), feed_part(feed, 'created_ms'), feed_part(feed, 'url')
	if url == old and (new_host == old_host or new_host == '') then
		return feed, name
	elseif new_host == '' or (url ~= old and call('HEXISTS', URLS, url) == 1) then
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

-- What a visit says of its host: see fw_store_pace() for the pace.
local function host_learn(h, mood, took)
	if mood == '2' then
		h.pace = math.min(math.max(2 * h.pace, PACE_MIN_MS), PACE_MAX_MS)
	elseif mood == '1' and h.pace > 0 then
		h.pace = math.floor(h.pace * PACE_STEP_MS / (PACE_STEP_MS + h.pace))
		h.pace = h.pace > PACE_NONE_MS and h.pace or 0
	end
	if h.expect == 0 then
		h.expect = took
	elseif took > 0 then
		h.expect = h.expect + math.modf((took - h.expect) / 8)
	end
end

-- A visit that has an extra: groups, failures, the address.
local function extra_take(out)
	local index, id, name, due = match(take(), '^(%d+) (%d+) (%S*) (%-?%d+)$')
	local status, wanted, failed, fail_n, cooldown, bits, pushed, mood, took, wait =
		match(take(), '^(%d+) (%d+) (%d+) (%d+) (%-?%d+) (%d+) (%d) (%d) (%d+) (%d+)$')
	local feed = take()
	local next_ms = wait ~= '0' and now_of(ARGV[2]) + tonumber(wait) or 0
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
	if pushed == '1' then
		local front, rest = match(feed, '^(%S+ %S+ %S+ %S+ )%S+( .*)$')
		due = due_of(call('HGET', FEEDS, id))
		feed = front .. due .. rest
	end
	if name then
		host_learn(host_return(name, cooldown, next_ms), mood, tonumber(took))
	elseif pushed == '1' then
		name = place_uncounted(id, feed)
	elseif out.joins and call('HGET', JOINED, id) then -- a visit before this one has moved to its host
		name = call('HGET', JOINED, id)
		call('HDEL', JOINED, id)
		host_cool(host(name), cooldown)
	elseif cooldown > 0 then -- for feeds of its host that may come
		host_cool(host(feed_part(feed, 'host')), cooldown)
	end
	if bits >= 32 then
		local url, new_host, moved = take(), take(), nil
		moved, name = url_take(id, name, feed, url, new_host, out)
		if not moved then
			out.answer[#out.answer + 1] = index
		elseif cooldown > 0 or wait ~= '0' then
			local h = host(new_host)
			h.next = math.max(h.next, next_ms)
			host_cool(h, cooldown)
		end
		feed = moved or feed
	end
	out.feeds[#out.feeds + 1] = id
	out.feeds[#out.feeds + 1] = feed
	if status ~= '0' then
		return -- what the owner set meanwhile stays
	elseif wanted ~= '0' then
		call('ZADD', STATUS, wanted, id)
	elseif name then
		due_put(place_of(id, name), due)
	else
		lone_put(id, due, cooldown)
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
	local epoch, n = call('GET', EPOCH), tonumber(ARGV[5])
	if n > 0 and epoch ~= ARGV[3] then
		return -1
	end
	local out = {groups = {}, feeds = {}, answer = {}}
	local worker, beat, batch, lines = ARGV[6], ARGV[7], ARGV[8], ARGV[9]
	local loans, slots, runs = {}, {}, {}
	at = 9
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
		for _ = 1, extras do
			extra_take(out)
		end
		many('HSET', FEEDS, out.feeds)
		for key, list in pairs(out.groups) do
			many('HSET', key, list)
		end
	end
	if beat ~= '' then
		call('HSET', WORKERS, worker, beat .. part_make('at_ms', int(now_of(ARGV[2]))))
	end
	-- "0": what the sender remembers is in doubt too
	table.insert(out.answer, 1, epoch_rises and '0' or ARGV[4] == '1' and int(tonumber(epoch) + 1) or epoch)
	epoch_rises = epoch_rises or ARGV[4] == '1'
	finish()
	return out.answer
end
