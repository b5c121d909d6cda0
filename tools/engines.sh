#!/bin/sh
# SPDX-License-Identifier: ISC
# tools/engines.sh [store]: print the stores of `make check`, as FW_STORES has them: SQLite and the day's engine, for
# the contract is the same for all; besides, each engine whose folder in src/store/ differs from the merge base with
# main. "store": those of suite store, with the memory store; all of them if what engines share differs.
set -eu
cd "$(dirname "$0")/.."
if [ -n "${FW_STORES:-}" ]; then # chosen by the caller
	echo "$FW_STORES"
	exit
fi
changed=
for main in origin/main main; do
	base=$(git merge-base HEAD "$main" 2>/dev/null) || continue
	changed=$(git diff --name-only "$base" -- src/store tests/store)
	break
done
differs() { # pattern of grep
	echo "$changed" | grep -Eq "$1"
}
day=$(date -u +%j)
day=$((${day#"${day%%[!0]*}"} % 3))
list=sqlite
[ "${1:-}" != store ] || list=memory,sqlite
for engine in redis postgres mysql; do
	if [ "$day" = 0 ] || differs "^src/store/$engine/" ||
		{ [ "${1:-}" = store ] && differs '^(src/store/[^/]*\.[ch]|src/store/sql/.*|tests/store/.*)$'; }; then
		list=$list,$engine
	fi
	day=$((day - 1))
done
echo "$list"
