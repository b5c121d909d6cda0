#!/bin/sh
# SPDX-License-Identifier: ISC
# embed.sh OUT FILE...: the Lua library as a C string.
set -eu
out=$1
shift
{
	printf '/* made by redis/script/embed.sh */\n#include "store/redis/redis.h"\n\nconst char rs_library[] =\n'
	cat "$@" | sed -e '/^[[:space:]]*--/d' -e '/^$/d' -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^.*$/"&\\n"/'
	printf ';\n'
} >"$out"
