-- SPDX-License-Identifier: ISC
--
-- Outcomes, all in one go: nothing else happens on the server between the first and the last. What can refuse (fences, addresses that
-- are taken) is looked at before anything is written.
--
-- commit now unsure n stream_max entry_base shards shard worker beat runs {run}... fences {fence how_many}...
--   {id}... {due id}... {state}... {visit}... {index extra arguments...}...
-- Blocks, so that most of a batch goes from here into commands without being touched. Only a visit with entries, changed groups or the
-- like has an extra, "status fail_n cooldown groups entries", and behind it a value for each group; for a new address url and host;
-- for each entry "n" key hash date row content url title (new) or "c" key hash date row content id (changed).
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

local function entry_head(id, seen, changed, revision)
	return id .. ' ' .. int(seen) .. ' ' .. int(changed) .. ' ' .. int(revision) .. ' '
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
			row = entry_head(id, now, now, 1) .. row
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
				row = entry_head(id, tonumber(seen), now, tonumber(revision) + 1) .. row
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
			out.dates[#out.dates + 1] = fmt('%015d', tonumber(eid))
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

-- Those that are not ok: told why, if only because they were stored before. Of a feed that is there twice the first counts.
local function refuse(ok, fences, id0, state0, n, unsure, gone, answer)
	local seen = {}
	for k = 1, n do
		local id, fence = ARGV[id0 + k], match(ARGV[state0 + k], '^%d+')
		if ok[k] and seen[id] then
			fences[ok[k]] = fences[ok[k]] - 1
			ok[k] = false
		elseif ok[k] then
			seen[id] = true
		end
		if not ok[k] then
			local before = unsure and not seen[id] and stored_before(id, fence, gone)
			answer[#answer + 1] = before and {k - 1, 'again', before[1], before[2]} or {k - 1, 'stale', 0, 0}
		end
	end
end

-- What goes with a visit that has an extra: groups, failures, the address, entries. Changes v, which has the feed's standing.
local function extra_take(v, out)
	local id, wanted, fail_n, cooldown, bits, entries = v.id, match(take(), '^(%d+) (%d+) (%-?%d+) (%d+) (%d+)')
	local have, new_n, changed_n = tonumber(sub(v.mid, 17, 18)), 0, 0
	v.cooldown, bits = tonumber(cooldown), tonumber(bits)
	for _, bit in ipairs({1, 2, 4, 8, 16}) do
		if math.floor(bits / bit) % 2 == 1 then
			local list = out.groups[GROUPS[bit]] or {}
			out.groups[GROUPS[bit]] = list
			list[#list + 1] = id
			list[#list + 1] = take()
			have = have + (math.floor(have / bit) % 2 == 0 and bit or 0)
		end
	end
	if fail_n ~= '0' then
		call('ZADD', FAILING, fail_n, id)
		out.failing[id] = true
	end
	if v.host then
		host_return(v.host, v.cooldown)
	end
	if bits >= 32 then
		local free
		local url, new_host = take(), take()
		free, v.host = url_take(id, v.host, url, new_host)
		if not free then
			out.answer[#out.answer + 1] = {v.index, 'taken', 0, 0}
		elseif v.host then
			host(v.host).next = math.max(host(v.host).next, v.cooldown)
		end
	end
	if entries ~= '0' then
		new_n, changed_n = entries_take(id, tonumber(entries), out)
		v.counts = ' ' .. new_n .. ' ' .. changed_n .. ' '
		out.answer[#out.answer + 1] = {v.index, '', new_n, changed_n}
	end
	v.mid = ' ' .. (new_n > 0 and fmt('%014d', out.now) or sub(v.mid, 2, 15)) .. ' ' .. fmt('%02d', have) .. ' '
	if not v.status and wanted ~= '0' then -- what the owner set meanwhile stays
		v.status = wanted
		call('ZADD', STATUS, wanted, id)
	end
end

function ops.commit()
	local now, unsure, n = now_of(ARGV[2]), ARGV[3] == '1', tonumber(ARGV[4])
	local worker, beat, run_n = ARGV[9], ARGV[10], tonumber(ARGV[11])
	local out = {now = now, stream = ARGV[5], seq = tonumber(ARGV[6]), shards = tonumber(ARGV[7]), shard = tonumber(ARGV[8]), rows = {},
		contents = {}, dates = {}, new_n = 0, groups = {}, failing = {}, answer = {}}
	local answer, fences, extra = out.answer, {}, {} -- fences: how many leases of each come back
	local id0 = 12 + run_n
	local fence0 = id0
	id0 = id0 + tonumber(ARGV[id0]) * 2 -- ARGV[id0 + i] is the i-th id, and so on
	local due0, state0, visit0, last = id0 + n, id0 + 3 * n, id0 + 4 * n, id0 + 5 * n
	while ARGV[last + 1] do
		extra[tonumber(ARGV[last + 1])] = last + 1
		last = last + 2 + tonumber(match(ARGV[last + 2], '%d+$'))
	end
	if out.shards == 1 then
		out.seq = tonumber(call('HGET', META, 'last_entry'))
	end

	-- whose lease is it
	local gone = tonumber(call('HGET', META, 'visits_gone'))
	local lease, wheel = ask_argv('HMGET', LEASES, id0 + 1, n), ask_argv('HMGET', WHEEL, id0 + 1, n)
	local status = call('ZCARD', STATUS) > 0 and ask_argv('ZMSCORE', STATUS, id0 + 1, n) or nil
	local ok, plain, i, n_ok = {}, next(extra) == nil and not status, 0, 0
	for run = fence0 + 1, id0, 2 do
		local fence = ARGV[run]
		local before = n_ok
		for _ = 1, tonumber(ARGV[run + 1]) do
			i = i + 1
			if lease[i] == fence and wheel[i] then
				ok[i] = fence
				n_ok = n_ok + 1
			else
				plain = false
				ok[i] = wheel[i] and lease_is(lease[i], fence) and fence or false
				n_ok = n_ok + (ok[i] and 1 or 0)
			end
		end
		if n_ok > before then
			fences[fence] = (fences[fence] or 0) + n_ok - before
		end
	end
	plain = plain and call('ZCARD', FAILING) == 0
	if not plain then
		refuse(ok, fences, id0, state0, n, unsure, gone, answer)
	end

	many_argv('HDEL', LEASES, id0 + 1, n, ok, plain)
	local place = fmt('%013d/%05d', gone + call('LLEN', VISITS), n)
	local states, visits, due, well, m = {}, {}, {}, {}, 0
	for k = 1, n do
		local fence, old = ok[k], wheel[k]
		if fence then
			local id = ARGV[id0 + k]
			m = m + 1
			states[2 * m - 1] = id
			if plain then
				states[2 * m] = place .. sub(old, 20, 38) .. ARGV[state0 + k]
				visits[m] = sub(old, 1, 20) .. id .. ' 0 0 ' .. ARGV[visit0 + k]
			else
				local v = {id = id, index = k - 1, host = lease[k] ~= fence and sub(lease[k], #fence + 2) or nil, mid = sub(old, 20, 38),
					counts = ' 0 0 ', cooldown = 0, status = status and status[k]}
				if extra[k] then
					at = extra[k]
					extra_take(v, out)
				elseif v.host then
					host_return(v.host, 0)
				end
				if not out.failing[id] then
					well[#well + 1] = id
				end
				states[2 * m] = place .. v.mid .. ARGV[state0 + k]
				visits[m] = sub(old, 1, 20) .. id .. v.counts .. ARGV[visit0 + k]
				if not v.status then
					local due_ms, where = ARGV[due0 + 2 * k - 1], place_of(id, v.host)
					due[#due + 1] = due_ms
					due[#due + 1] = where
					if not v.host and v.cooldown > tonumber(due_ms) then -- the only feed of its host is put off here
						due[#due - 1] = int(v.cooldown)
						call('ZADD', MOVED, due_ms, where)
					end
				end
			end
		end
	end

	many('HSET', WHEEL, states)
	if m > 0 then
		call('HINCRBY', META, 'visit_n', m)
		for run = 12, 11 + run_n do
			call('HSETNX', RUNS, ARGV[run], sub(place, 1, 13))
		end
	end
	many('RPUSH', VISITS, visits)
	if plain then
		many_argv('ZADD', DUE, due0 + 1, 2 * n)
	else
		many('ZADD', DUE, due)
		many('ZREM', FAILING, well)
	end
	for key, list in pairs(out.groups) do
		many('HSET', key, list)
	end
	for fence, count in pairs(fences) do
		if count > 0 then
			claim_less(fence, count)
		end
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
	if beat ~= '' then
		call('HSET', WORKERS, worker, beat .. part_make('at_ms', int(now)))
	end
	hosts_write()
	return answer
end
