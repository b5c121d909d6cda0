-- SPDX-License-Identifier: ISC
-- For wrk: repeats one POST. Arguments: the number of events in a body (default 1); ms between two requests of
-- a connection (default 0); "patient": wait for Retry-After after a 503. Prints the result at the end as one
-- line of JSON.
local event = '{"property":"news","section":1,"id":1}'
local pause = 0

function init(args)
	local n = tonumber(args[1] or "1")
	local between = tonumber(args[2] or "0")

	wrk.method = "POST"
	wrk.headers["Content-Type"] = "application/json"
	wrk.body = n == 1 and event or "[" .. string.rep(event .. ",", n - 1) .. event .. "]"
	if args[3] == "patient" then
		response = function(status, headers)
			if status == 503 then
				pause = 1000 * tonumber(headers["Retry-After"])
			end
		end
	end
	if between > 0 or args[3] == "patient" then
		delay = function()
			local now = pause + between

			pause = 0
			return now
		end
	end
end

function done(summary, latency)
	local e = summary.errors

	io.write(string.format('{"requests":%d,"us":%d,"refused":%d,"broken":%d,"p50":%d,"p99":%d,"max":%d}\n',
		summary.requests, summary.duration, e.status, e.connect + e.read + e.write + e.timeout,
		latency:percentile(50), latency:percentile(99), latency.max))
end
