-- SPDX-License-Identifier: ISC
--
-- The lists that other programs fill: inbox.c. `door` is what their names begin with.

local REFUSED_MAX = 100000 -- rows that a list of refused ones keeps

local function next_rows(width)
	local rows = {}
	for i = 1, next_int() do
		rows[i] = {}
		for k = 1, width do
			rows[i][k] = next_arg()
		end
	end
	return rows
end

-- Begins the list with these rows?
local function head_is(key, rows)
	for i, raw in ipairs(#rows > 0 and call('LRANGE', key, 0, #rows - 1) or {}) do
		if raw ~= rows[i][1] then
			return false
		end
		rows.same_n = i
	end
	return #rows == (rows.same_n or 0)
end

-- The first key that these rows need as a list, and that is something else; nil: none. A function
-- that fails in its middle is not undone, so this comes before all writes.
local function not_a_list(key, rows)
	local refuses = false
	for _, row in ipairs(rows) do
		refuses = refuses or row[2] ~= ''
	end
	for _, name in ipairs(refuses and {key, key .. '_refused'} or #rows > 0 and {key} or {}) do
		local kind = call('TYPE', name).ok
		if kind ~= 'list' and kind ~= 'none' then
			return name
		end
	end
end

-- Remove these rows; the refused ones go to their list.
local function rows_remove(key, rows)
	local refused = {}
	for _, row in ipairs(rows) do
		refused[#refused + 1] = row[2] ~= '' and row[2] or nil
	end
	if #rows > 0 then
		call('LTRIM', key, #rows, -1)
	end
	if #refused > 0 then
		call_batched('RPUSH', key .. '_refused', refused)
		call('LTRIM', key .. '_refused', -REFUSED_MAX, -1)
	end
end

-- As fw_store_control_put() does. A message's key has 20 digits, so it begins with 0.
local function control_put(value, pauses, t, kept)
	local last = call('ZREVRANGEBYLEX', P .. 'record_names', '(~control 1', '[~control 0', 'LIMIT', 0, 1)[1]
	local id = math.max(t * 1000, tonumber(match(last or '', '%d+$') or 0) + 1)
	if pauses == '1' then
		record_store('~paused all', int(t), '-', value)
	end
	record_store('~control ' .. fmt('%020d', id), int(t), int(t + kept), value)
end

local function feed_due(id, s, due, shards)
	if s then
		s.due = due
		schedule_row_put(id, s)
		shards[s.shard] = true
	end
	return 0
end

-- row: {raw, refused, url, feed, schedule row}, after feeds_unfit(). 1: the feed is new, 0: it is due now
local function feed_take(row, due, shards)
	local url = row[3]
	if row.id then
		return feed_due(row.id, row.state, due, shards)
	end
	local id = url_owner(url)
	if id then -- an earlier row made it
		return feed_due(id, schedule_row_get(id), due, shards)
	end
	id = int(call('HINCRBY', P .. 'meta', 'feed_id', 1))
	feed_create(id, url, row[5], row[4], shards)
	return 1
end

-- Feeds that cannot be made due: {nth status ...}, from 0. A row gets the id and the state of its feed.
local function feeds_unfit(feeds)
	local out = {}
	for i, row in ipairs(feeds) do
		local id = row[3] ~= '' and url_owner(row[3])
		local s = id and schedule_row_get(id)
		if s then
			row.id, row.state = id, s
			if s.status ~= '0' then
				out[#out + 1], out[#out + 2] = i - 1, tonumber(s.status)
			end
		end
	end
	return out
end

-- inbox_take door kept due {raw refused value pauses}... {raw refused url feed row}...: take these
-- rows of control and of feeds_to_fetch. refused: what goes to the list of refused rows, or ''; then
-- there is no url. -> {1, number of new feeds}; {0}: the lists begin with other rows by
-- now; {-1, key}: it is no list; {-2, {nth status ...}}: feeds_unfit(). Nothing is done but with 1
function ops.inbox_take()
	local door, kept, due, shards, t, new_n = next_arg(), next_int(), next_arg(), {}, now(), 0
	local controls, feeds = next_rows(4), next_rows(5)
	local wrong = not_a_list(door .. 'control', controls) or not_a_list(door .. 'feeds_to_fetch', feeds)
	if wrong then
		return {-1, wrong}
	elseif not head_is(door .. 'control', controls) or not head_is(door .. 'feeds_to_fetch', feeds) then
		return {0}
	end
	local unfit = feeds_unfit(feeds)
	if #unfit > 0 then
		return {-2, unfit}
	end
	for _, row in ipairs(controls) do
		if row[2] == '' then
			control_put(row[3], row[4], t, kept)
		end
	end
	for _, row in ipairs(feeds) do
		if row[3] ~= '' then
			new_n = new_n + feed_take(row, due, shards)
		end
	end
	rows_remove(door .. 'control', controls)
	rows_remove(door .. 'feeds_to_fetch', feeds)
	schedules_changed(shards)
	if #controls > 0 then
		call('PUBLISH', ARGV[2], ARGV[3])
	end
	return {1, new_n}
end
