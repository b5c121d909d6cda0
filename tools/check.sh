#!/bin/sh
# SPDX-License-Identifier: ISC
# Every test. Without an argument: the plain build, the whole suite again under ASan and UBSan, the threads under TSan, the fuzz
# targets for FUZZ_SECONDS each (20), the lint. An argument names one part: plain, asan, tsan, fuzz, lint; or nightly: every part, and
# ten minutes for each fuzz target.
set -u
cd "$(dirname "$0")/.." || exit 1
werror=$([ "${CI:-}" = true ] && echo true || echo false)
processes=$(($(nproc) * 2)) # tests wait for one another's servers more than they work
failed=

tree() { # name, meson arguments: configure once, build
	name=$1
	shift
	if [ ! -f "$name/build.ninja" ]; then
		meson setup "$name" -Dwerror="$werror" "$@" >"$name.log" 2>&1 || { cat "$name.log"; rm -f "$name.log"; return 1; }
		rm -f "$name.log"
	fi
	echo "== building $name"
	ninja -C "$name" --quiet
}

run() { # title, tree, meson test arguments
	echo "== $1"
	dir=$2
	shift 2
	meson test -C "$dir" --print-errorlogs --no-rebuild --num-processes "$processes" "$@" || failed="$failed $dir"
}

plain() { tree build && run "tests" build; }
asan() { tree build-asan -Db_sanitize=address,undefined -Db_lundef=false && run "tests under ASan and UBSan" build-asan --timeout-multiplier 4; }
tsan() { tree build-tsan -Db_sanitize=thread -Db_lundef=false && run "threads under TSan" build-tsan --suite threads --timeout-multiplier 4; }
fuzz() {
	CC=clang tree build-fuzz -Dfuzz=true -Db_sanitize=address,undefined -Db_lundef=false || return 1
	echo "== fuzz targets, ${FUZZ_SECONDS:-20} s each"
	tests/fuzz/run.sh build-fuzz "${FUZZ_SECONDS:-20}" || failed="$failed fuzz"
}
lint() {
	echo "== lint"
	sh tools/lint.sh || failed="$failed lint"
}

case ${1:-all} in
all) parts="plain lint asan tsan fuzz" ;;
nightly) parts="plain lint asan tsan fuzz" FUZZ_SECONDS=${FUZZ_SECONDS:-600} ;;
plain | asan | tsan | fuzz | lint) parts=$1 ;;
*) echo "usage: tools/check.sh [plain|asan|tsan|fuzz|lint|nightly]" >&2; exit 2 ;;
esac
for part in $parts; do
	$part || failed="$failed $part"
done
python3 tools/count-tests.py build build-asan build-tsan build-fuzz
[ -z "$failed" ] || { echo "failed:$failed"; exit 1; }
