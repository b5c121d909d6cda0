#!/bin/sh
# SPDX-License-Identifier: ISC
# tests/fuzz/run.sh TREE SECONDS: every fuzz target of the tree, two at a time, starting from tests/fuzz/corpus/NAME.
# Finds are left in TREE/fuzz-finds. Writes "passed failed" to TREE/fuzz-count.txt.
set -u
tree=$1
seconds=$2
here=$(cd "$(dirname "$0")" && pwd)
finds=$tree/fuzz-finds
mkdir -p "$finds"
rm -f "$tree/fuzz-count.txt" "$finds"/*.failed

one() { # target
	name=$(basename "$1")
	work=$tree/fuzz-work/$name
	mkdir -p "$work"
	set -- "$1" "$work"
	[ -d "$here/corpus/${name#fuzz_}" ] && set -- "$@" "$here/corpus/${name#fuzz_}"
	case $name in fuzz_document | fuzz_json) set -- "$@" "$here/../cases" ;; esac
	if "$@" -max_total_time="$seconds" -max_len=65536 -rss_limit_mb=2048 -timeout=10 -print_final_stats=1 \
		-artifact_prefix="$finds/$name-" >"$finds/$name.log" 2>&1; then
		echo "  ok    $name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$finds/$name.log") runs"
	else
		echo "  FAILED $name: see $finds/$name.log"
		tail -n 25 "$finds/$name.log"
		: >"$finds/$name.failed"
	fi
}

n=0
for target in "$tree"/tests/fuzz/fuzz_*; do
	[ -f "$target" ] && [ -x "$target" ] || continue
	n=$((n + 1))
	one "$target" &
	[ $((n % 2)) -eq 0 ] && wait
done
wait
failed=$(find "$finds" -name '*.failed' | wc -l)
echo "$((n - failed)) $failed" >"$tree/fuzz-count.txt"
[ "$n" -gt 0 ] && [ "$failed" -eq 0 ]
