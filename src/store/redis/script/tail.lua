-- SPDX-License-Identifier: ISC
--
-- What is called. feedwheel_N: the library's name, which is made of its text; so programs of two
-- versions may share a server.

local function run(keys, args)
	call, fmt, sub, find, match = redis.call, string.format, string.sub, string.find, string.match
	P, ARGV, at = keys[1], args, 3
	return ops[args[1]]()
end

redis.register_function(NAME .. '_write', run)
redis.register_function{function_name = NAME .. '_read', callback = run, flags = {'no-writes'}}
-- what makes room on a server that is full
redis.register_function{function_name = NAME .. '_trim', callback = run, flags = {'allow-oom'}}
