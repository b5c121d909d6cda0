-- SPDX-License-Identifier: ISC
--
-- The library of functions that Redis runs: the .lua files of this folder, concatenated and loaded
-- once per server. Each ops.NAME is one atomic operation. Its comment lists the arguments, and the
-- reply behind "->"; {a b}... stands for a count and that call_batched groups.
--
-- KEYS[1] of a call is the tag of the store ("{feedwheel/0}:"), not a key. All its keys begin with it,
-- so on a cluster they lie on the node that runs the call. ARGV: the operation, the channel, the
-- sender id for messages on it, then the arguments, which are read one by one.

local call, fmt, sub, find, match -- set by each call: redis has no string library while this is loaded
local P, ARGV, at                 -- of the current call: the tag, the arguments, the last one read
local ops = {}

local function next_arg()
	at = at + 1
	return ARGV[at]
end

local function next_int()
	return tonumber(next_arg())
end

-- An integer as text. tostring() would write large ones with an exponent.
local function int(n)
	return fmt('%d', n)
end

local function now()
	local t = call('TIME')
	return t[1] * 1000 + math.floor(t[2] / 1000)
end

-- One variadic command over a list, in portions that fit on Lua's stack. A portion is even, so that
-- pairs stay together.
local function call_batched(cmd, key, list)
	for i = 1, #list, 4000 do
		call(cmd, key, unpack(list, i, math.min(i + 3999, #list)))
	end
end

-- The same for commands such as HMGET that return one value per name.
local function read_batched(cmd, key, names)
	local all, n = {}, #names
	if n == 0 then
		return all
	elseif n <= 4000 then
		return call(cmd, key, unpack(names))
	end
	for i = 1, n, 4000 do
		for j, v in ipairs(call(cmd, key, unpack(names, i, math.min(i + 3999, n)))) do
			all[i + j - 1] = v
		end
	end
	return all
end

-- ---- feeds -------------------------------------------------------------------------------------

-- A feed row: the shard in 4 digits, the lengths of the groups, a line end, and the groups in the
-- order of rs_group (pack.c): 1 the address, 2 the settings of the feed's owner, ...
local ADDRESS, OWNER_SETTINGS = 1, 2

local function feed_row_get(id)
	local row = call('HGET', P .. 'feed', id)
	if not row then
		return nil
	end
	local groups, from = {shard = sub(row, 1, 4)}, find(row, '\n', 1, true) + 1
	for n in string.gmatch(sub(row, 6, from - 1), '%d+') do
		groups[#groups + 1] = sub(row, from, from + n - 1)
		from = from + n
	end
	return groups
end

local function feed_row_put(id, groups)
	local front = {groups.shard}
	for i, bytes in ipairs(groups) do
		front[i + 1] = #bytes
	end
	call('HSET', P .. 'feed', id, table.concat(front, ' ') .. '\n' .. table.concat(groups))
end

-- A schedule row (pack.c): "host status due visit fail_n crash_n rest new last". visit: time of the
-- last visit; new: time of the last new entry; last: id of the last visit. The fields stay text:
-- Lua's numbers hold 53 bits only.
local STATE = '^(%S+) (%d) (%S+) (%S+) (%d+) (%d+) (.*) (%S+) (%d+)$'
local NUMBER = '%016d'

local function schedule_row_split(row)
	local s = {}
	s.host, s.status, s.due, s.visit, s.fail, s.crash, s.rest, s.new, s.last = match(row or '', STATE)
	return s.host and s
end

local function schedule(shard)
	return P .. 'schedule:' .. shard
end

local function schedule_row_get(id)
	local shard = sub(call('HGET', P .. 'feed', id) or '', 1, 4)
	local s = schedule_row_split(call('HGET', schedule(shard), id))
	if s then
		s.shard = shard
	end
	return s
end

local function schedule_row_put(id, s)
	call('HSET', schedule(s.shard), id, table.concat({s.host, s.status, s.due, s.visit, s.fail, s.crash, s.rest,
		s.new, s.last}, ' '))
end

-- The schedules of these shards (a set) changed from outside: raise their versions, and wake
-- waiters.
local function schedules_changed(shards)
	for shard in pairs(shards) do
		call('HINCRBY', P .. 'version', shard, 1)
	end
	if next(shards) then
		call('PUBLISH', ARGV[2], ARGV[3])
	end
end

local function feed_crashed(id, max)
	local s = schedule_row_get(id)
	if s then
		s.crash = fmt('%010d', s.crash + 1)
		s.status = s.status == '0' and tonumber(s.crash) >= max and '3' or s.status -- FW_FEED_QUARANTINED
		schedule_row_put(id, s)
		schedules_changed({[s.shard] = true})
	end
end

local function url_of(address)
	return match(address, '^[^\n]*')
end

-- The feed that has this address; nil: none. A feed that only claimed it, and died, has not.
local function url_owner(url)
	local id = call('HGET', P .. 'urls', url)
	local groups = id and feed_row_get(id)
	return groups and url_of(groups[ADDRESS]) == url and id or nil
end

-- The bytes of one member. value: members "name=length:bytes", from offset `from` on.
local function member_get(value, want, from)
	while true do
		local _, last, name, len = find(value, '^([%w_]+)=(%d+):', from)
		if not last then
			return nil
		elseif name == want then
			return sub(value, last + 1, last + len)
		end
		from = last + len + 2
	end
end

-- ---- entries -----------------------------------------------------------------------------------

local function entry_put(id, key, hash, entry, date, row)
	call('HSET', P .. 'keys:' .. id, key, hash .. ' ' .. entry .. ' ' .. date)
	call('HSET', P .. 'entries', entry, row)
	call('ZADD', P .. 'entry_ids', entry, entry)
	call('ZADD', P .. 'entry_dates', date, entry)
end

local function entry_drop(entry)
	call('DEL', P .. 'revisions:' .. entry)
	call('HDEL', P .. 'entries', entry)
	call('ZREM', P .. 'entry_ids', entry)
	call('ZREM', P .. 'entry_dates', entry)
end

-- The value of an entry key: hash, entry id (0: it was removed and stays away), date.
local function key_value_split(value)
	return match(value or '', '^(%S+) (%d+) ?(%S*)$')
end

-- ---- the log of changes ------------------------------------------------------------------------

local CHANGED, GONE = 1, 2 -- enum fw_change_kind

-- 1: raised to n, 0: it was n or more.
local function meta_raise(name, n)
	if tonumber(call('HGET', P .. 'meta', name) or 0) >= tonumber(n) then
		return 0
	end
	call('HSET', P .. 'meta', name, n)
	return 1
end

-- Reserve n numbers of changes, above the returned one.
local function changes_number(n)
	return call('HINCRBY', P .. 'meta', 'entry_id', n) - n
end

local function change_put(number, entry, feed, kind, revision, t)
	local id = int(number)
	call('ZADD', P .. 'changes', id, table.concat({id, entry, feed, kind, revision, int(t)}, ' '))
end

-- ---- parts of rows -----------------------------------------------------------------------------

local function entry_part(row, name)
	return member_get(row, name, (find(row, 'key=', 1, true)))
end

-- ---- visits ------------------------------------------------------------------------------------

-- Visits are stored in chunks: some dozens in one value of the hash `visits`, one per line. The
-- name of a chunk is an id: not above the ids of its rows, and above those of the chunk before it.
-- A row: "visit feed before new changed run at kind ..."; before: id of the feed's previous visit,
-- 0: none is stored.
local CHUNK = 32

local function chunk_split(text)
	local rows = {}
	for row in string.gmatch(text, '[^\n]+') do
		rows[#rows + 1] = row
	end
	return rows
end

local function chunk_get(name)
	return chunk_split(call('HGET', P .. 'visits', name) or '')
end

-- The name of the chunk that a visit is in if it exists, and the rows of that chunk.
local function chunk_at(visit)
	local name = call('ZREVRANGEBYSCORE', P .. 'visit_ids', visit, '-inf', 'LIMIT', 0, 1)[1]
	return name, name and chunk_get(name) or {}
end

local function chunk_put(name, rows)
	if #rows == 0 then
		call('HDEL', P .. 'visits', name)
		call('ZREM', P .. 'visit_ids', name)
		return
	end
	call('HSET', P .. 'visits', name, table.concat(rows, '\n'))
	call('ZADD', P .. 'visit_ids', name, name)
end

local function visit_of(row)
	return tonumber(match(row, '^%d+'))
end

-- A feed's visits, from id `last` backwards. f gets the row, its chunk's name and rows, and its
-- index there. f may rewrite the chunk. The walk ends if f returns true.
local function history(last, f)
	last = tonumber(last)
	while last ~= 0 do
		local name, rows = chunk_at(int(last))
		local row, nth
		for i, one in ipairs(rows) do
			if visit_of(one) == last then
				row, nth = one, i
			end
		end
		if not row or f(row, name, rows, nth) then
			return
		end
		last = tonumber(match(row, '^%d+ %d+ (%d+)'))
	end
end
