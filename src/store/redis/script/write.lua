-- SPDX-License-Identifier: ISC
--
-- Operations that write: feeds are created, changed, merged and removed; retention; matches.

-- The shard goes into shards.
local function feed_create(id, url, row, feed, shards)
	local shard = sub(feed, 1, 4)
	call('HSET', P .. 'urls', url, id)
	call('HSET', P .. 'feed', id, feed)
	call('ZADD', P .. 'feed_ids', id, id)
	call('HSET', schedule(shard), id, row)
	shards[shard] = true
end

-- The other feed that a feed with this id would collide with, stored or before it in the load; nil: none.
local function create_conflict(id, url, owner, of_url, of_id)
	if (owner or of_url[url] or id) ~= id then
		return owner or of_url[url]
	elseif not owner and (call('HEXISTS', P .. 'feed', id) == 1 or (of_id[id] or url) ~= url) then
		return id
	end
end

-- create {id address row feed}...: id 0: the feed gets a new one, unless a feed has its address -> {{id
-- new ...}}, new 1: it was created; or {nth other}: row nth, from 0, collides with that feed, and nothing
-- was done
function ops.create()
	local feeds, of_url, of_id, last, out, shards = {}, {}, {}, 0, {}, {}
	for i = 1, next_int() do
		local f = {id = next_arg(), url = next_arg(), row = next_arg(), feed = next_arg()}
		feeds[i], f.owner = f, url_owner(f.url)
		if f.id ~= '0' then
			local other = create_conflict(f.id, f.url, f.owner, of_url, of_id)
			if other then
				return {i - 1, tonumber(other)}
			end
			of_url[f.url], of_id[f.id], last = f.id, f.url, math.max(last, tonumber(f.id))
		end
	end
	meta_raise('feed_id', int(last))
	for _, numbered in ipairs({true, false}) do
		for i, f in ipairs(feeds) do
			if (f.id ~= '0') == numbered then
				local id = f.owner or of_url[f.url]
				-- of a number that is twice in the load, the first makes the feed
				local new = not f.owner and (not id or numbered and of_id[id] ~= nil)
				id = id or int(call('HINCRBY', P .. 'meta', 'feed_id', 1))
				if new then
					feed_create(id, f.url, f.row, f.feed, shards)
					of_url[f.url], of_id[id] = id, nil
				end
				out[2 * i - 1], out[2 * i] = tonumber(id), new and 1 or 0
			end
		end
	end
	schedules_changed(shards)
	return {out}
end

-- set id status due why crash own_was own -> 1: done, 0: no such feed, -1: own is not own_was any more.
-- "" leaves status, due, why or crash as it is.
function ops.set()
	local id, status, due, why, crash, own_was, own = next_arg(), next_arg(), next_arg(), next_arg(), next_arg(),
		next_arg(), next_arg()
	local s = schedule_row_get(id)
	if not s then
		return 0
	elseif own ~= own_was then
		local groups = feed_row_get(id)
		if groups[OWNER_SETTINGS] ~= own_was then
			return -1
		end
		groups[OWNER_SETTINGS] = own
		feed_row_put(id, groups)
	end
	s.status, s.due, s.crash = status ~= '' and status or s.status, due ~= '' and due or s.due, crash ~= ''
		and crash or s.crash
	s.rest = why ~= '' and match(s.rest, '^[^\n]*') .. '\n' .. why or s.rest
	schedule_row_put(id, s)
	if status ~= '' or due ~= '' then
		schedules_changed({[s.shard] = true})
	end
	return 1
end

-- ---- rows of another store ---------------------------------------------------------------------

-- load_entry feed key known [row]: without a row only the key is stored. Existing entries stay.
function ops.load_entry()
	local id, key, known, row = next_arg(), next_arg(), next_arg(), next_arg()
	local hash, entry, date = key_value_split(known)
	if call('HEXISTS', P .. 'feed', id) == 0 or call('HEXISTS', P .. 'keys:' .. id, key) == 1 or call('ZSCORE',
		P .. 'entry_ids', entry) then
		return
	elseif row then
		entry_put(id, key, hash, entry, date, row)
	else
		call('HSET', P .. 'keys:' .. id, key, known)
	end
end

-- load_visit feed visit row: inserted in order of id. An existing visit stays.
function ops.load_visit()
	local id, visit, row = next_arg(), next_arg(), next_arg()
	local s, v, name, rows = schedule_row_get(id), tonumber(visit), chunk_at(visit)
	local last, nth = rows[#rows] and visit_of(rows[#rows]) or 0, #rows + 1
	while nth > 1 and visit_of(rows[nth - 1]) > v do
		nth = nth - 1
	end
	if not s or (nth > 1 and visit_of(rows[nth - 1]) == v) then
		return
	elseif v > last and #rows >= CHUNK then
		name, rows, nth = visit, {}, 1
	end
	table.insert(rows, nth, (string.gsub(row, '^(%d+ %d+) 0 ', '%1 ' .. s.last .. ' ', 1)))
	chunk_put(name or visit, rows)
	call('HINCRBY', P .. 'meta', 'visit_n', 1)
	s.last = fmt(NUMBER, v)
	schedule_row_put(id, s)
end

-- ---- merging and removing ----------------------------------------------------------------------

-- Make an entry of feed id one of feed into, which lacks its key and its guid. False: it has either.
local function entry_move(entry, row, key, value, into, guids)
	local guid = entry_part(row, 'guid') or ''
	if call('HEXISTS', P .. 'keys:' .. into, key) == 1 or guids[guid] then
		return false
	end
	local hash, _, date = key_value_split(value)
	entry_put(into, key, hash, entry, date, into .. match(row, '^%d+(.*)$'))
	return true
end

-- The guids of a feed's entries, as a set.
local function guids_of(id)
	local entries, guids = {}, {}
	for _, value in ipairs(call('HVALS', P .. 'keys:' .. id)) do
		local _, entry = key_value_split(value)
		entries[#entries + 1] = entry ~= '0' and entry or nil
	end
	for _, row in ipairs(read_batched('HMGET', P .. 'entries', entries)) do
		guids[row and entry_part(row, 'guid') or ''] = true
	end
	guids[''] = nil
	return guids
end

-- Remove a feed's entries; those that feed into ('': none) lacks become its own, and come first.
local function entries_remove(id, into)
	local guids, keys, gone, t = into ~= '' and guids_of(into), call('HGETALL', P .. 'keys:' .. id), {}, now()
	for i = 1, #keys, 2 do
		local _, entry = key_value_split(keys[i + 1])
		local row = entry ~= '0' and call('HGET', P .. 'entries', entry)
		local own = row and match(row, '^%d+') == id
		if own and guids and entry_move(entry, row, keys[i], keys[i + 1], into, guids) then
			change_put(changes_number(1) + 1, entry, into, CHANGED, match(row, '^%d+ %S+ %S+ (%d+)'), t)
		elseif own then
			gone[#gone + 1] = entry
		end
	end
	local number = changes_number(#gone)
	for i, entry in ipairs(gone) do
		entry_drop(entry)
		change_put(number + i, entry, id, GONE, 0, t)
	end
end

-- Remove a feed and its rows; its entries go to feed into ('': to none).
local function feed_remove(id, into)
	local s, groups = schedule_row_get(id), feed_row_get(id)
	entries_remove(id, into)
	history(s.last, function(_, name, rows, nth)
		table.remove(rows, nth)
		chunk_put(name, rows)
		call('HINCRBY', P .. 'meta', 'visit_n', -1)
	end)
	call('HDEL', schedule(s.shard), id)
	call('HDEL', P .. 'feed', id)
	call('ZREM', P .. 'feed_ids', id)
	call('DEL', P .. 'keys:' .. id)
	local url = url_of(groups[ADDRESS])
	if call('HGET', P .. 'urls', url) == id then
		call('HDEL', P .. 'urls', url)
	end
	schedules_changed({[s.shard] = true})
end

-- remove id into -> 1: the feed is removed, 0: there is no such feed, -1: there is no feed into
function ops.remove()
	local id, into = next_arg(), next_arg()
	if into ~= '' and not schedule_row_get(into) then
		return -1
	elseif not schedule_row_get(id) then
		return 0
	end
	feed_remove(id, into)
	return 1
end

-- tidy: finish the merges that an earlier version left half done, and forget its marks.
function ops.tidy()
	local all = call('HGETALL', P .. 'merging')
	for i = 1, #all, 2 do
		if schedule_row_get(all[i]) and schedule_row_get(all[i + 1]) then
			feed_remove(all[i], all[i + 1])
		end
	end
	call('DEL', P .. 'merging', P .. 'adopting', P .. 'void')
end

-- ---- retention ---------------------------------------------------------------------------------

local YOUNG = 4

-- prune_visits before max -> the number removed. A feed's list ends at a removed visit. Ids mostly
-- rise with time, so the walk ends after YOUNG chunks without old visits.
function ops.prune_visits()
	local before, max, n, young = next_int(), next_int(), 0, 0
	for _, name in ipairs(call('ZRANGE', P .. 'visit_ids', 0, max + YOUNG)) do
		local rows, kept = chunk_get(name), {}
		for _, row in ipairs(rows) do
			if tonumber(match(row, '^%d+ %d+ %d+ %d+ %d+ %S+ (%S+)')) < before and n < max then
				n = n + 1
			else
				kept[#kept + 1] = row
			end
		end
		if #kept < #rows then
			chunk_put(name, kept)
		else
			young = young + 1
		end
		if n == max or young == YOUNG then
			break
		end
	end
	call('HINCRBY', P .. 'meta', 'visit_n', int(-n))
	return n
end

-- prune_entries before max slack -> the number removed. Ids rise with the time that entries were first
-- seen, except for differences up to the slack, so the walk ends at an entry seen after before
-- plus slack.
function ops.prune_entries()
	local before, max, slack, from, n, t = next_int(), next_int(), next_int(), 0, 0, now()
	while n < max do
		local ids = call('ZRANGE', P .. 'entry_ids', from, from + 99)
		local young = #ids == 0
		for i, row in ipairs(read_batched('HMGET', P .. 'entries', ids)) do
			local id, seen, ms = match(row, '^(%d+) (%S+) (%S+)')
			if tonumber(ms) < before and n < max then
				local key = entry_part(row, 'key')
				call('HSET', P .. 'keys:' .. id, key, key_value_split(call('HGET',
					P .. 'keys:' .. id, key)) .. ' 0')
				entry_drop(ids[i])
				change_put(changes_number(1) + 1, ids[i], id, GONE, 0, t)
				n = n + 1
			else
				from = from + 1
			end
			young = young or tonumber(seen) >= before + slack
		end
		if young then
			break
		end
	end
	return n
end

-- prune_changes before max -> the number removed: the first max changes, up to the last of them that is
-- older than before. Readers see how far the log is gone: changes_pruned_id
function ops.prune_changes()
	local before, last = next_int(), nil
	for _, row in ipairs(call('ZRANGE', P .. 'changes', 0, next_int() - 1)) do
		local id, ms = match(row, '^(%d+) .* (%d+)$')
		last = tonumber(ms) < before and id or last
	end
	if not last then
		return 0
	end
	meta_raise('changes_pruned_id', last)
	return call('ZREMRANGEBYSCORE', P .. 'changes', '-inf', last)
end

-- match_put dead {order change row}...: store matches as waiting (dead '') or dead ('dead_'), and
-- take them from the others. A change has one row, whatever time stands in it
function ops.match_put()
	local dead = next_arg()
	local other = dead == '' and 'dead_' or ''
	for _ = 1, next_int() do
		local order, change, row = next_arg(), next_arg(), next_arg()
		call('ZREMRANGEBYSCORE', P .. other .. 'matches:' .. order, change, change)
		if call('ZCOUNT', P .. dead .. 'matches:' .. order, change, change) == 0 then
			call('ZADD', P .. dead .. 'matches:' .. order, change, row)
		end
		call('SADD', P .. 'match_orders', order)
	end
end

-- match_remove dead order {change}...: remove these of an order's matches; none given: all
function ops.match_remove()
	local dead, order, n = next_arg(), next_arg(), next_int()
	if n == 0 then
		call('DEL', P .. dead .. 'matches:' .. order)
	end
	for _ = 1, n do
		local change = next_arg()
		call('ZREMRANGEBYSCORE', P .. dead .. 'matches:' .. order, change, change)
	end
	if call('EXISTS', P .. 'matches:' .. order, P .. 'dead_matches:' .. order) == 0 then
		call('SREM', P .. 'match_orders', order)
	end
end
