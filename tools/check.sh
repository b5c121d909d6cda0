#!/bin/sh
# SPDX-License-Identifier: ISC
# Run all tests: the plain build, a build without optional parts (small), the whole suite under ASan and UBSan (asan),
# the threads under TSan (tsan), each fuzz target for FUZZ_SECONDS (3), and the lint. An argument selects one part:
# plain, small, asan, tsan, fuzz, lint, clang (the whole suite, compiled by clang); or nightly: every part, with ten
# minutes for each fuzz target.
set -u
cd "$(dirname "$0")/.." || exit 1
werror=$([ "${CI:-}" = true ] && echo true || echo false)
linker=$(command -v ld.lld >/dev/null 2>&1 && echo lld) # it takes a third of the usual one's time
# Reports need lines, not variables: this halves the time of compiling.
quick="-Doptimization=1 -Ddebug=false -Dc_args=-g1"
failed=
ahead=
memory=
data=
trap '[ -z "$ahead" ] || kill "$ahead" 2>/dev/null; rm -rf ${memory:+"$memory"} ${data:+"$data"}' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Tests create and delete many small files and databases. In memory, if there is enough, this takes a fifth less CPU and
# waits for no disk. What survives kill -9 is the same there.
in_memory() {
	[ -z "${TMPDIR:-}" ] && awk '/^MemAvailable:/ { exit $2 < 8388608 }' /proc/meminfo || return 0
	[ "$(df --output=avail /dev/shm 2>/dev/null | tail -n 1)" -ge 6291456 ] 2>/dev/null || return 0
	memory=$(mktemp -d /dev/shm/fw.XXX) || return 0
	echo '#!/bin/sh' >"$memory/probe"
	chmod 755 "$memory/probe" && chmod 1777 "$memory"
	if "$memory/probe" 2>/dev/null; then # some mount it so that nothing there may be executed
		export TMPDIR="$memory"
	fi
}

# The initial data of a new PostgreSQL or MariaDB is created once, and copied from here (tests/store/servers.h).
server_data() {
	data=$(mktemp -d) && chmod 755 "$data" && export FW_SERVER_DATA="$data"
}

setup() { # tree: configure it once
	[ ! -f "$1/build.ninja" ] || return 0
	tree=$1 compiler=${CC:-cc}
	# shellcheck disable=SC2086 # a list
	[ -z "$linker" ] || [ "$tree" = build ] || export CC_LD="$linker"
	case $tree in
	build-clang) compiler=clang && set -- ;;
	build-small)
		! env clang --version >/dev/null 2>&1 || compiler=clang # both compilers see all that every build has
		set -- -Dpostgres=disabled -Dmysql=disabled -Dredis=disabled -Dserver=disabled -Dseccomp=disabled \
			-Damqp=disabled $quick
		;;
	build-asan) # UBSan's words would be a third of each process's start; a trap still tells the line
		set -- -Db_sanitize=address,undefined -Db_lundef=false $quick \
			"-Dc_args=-g1 -fsanitize-undefined-trap-on-error"
		;;
	build-tsan) set -- -Db_sanitize=thread -Db_lundef=false $quick ;;
	build-fuzz) compiler=clang && set -- -Dfuzz=true -Db_sanitize=address,undefined -Db_lundef=false $quick ;;
	*) set -- ;;
	esac
	CC=$compiler meson setup "$tree" -Dwerror="$werror" "$@" >"$tree.log" 2>&1 || {
		cat "$tree.log"
		rm -f "$tree.log"
		return 1
	}
	rm -f "$tree.log"
}

targets() { # tree: what is needed of it; all of it when nothing is said
	case $1 in
	build-tsan) python3 tools/suite-targets.py "$1" threads ;;
	build-fuzz) echo fuzzers ;;
	esac
}

make_tree() {
	setup "$1" && wanted=$(targets "$1") || return 1
	# shellcheck disable=SC2086 # a list
	ninja -C "$1" --quiet $wanted
}

build() { # tree
	ready "$1"
	echo "== building $1"
	make_tree "$1"
}

# Tests mostly wait. Meanwhile the trees of the next parts are built one after the other, then the analyzer runs, at low
# priority. A build that fails here fails again in build(), which prints the errors.
begin_ahead() {
	case $parts in *\ *) ;; *) return ;; esac
	(
		for part in $parts; do
			case $part in
			plain) continue ;;
			lint) sh tools/lint.sh >"$data/lint.log" 2>&1 && : >"$data/lint.good" ;;
			*) make_tree "build-$part" >/dev/null 2>&1 ;;
			esac
			: >"$data/build-$part.tried"
		done
	) &
	ahead=$!
	renice -n 19 "$ahead" >/dev/null
}

ready() { # tree, or build-lint: wait until that has been done or tried
	while [ -n "$ahead" ] && [ "$1" != build ] && [ ! -e "$data/$1.tried" ] && kill -0 "$ahead" 2>/dev/null; do
		sleep 0.2
	done
}

# Tests wait, for servers, leases and timeouts, far more than they work: many run at once on a processor, fewer under a
# sanitizer.
run() { # title, tree, tests at once per processor, meson test arguments
	echo "== $1"
	dir=$2 processes=$(($(nproc) * $3))
	shift 3
	meson test -C "$dir" --print-errorlogs --no-rebuild --num-processes "$processes" "$@" || failed="$failed $dir"
}

plain() {
	build build || return 1
	begin_ahead
	run "tests" build 7
}
small() {
	build build-small || return 1
	# the parser is the same in each build
	run "tests of a build without servers" build-small 7 --suite unit --suite store --suite small --no-suite parse
}
asan() {
	build build-asan || return 1
	run "tests under ASan and UBSan" build-asan 5 --timeout-multiplier 4
}
tsan() {
	build build-tsan || return 1
	run "threads under TSan" build-tsan 5 --suite threads --timeout-multiplier 4
}
clang() {
	build build-clang || return 1
	run "tests of clang's build" build-clang 7
}
fuzz() {
	build build-fuzz || return 1
	echo "== fuzz targets, ${FUZZ_SECONDS:-3} s each"
	tests/fuzz/run.sh build-fuzz "${FUZZ_SECONDS:-3}" || failed="$failed fuzz"
}
lint() {
	echo "== lint"
	if [ -n "$ahead" ]; then
		ready build-lint
		cat "$data/lint.log"
		[ -e "$data/lint.good" ]
	else
		sh tools/lint.sh
	fi || failed="$failed lint"
}

case ${1:-all} in
all) parts="plain small asan tsan fuzz lint" ;;
nightly) parts="plain small clang asan tsan fuzz lint" FUZZ_SECONDS=${FUZZ_SECONDS:-600} ;;
plain | small | clang | asan | tsan | fuzz | lint) parts=$1 ;;
*) echo "usage: tools/check.sh [plain|small|clang|asan|tsan|fuzz|lint|nightly]" >&2; exit 2 ;;
esac
in_memory
server_data
for part in $parts; do
	$part || failed="$failed $part"
done
python3 tools/count-tests.py build build-small build-clang build-asan build-tsan build-fuzz
[ -z "$failed" ] || { echo "failed:$failed"; exit 1; }
