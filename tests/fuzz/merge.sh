#!/bin/sh
# SPDX-License-Identifier: ISC
# tests/fuzz/merge.sh TREE [NAME ...]: add inputs from the tree's fuzz runs to tests/fuzz/corpus if they reach code that
# the corpus (and for documents tests/cases) does not: one small input per new branch. Without names: all targets.
set -eu
tree=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck disable=SC2046 # a list of names
[ $# -gt 0 ] || set -- $(find "$tree/tests/fuzz" -maxdepth 1 -type f -perm -1 -name 'fuzz_*' | sed 's/.*fuzz_//' | sort)

for name; do
	corpus=$here/corpus/$name
	small=$(mktemp -d)
	mkdir -p "$corpus"
	find "$tree/fuzz-work/fuzz_$name" -type f -size -8192c -exec cp {} "$small" \;
	# tests/cases count as corpus: start from both, add what is new, and remove the cases again
	all=$(mktemp -d)
	cp "$corpus"/* "$all" 2>/dev/null || true
	case $name in
	document | json) find "$here/../cases" -type f ! -name '*.expect.json' -exec cp {} "$all" \; ;;
	esac
	find "$all" -type f -exec basename {} \; | sort >"$small.before"
	if ! "$tree/tests/fuzz/fuzz_$name" -merge=1 -use_counters=0 -max_len=8192 "$all" "$small" \
		>"$small.log" 2>&1; then
		tail -n 20 "$small.log"
		exit 1
	fi
	find "$all" -type f -exec basename {} \; | sort | comm -13 "$small.before" - | while read -r new; do
		cp "$all/$new" "$corpus/"
	done
	echo "$name: $(find "$corpus" -type f | wc -l) inputs, $(du -sk --apparent-size "$corpus" | cut -f1) KiB"
	rm -rf "$small" "$small.before" "$small.log" "$all"
done
