#!/bin/sh
# SPDX-License-Identifier: ISC
# The floors hold, and tools/floors.sh sees it when they do not. Prints TAP.
set -u
root=${FW_SOURCE_ROOT:-$(cd "$(dirname "$0")/../.." && pwd)}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
n=0
tap() { # status, name
	n=$((n + 1))
	[ "$1" -eq 0 ] && echo "ok $n - $2" || echo "not ok $n - $2"
}

echo 1..8
"$root/tools/floors.sh" "$root" >"$work/out" 2>&1
tap $? "every room includes only what it may"
sed 's/^/# /' "$work/out"

refused() { # file, line, words, name
	rm -rf "$work/src"
	mkdir -p "$work/src/${1%/*}"
	printf '%s\n' '/* fine */' "$2" >"$work/src/$1"
	if "$root/tools/floors.sh" "$work" >"$work/out" 2>&1; then
		tap 1 "$4"
	else
		grep -qF "src/$1:2: $3" "$work/out"
		tap $? "$4"
	fi
}
refused parse/x.c '#include "fetch/fetch.h"' 'must not look into fetch' \
	"a workshop that includes its neighbour is refused"
refused parse/xml/x.c '#include "parse/html/text.h"' 'must not look into parse/html' \
	"an inner room that includes its neighbour is refused"
refused parse/html/x.c '#include "parse/parse.h"' 'must not look into parse ' \
	"an inner room that includes a header above it is refused"
refused sched/x.c 'int64_t now = fw_now_ms();' 'looks at a clock' "a pure room that looks at a clock is named"
refused store/x.c '#include <curl/curl.h>' 'must not know <curl/curl.h>' "a library in the wrong room is named"
refused attic/x.c '#include "base/str.h"' 'stands in a room' "a room nobody knows is named"
rm -rf "$work/src"
mkdir "$work/src"
"$root/tools/floors.sh" "$work" >/dev/null 2>&1
[ $? -ne 0 ]
tap $? "an empty tree is an error"
