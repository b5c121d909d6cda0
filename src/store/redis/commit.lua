-- SPDX-License-Identifier: ISC
--
-- Outcomes, all in one go: nothing else happens on the server between the first and the last. What can refuse (fences, addresses that
-- are taken) is looked at before anything is written.
--
-- commit now unsure n stream_max entry_base shards shard worker beat runs {run}... {id fence due state visit extra}... {extras}...
-- A visit without entries, changed groups or the like has an empty extra. Else it is "status fail_n cooldown groups entries arguments" and
-- what belongs to it stands behind all outcomes, in their order: a value for each group; for a new address url and host; for each
-- entry "n" key hash date row content url title (new) or "c" key hash date row content id (changed).
-- Answers are told only for what is not plain: {index, rc, new_n, changed_n} ...

-- Where the arguments of the extras are.
local at

local function take()
	at = at + 1
	return ARGV[at]
end

-- It was stored by this very call, whose answer got lost: what was found then.
local function stored_before(id, fence, gone)
	local wheel = call('HGET', WHEEL, id)
	if not wheel or match(wheel, '^%d+', STATE) ~= fence then
		return nil
	end
	local line = visit_at(sub(wheel, 1, 19), id, gone)
	if not line then
		return {0, 0}
	end
	local new_n, changed_n = match(line, '^%d+ (%d+) (%d+)', 21)
	return {tonumber(new_n), tonumber(changed_n)}
end

-- The entries of one visit that are new or changed, into lists that are written at the end.
local function entries_take(id, count, out)
	local now, new_n, changed_n, keys = out.now, 0, 0, {}
	for _ = 1, count do
		local kind, key, hash, date, row, content = take(), take(), take(), take(), take(), take()
		local eid
		date = date ~= '' and math.min(tonumber(date), now) or now
		if kind == 'n' then
			local url, title = take(), take()
			out.seq = out.seq + 1
			eid = int(out.seq * out.shards + out.shard)
			row = out.head(id, now, now, 1) .. row
			new_n = new_n + 1
			if out.stream ~= '0' then
				call('XADD', P .. 'new', 'MAXLEN', '~', out.stream, '*', 'entry', eid, 'feed', id, 'url', url, 'title', title)
			end
		else
			eid = take()
			local old = call('HGET', ENTRIES, eid)
			local seen, revision = match(old or '', '^%d+ (%d+) %d+ (%d+) ')
			if seen then
				date = math.min(date, tonumber(seen))
				row = out.head(id, tonumber(seen), now, tonumber(revision) + 1) .. row
				changed_n = changed_n + 1
				call('HDEL', CONTENTS, eid)
			else -- retention took it, and it stays away
				eid = '0'
			end
		end
		keys[#keys + 1] = key
		keys[#keys + 1] = hash .. ' ' .. eid
		if eid ~= '0' then
			out.rows[#out.rows + 1] = eid
			out.rows[#out.rows + 1] = row
			out.dates[#out.dates + 1] = int(date)
			out.dates[#out.dates + 1] = fmt('%015.0f', tonumber(eid))
			if content ~= '' then
				out.contents[#out.contents + 1] = eid
				out.contents[#out.contents + 1] = content
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

-- A new address: false when another feed has it. Returns the host that counts it from now on.
local function url_take(id, name, url, new_host)
	local feed = call('HGET', FEEDS, id)
	local old_host, created, old = part(feed, 'host'), part(feed, 'created_ms'), part(feed, 'url')
	if url == old then
		return true, name
	elseif new_host == '' or call('HEXISTS', URLS, url) == 1 then
		return false, name
	end
	local front = part_make('host', old_host) .. part_make('created_ms', created) .. part_make('url', old)
	call('HDEL', URLS, old)
	call('HSET', URLS, url, id)
	call('HSET', FEEDS, id, part_make('host', new_host) .. part_make('created_ms', created) .. part_make('url', url) ..
		sub(feed, #front + 1))
	if old_host ~= new_host then -- the loan has been given back to the old one; nothing is counted at the new one
		host_leave(old_host, id)
		name = host_join(new_host, id)
	end
	return true, name
end

local function entry_head(id, seen, changed, revision)
	return id .. ' ' .. int(seen) .. ' ' .. int(changed) .. ' ' .. int(revision) .. ' '
end

function ops.commit()
	local now, unsure, n = now_of(ARGV[2]), ARGV[3] == '1', tonumber(ARGV[4])
	local out = {now = now, stream = ARGV[5], shards = tonumber(ARGV[7]), shard = tonumber(ARGV[8]), head = entry_head, rows = {},
		contents = {}, dates = {}, new_n = 0}
	local worker, beat, run_n = ARGV[9], ARGV[10], tonumber(ARGV[11])
	local gone = tonumber(call('HGET', META, 'visits_gone') or 0)
	local first = 11 + run_n
	local answer, ids, ok, done = {}, {}, {}, {}

	-- sorted out: whose lease is it
	for i = 1, n do
		ids[i] = ARGV[first + i * 6 - 5]
	end
	local lease = ask('HMGET', LEASES, ids)
	for i = 1, n do
		local id, fence = ids[i], ARGV[first + i * 6 - 4]
		if done[id] then
			lease[i] = false
		end
		if lease[i] and lease_is(lease[i], fence) then
			ok[#ok + 1] = id
			done[id] = true
		else
			local before = unsure and not done[id] and stored_before(id, fence, gone)
			lease[i] = false
			answer[#answer + 1] = before and {i - 1, 'again', before[1], before[2]} or {i - 1, 'stale', 0, 0}
		end
	end

	local wheel, status = ask('HMGET', WHEEL, ok), call('ZCARD', STATUS) > 0 and ask('ZMSCORE', STATUS, ok) or {}
	local base = gone + call('LLEN', VISITS)
	local place = fmt('%013.0f/%05.0f', base, #ok)
	local states, visits, due, well, fences, groups = {}, {}, {}, {}, {}, {}
	local k, w = 0, 0

	out.seq = tonumber(ARGV[6])
	if out.shards == 1 then
		out.seq = tonumber(call('HGET', META, 'last_entry') or 0)
	end
	many('HDEL', LEASES, ok)
	at = first + n * 6
	for i = 1, n do
		local a = first + i * 6 - 5
		local id, fence, due_ms, state, visit, extra = ARGV[a], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ARGV[a + 5]
		local name = lease[i] and lease[i] ~= fence and sub(lease[i], #fence + 2) or nil
		if lease[i] then
			k = k + 1
			fences[fence] = (fences[fence] or 0) + 1
			if not wheel[k] then -- somebody deleted the feed by hand
				answer[#answer + 1] = {i - 1, 'stale', 0, 0}
				lease[i] = false
				if name then
					host_return(name, 0)
				end
			end
		end
		if not lease[i] then
			if extra ~= '' then -- pass over what belongs to it
				at = at + tonumber(match(extra, '%d+$'))
			end
		else
			local old, counts, cooldown, set = wheel[k], ' 0 0 ', 0, status[k]
			local mid = sub(old, 20, 38)
			if extra == '' then
				well[#well + 1] = id
				if name then
					host_return(name, 0)
				end
			else
				local wanted, fail_n, cool, bits, entries = match(extra, '^(%d+) (%d+) (%-?%d+) (%d+) (%d+) ')
				local have, new_n, changed_n = tonumber(sub(mid, 17, 18)), 0, 0
				cooldown, bits = tonumber(cool), tonumber(bits)
				for _, bit in ipairs({1, 2, 4, 8, 16}) do
					if math.floor(bits / bit) % 2 == 1 then
						local key, value = GROUPS[bit], take()
						groups[key] = groups[key] or {}
						table.insert(groups[key], id)
						table.insert(groups[key], value)
						if math.floor(have / bit) % 2 == 0 then
							have = have + bit
						end
					end
				end
				if fail_n ~= '0' then
					call('ZADD', FAILING, fail_n, id)
				else
					well[#well + 1] = id
				end
				if name then
					host_return(name, cooldown)
				end
				if bits >= 32 then
					local free
					local url, new_host = take(), take()
					free, name = url_take(id, name, url, new_host)
					if not free then
						answer[#answer + 1] = {i - 1, 'taken', 0, 0}
					elseif name and cooldown > 0 then
						host(name).next = math.max(host(name).next, cooldown)
					end
				end
				if entries ~= '0' then
					new_n, changed_n = entries_take(id, tonumber(entries), out)
					if new_n + changed_n > 0 then
						counts = ' ' .. new_n .. ' ' .. changed_n .. ' '
						answer[#answer + 1] = {i - 1, '', new_n, changed_n}
					end
				end
				mid = ' ' .. (new_n > 0 and fmt('%014.0f', now) or sub(mid, 2, 15)) .. ' ' .. fmt('%02.0f', have) .. ' '
				if not set and wanted ~= '0' then -- what the owner set meanwhile stays
					set = wanted
					call('ZADD', STATUS, wanted, id)
				end
			end
			w = w + 2
			states[w - 1], states[w] = id, place .. mid .. fence .. ' ' .. due_ms .. ' ' .. state
			visits[#visits + 1] = sub(old, 1, 19) .. ' ' .. id .. counts .. visit
			if not set then
				local m = place_of(id, name)
				due[#due + 1] = due_ms
				due[#due + 1] = m
				if not name and cooldown > tonumber(due_ms) then -- the only feed of its host is put off here
					due[#due - 1] = int(cooldown)
					call('ZADD', MOVED, due_ms, m)
				end
			end
		end
	end

	many('HSET', WHEEL, states)
	many('RPUSH', VISITS, visits)
	many('ZADD', DUE, due)
	for key, list in pairs(groups) do
		many('HSET', key, list)
	end
	if call('ZCARD', FAILING) > 0 then
		many('ZREM', FAILING, well)
	end
	for fence, count in pairs(fences) do
		claim_less(fence, count)
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
	if #visits > 0 then
		call('HINCRBY', META, 'visit_n', #visits)
		for i = 1, run_n do
			call('HSETNX', RUNS, ARGV[11 + i], int(base))
		end
	end
	if beat ~= '' then
		call('HSET', WORKERS, worker, beat .. part_make('at_ms', int(now)))
	end
	hosts_write()
	return answer
end
