#!/bin/sh
# SPDX-License-Identifier: ISC
# embed.sh OUT DIR: the Lua scripts as C strings. Each is made of several files, so that they share their beginnings; what is used most is short,
# for the server runs all of it at each call. Lua finds a local variable for a function by walking over all that are caught so far, but
# one of the function around it at once: hence functions within functions.
set -eu
out=$1
dir=$2
literal() { # NAME SHEBANG FILE...: each file within a function in the one before it
	printf 'const char %s[] =\n"%s\\n"\n' "$1" "$2"
	shift 2
	n=$#
	for f; do
		sed -e '/^[[:space:]]*--/d' -e '/^$/d' -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^.*$/"&\\n"/' "$dir/$f"
		n=$((n - 1))
		[ $n -eq 0 ] || printf '"return (function()\\n"\n'
	done
	printf '"return ops[ARGV[1]]()\\n"\n'
	while [ $# -gt 1 ]; do
		printf '"end)()\\n"\n'
		shift
	done
	printf ';\n\n'
}
{
	printf '/* made by redis/embed.sh */\n#include "store/redis.h"\n\n'
	literal rd_script_claim '#!lua' head.lua wheel.lua claim.lua
	literal rd_script_lend '#!lua' head.lua wheel.lua claim.lua lend.lua
	literal rd_script_commit '#!lua' head.lua wheel.lua commit.lua
	literal rd_script_write '#!lua' head.lua wheel.lua window.lua load.lua records.lua
	literal rd_script_upgrade '#!lua' head.lua wheel.lua upgrade.lua
	literal rd_script_read '#!lua flags=no-writes' head.lua read.lua
} >"$out"
