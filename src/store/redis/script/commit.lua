-- SPDX-License-Identifier: ISC
--
-- Outcomes, all in one go: nothing else happens on the server between the first and the last. One
-- server has all cells, and a commit is one call; on a cluster it is one for each cell.
--
-- commit one lease visit_n visit_id entry_id
--   fences {cell n shard...}... parts {cell n id...}... {{outcome}... hosts {host}...}...
-- outcome: control front rest line {name value}... {key "hash date" row}... [address host shard]
-- control: the due time that was read, the visit that must not be there yet (of a push: its own
-- time), the shard ("----": a push), and, unless nothing follows, "groups entries address"; address
-- 1: only its host changes, 2: it is adopting that address. front: a row of state up to its visit.
-- one: numbers are taken here; else they were taken before: visit_id and entry_id are the last ones
-- below, -1: none. Answers "lost", "floor" (take numbers anew), "moving" (later), or {index, text,
-- ...}: "gone", "before", or "new changed[ address]", for all others 0 0 was to be said. address:
-- the one before, or "taken": another feed has the new one.

local SKEW_MS, STEPS = 3600000, 100
local PUSHED = '17' -- FW_VISIT_PUSHED
local MORE = '^(%d+) (%d+) (%d)$'
local ZEROS = '00000000000000000000'
local one, lease, visit_id, entry_id, t

local function fenced()
	for _ = 1, take_n() do
		local k, shards = cell(take()), {}
		for i = 1, take_n() do
			shards[i] = take()
		end
		for _, row in ipairs(ask('HMGET', k .. 'fence', shards)) do
			if not row or match(row, '^%d+') ~= lease then
				return false
			end
		end
	end
	return true
end

-- Entries of a feed that seemed new or changed. Counts those that are.
local function entries_put(k, id, n)
	local keys, new_n, changed_n = {}, 0, 0
	for i = 1, n do
		keys[i] = ARGV[at + 3 * i - 2]
	end
	local known = ask('HMGET', k .. 'keys:' .. id, keys)
	local names, rows, ids, dates = {}, {}, {}, {}
	for i = 1, n do
		local key, had = take(), known[i]
		local hash, dated = match(take(), '^(%S+) (%S+)$')
		local row, hash_was, entry = take(), match(had or '', '^(%S+) (%d+)')
		local seen, revision = int(t), 1
		if not had then
			entry_id = one and call('HINCRBY', cell('meta') .. 'meta', 'entry_id', 1) or entry_id + 1
			entry, new_n = int(entry_id), new_n + 1
		elseif hash_was == hash then
			entry = nil
		elseif entry == '0' then -- retention took it: it stays away
			names[#names + 1], names[#names + 2], entry = key, hash .. ' 0', nil
		else
			local was = call('HGET', k .. 'entries', entry)
			seen, revision = match(was, '^%d+ (%S+) %S+ (%d+) ')
			revision, changed_n = revision + 1, changed_n + 1
		end
		if entry then
			local date = dated ~= '-' and tonumber(dated) < tonumber(seen) and dated or seen
			names[#names + 1], names[#names + 2] = key, hash .. ' ' .. entry .. ' ' .. date
			rows[#rows + 1], rows[#rows + 2] = entry, fmt('%s %s %d %d ', id, seen, t, revision) .. row
			ids[#ids + 1], ids[#ids + 2] = entry, entry
			dates[#dates + 1], dates[#dates + 2] = date, entry
		end
	end
	many('HSET', k .. 'keys:' .. id, names)
	many('HSET', k .. 'entries', rows)
	many('ZADD', k .. 'entry_ids', ids)
	many('ZADD', k .. 'entry_dates', dates)
	return new_n, changed_n
end

-- Is a push of that time among the feed's visits?
local function was_pushed(k, last, at_ms)
	local n, found = 0, false
	history(k, last, function(_, row)
		local ms, kind = match(row, '^%d+ %d+ %d+ %d+ %S+ (%S+) (%d+)')
		found, n = tonumber(ms) == at_ms and kind == PUSHED, n + 1
		return found or n == STEPS or tonumber(ms) < at_ms - SKEW_MS
	end)
	return found
end

local function groups_put(k, id, n)
	for _ = 1, n do
		local name, value = take(), take()
		if sub(name, 1, 5) == 'meta?' then -- a push: unless somebody else has told meanwhile
			if (call('HGET', k .. 'meta', id) or '') == sub(name, 6) then
				call('HSET', k .. 'meta', id, value)
			end
		elseif value == '' then
			call('HDEL', k .. name, id)
		else
			call('HSET', k .. name, id, value)
		end
	end
end

local function changes_new()
	return {states = {}, rows = {}, order = {}, dues = {}, shards = {}, fresh = {}}
end

local function visit_put(w, id, last, counts, line)
	if line == '' then
		return last
	end
	visit_id = visit_id + 1
	local v, rows, order = int(visit_id), w.rows, w.order
	rows[#rows + 1], rows[#rows + 2] = v, id .. ' ' .. last .. counts .. line
	order[#order + 1], order[#order + 2] = v, v
	return fmt(TIME, visit_id)
end

local function state_put(w, id, row)
	local states = w.states
	w.fresh[id], states[#states + 1], states[#states + 2] = row, id, row
end

local function due_note(w, k, shard, id, status, due)
	if status == '0' then
		local list = w.dues[shard] or {}
		w.dues[shard], list[#list + 1], list[#list + 2] = list, due, id
	else
		call('ZREM', k .. 'due:' .. shard, id)
	end
end

-- Another host, or another address: false where that is another feed's. The feed's row is not
-- written yet.
local function address_put(w, k, id, s, only_host)
	local value, host, to = take(), take(), take_n()
	if not only_host and call('HGET', k .. 'adopting', id) ~= match(value, '^[^\n]*') then
		return 'taken'
	end
	local old = call('HGET', k .. 'address', id)
	call('HSET', k .. 'address', id, value)
	call('HDEL', k .. 'adopting', id)
	if host ~= s.host then
		s.moving = to % CELLS ~= s.shard % CELLS
		call('ZREM', k .. 'due:' .. s.shard, id)
		w.shards[s.shard], w.shards[to] = true, not s.moving or nil
		s.host, s.shard = host, to
	end
	if s.moving then
		s.moves = s.moves + 1
		call('HSET', k .. 'moving', id, to)
	end
	return old
end

-- An outcome that brings more than a visit, or of a feed that was changed meanwhile. Returns what
-- is answered, nil: nothing.
local function outcome_put(w, k, id, row, control, front, rest, line)
	local more, s = sub(control, 45), {}
	local groups, entries, address = match(more, MORE)
	local shard_was, seen, pushed = tonumber(sub(control, 41, 44)), sub(control, 21, 40), sub(control, 41, 41) == '-'
	local status, fail, crash, due, visit, new, shard, host, moves, last, text = state_split(row)
	groups, entries, address = tonumber(groups or 0), tonumber(entries or 0), address or '0'
	local first = lease == '0' and not pushed
	local here = status and (pushed or shard == shard_was) and not (first and visit ~= ZEROS and visit ~= seen)
	if not here or (not pushed and visit == seen) then
		at = at + 2 * groups + 3 * entries + (address ~= '0' and 3 or 0)
		return here and 'before' or 'gone'
	end
	local new_n, changed_n, old = 0, 0, nil
	groups_put(k, id, groups)
	if entries > 0 then
		new_n, changed_n = entries_put(k, id, entries)
	end
	if pushed and new_n + changed_n == 0 and was_pushed(k, last, tonumber(seen)) then
		line = ''
	end
	last = tonumber(visit_put(w, id, fmt(TIME, last), fmt(' %d %d ', new_n, changed_n), line))
	new = new_n > 0 and fmt(TIME, t) or new
	if not pushed then
		local s_status, s_fail, s_crash, s_due, s_visit = match(front, '^(%d) (%d+) (%d+) (%S+) (%S+)$')
		status = status == '0' and s_status or status
		due = due == sub(control, 1, 20) and s_due or due
		fail, crash, visit, text = tonumber(s_fail), tonumber(s_crash), s_visit, rest
	end
	s.shard, s.host, s.moves = shard, host, moves
	w.shards[shard] = w.shards[shard] or first or nil
	if address ~= '0' then
		old = address_put(w, k, id, s, address == '1')
	end
	state_put(w, id, state_make(status, fail, crash, due, visit, new, s.shard, s.host, s.moves, last, text))
	if not pushed and not s.moving then
		due_note(w, k, s.shard, id, status, due)
	end
	return (new_n > 0 or changed_n > 0 or old) and new_n .. ' ' .. changed_n .. (old and ' ' .. old or '') or nil
end

local function hosts_put(w, k)
	for _ = 1, take_n() do
		local shard, id, ok, cool, pace, others = match(take(), '^(%d+) (%S+) (%S+) (%S+) (%S+) (%d)$')
		if others == '1' then -- the later times count, the pace stays
			local was_ok, was_cool, was_pace = match(call('HGET', k .. 'hosts:' .. shard, id) or '', '^(%S+) (%S+) (%S+)$')
			ok = was_ok and tonumber(was_ok) > tonumber(ok) and was_ok or ok
			cool = was_cool and tonumber(was_cool) > tonumber(cool) and was_cool or cool
			pace = was_pace or pace
			w.shards[tonumber(shard)] = true
		end
		call('HSET', k .. 'hosts:' .. shard, id, ok .. ' ' .. cool .. ' ' .. pace)
	end
end

-- Most outcomes bring a visit alone, to a feed that nobody has changed: these are the lines that
-- count.
local function part_commit(k, ids, first, answer)
	local had, w, args, a = ask('HMGET', k .. 'state', ids), changes_new(), ARGV, at
	local states, rows, order, fresh, dues = {}, {}, {}, w.fresh, {}
	local n, v_n, d_n, due_shard = 0, 0, 0, nil
	for i, id in ipairs(ids) do
		local control, row = args[a + 1], had[i]
		local shard = sub(control, 41)
		if lease ~= '0' and row and not fresh[id] and #shard == 4 and shard ~= '----' and sub(row, 1, 1) == '0' and sub(row, 88, 91) == shard and
			sub(row, 25, 44) == sub(control, 1, 20) and sub(row, 46, 65) ~= sub(control, 21, 40) then
			local front, line, last = args[a + 2], args[a + 4], sub(row, 125, 144)
			if line ~= '' then
				visit_id = visit_id + 1
				local v = int(visit_id)
				rows[v_n + 1], rows[v_n + 2] = v, id .. ' ' .. last .. ' 0 0 ' .. line
				order[v_n + 1], order[v_n + 2] = v, v
				v_n, last = v_n + 2, sub(ZEROS, #v + 1) .. v
			end
			row = front .. sub(row, 66, 124) .. last .. ' ' .. args[a + 3]
			fresh[id], states[n + 1], states[n + 2] = row, id, row
			n, a = n + 2, a + 4
			if shard ~= due_shard then
				if d_n > 0 then
					many('ZADD', k .. 'due:' .. tonumber(due_shard), dues)
				end
				due_shard, dues, d_n = shard, {}, 0
			end
			if sub(front, 1, 1) == '0' then
				dues[d_n + 1], dues[d_n + 2] = sub(front, 25, 44), id
				d_n = d_n + 2
			else
				call('ZREM', k .. 'due:' .. tonumber(shard), id)
			end
		else
			at = a + 4
			local text = outcome_put(w, k, id, fresh[id] or row, control, args[a + 2], args[a + 3], args[a + 4])
			a = at
			if text then
				answer[#answer + 1], answer[#answer + 2] = first + i, text
			end
		end
	end
	at = a
	if d_n > 0 then
		many('ZADD', k .. 'due:' .. tonumber(due_shard), dues)
	end
	for _, list in ipairs({{states, rows, order}, {w.states, w.rows, w.order}}) do -- what came later is written later
		many('HSET', k .. 'state', list[1])
		many('HSET', k .. 'visits', list[2])
		many('ZADD', k .. 'visit_ids', list[3])
	end
	for shard, list in pairs(w.dues) do
		many('ZADD', k .. 'due:' .. shard, list)
	end
	hosts_put(w, k)
	changed(k, w.shards)
end

-- The feeds of each part; false: one is on its way to another cell.
local function parts_take(parts)
	for i = 1, take_n() do
		local k, ids = cell(take()), {}
		for j = 1, take_n() do
			ids[j] = take()
		end
		if #ids > 0 and call('EXISTS', k .. 'moving') == 1 then
			for _, to in ipairs(ask('HMGET', k .. 'moving', ids)) do
				if to then
					return false
				end
			end
		end
		parts[i] = {k, ids}
	end
	return true
end

function ops.commit()
	local answer, parts, done, visit_n = {}, {}, 0, nil
	one = take() == '1'
	lease = take()
	visit_n, visit_id, entry_id, t = take_n(), take_n(), take_n(), now()
	local below = tonumber(call('HGET', P .. 'meta', 'floor') or 0)
	if entry_id >= 0 and entry_id < below then
		return 'floor'
	elseif not fenced() then
		return 'lost'
	elseif not parts_take(parts) then
		return 'moving'
	end
	if one and visit_n > 0 then
		visit_id = call('HINCRBY', cell('meta') .. 'meta', 'visit_id', visit_n) - visit_n
	end
	for _, p in ipairs(parts) do
		part_commit(p[1], p[2], done, answer)
		done = done + #p[2]
	end
	return answer
end
