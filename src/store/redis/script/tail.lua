-- SPDX-License-Identifier: ISC
--
-- Registers the functions. The name of the library, feedwheel_HASH, is a hash of its text, so
-- programs of two versions can share a server.

local function run_op(keys, args)
	call, fmt, sub, find, match = redis.call, string.format, string.sub, string.find, string.match
	P, ARGV, at = keys[1], args, 3
	return ops[args[1]]()
end

redis.register_function(NAME .. '_write', run_op)
redis.register_function{function_name = NAME .. '_read', callback = run_op, flags = {'no-writes'}}
-- operations that free memory also run on a server whose memory is full
redis.register_function{function_name = NAME .. '_trim', callback = run_op, flags = {'allow-oom'}}
