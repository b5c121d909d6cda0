#!/bin/sh
# SPDX-License-Identifier: ISC
# embed.sh OUT DIR: the Lua scripts as C strings. Each is made of several files, so that they share their beginnings; what is used most is short,
# for the server runs all of it at each call.
set -eu
out=$1
dir=$2
literal() { # NAME SHEBANG FILE...
	printf 'const char %s[] =\n"%s\\n"\n' "$1" "$2"
	shift 2
	for f; do
		sed -e '/^[[:space:]]*--/d' -e '/^$/d' -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^.*$/"&\\n"/' "$dir/$f"
	done
	printf '"return ops[ARGV[1]]()\\n";\n\n'
}
{
	printf '/* made by redis/embed.sh */\n#include "store/redis.h"\n\n'
	literal rd_script_wheel '#!lua' head.lua wheel.lua claim.lua commit.lua
	literal rd_script_write '#!lua' head.lua wheel.lua window.lua load.lua
	literal rd_script_upgrade '#!lua' head.lua wheel.lua upgrade.lua
	literal rd_script_read '#!lua flags=no-writes' head.lua read.lua
} >"$out"
