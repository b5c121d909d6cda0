#!/bin/sh
# SPDX-License-Identifier: ISC
# tests/fuzz/run.sh TREE SECONDS: run every fuzz target of the tree, two at a time, starting from tests/fuzz/corpus/NAME
# with the words of tests/fuzz/dict/NAME.dict. Inputs that reach new code are kept in TREE/fuzz-work for the next run;
# merge.sh adds them to the corpus. TREE/fuzz-finds holds crashes, failed oracles, leaks, and inputs that take more than
# a second of processor time when run alone. Writes "passed failed" to TREE/fuzz-count.txt.
set -u
tree=$1
seconds=$2
here=$(cd "$(dirname "$0")" && pwd)
finds=$tree/fuzz-finds
mkdir -p "$finds"
rm -f "$tree/fuzz-count.txt" "$finds"/*.failed "$finds"/*-slow-unit-*

processor_ms() { # command: of its process
	python3 -c 'import resource, subprocess, sys
subprocess.run(sys.argv[1:], capture_output=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(round((used.ru_utime + used.ru_stime) * 1000))' "$@"
}

slow() { # target, name: slow inputs once more, in processor time: the machine may have been busy
	for unit in "$finds/$2"-slow-unit-*; do
		[ -f "$unit" ] || continue
		ms=$(processor_ms "$1" "$unit")
		[ "$ms" -le 1000 ] && rm -f "$unit" && continue
		echo "slow: $unit takes $ms ms" >>"$finds/$2.log"
		return 0
	done
	return 1
}

one() { # target
	target=$1
	name=$(basename "$1")
	short=${name#fuzz_}
	work=$tree/fuzz-work/$name
	mkdir -p "$work"
	set -- "$work"
	[ -d "$here/corpus/$short" ] && set -- "$@" "$here/corpus/$short"
	case $short in document | json) set -- "$@" "$here/../cases" ;; esac
	[ -f "$here/dict/$short.dict" ] && set -- "$@" "-dict=$here/dict/$short.dict"
	if "$target" "$@" -max_total_time="$seconds" -max_len=32768 -rss_limit_mb=2048 -timeout=10 \
		-report_slow_units=1 -print_final_stats=1 \
		-artifact_prefix="$finds/$name-" >"$finds/$name.log" 2>&1 && ! slow "$target" "$name"; then
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
