#!/bin/sh
# SPDX-License-Identifier: ISC
# Run the tests in parts: the plain build, the suite under ASan and UBSan (asan), the threads under TSan (tsan), a build
# without optional parts (small), each fuzz target for FUZZ_SECONDS (3), the lint, clang's analyzer (analyze).
# Without an argument it is `make check`, which is short: plain on SQLite and the day's engine (tools/engines.sh), the
# heart of asan and tsan, lint. deep is `make check-deep`: all that the last `make check` of these trees left out.
# A part's name (also clang, the whole suite compiled by clang) runs all of that part; nightly runs all of each part,
# with longer outages and walks, ten minutes for each fuzz target, other servers, and Debian sid.
# CHECK_MINUTES=N: `make check` fails when it has used more minutes of processors than that.
set -u
cd "$(dirname "$0")/.." || exit 1
werror=$([ "${CI:-}" = true ] && echo true || echo false)
linker=$(command -v ld.lld >/dev/null 2>&1 && echo lld) # it takes a third of the usual one's time
# Reports need lines, not variables: this halves the time of compiling.
quick="-Doptimization=1 -Ddebug=false -Dc_args=-g1"
failed=
logs=
runs=0
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
	case $mode-$1 in
	check-build-asan) python3 tools/suite-targets.py "$1" "" -deep ;;
	check-build-tsan) python3 tools/suite-targets.py "$1" threads -deep ;;
	*-build-tsan) python3 tools/suite-targets.py "$1" threads ;;
	*-build-fuzz) echo fuzzers ;;
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

# Tests mostly wait. Meanwhile the trees of the next parts are built one after the other, then the analyzer and the lint
# run, at low priority. A build that fails here fails again in build(), which prints the errors.
begin_ahead() {
	case $parts in *\ *) ;; *) return ;; esac
	(
		for part in $parts; do
			case $part in
			plain) continue ;;
			lint) sh tools/lint.sh >"$data/lint.log" 2>&1 && : >"$data/lint.good" ;;
			analyze) sh tools/analyze.sh >"$data/analyze.log" 2>&1 && : >"$data/analyze.good" ;;
			valkey | mysql | sid) ;;
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
	dir=$2 processes=$(($(nproc) * $3)) runs=$((runs + 1))
	shift 3
	case $dir in build-asan | build-tsan) set -- --timeout-multiplier 4 "$@" ;; esac
	COST=$data/cost meson test -C "$dir" --print-errorlogs --no-rebuild --num-processes "$processes" \
		--logbase "$mode$runs" --wrapper "'$python' '$PWD/tools/test-cost.py'" "$@" || failed="$failed $dir"
	logs="$logs $dir/meson-logs/$mode$runs-$(basename "$python").json" # meson adds the wrapper's name
}

# What `make check` had of a tree is noted in TREE/checked when it has ended: the stores of most suites, and those of
# suite store. It holds until a source is changed.
was_checked() { # tree
	[ -f "$1/checked" ] &&
		[ -z "$(find src include tests meson.build -type f ! -name '*.pyc' -newer "$1/checked" -print -quit)" ]
}

# The tests of a tree: in `make check` on these stores, without suite deep; in check-deep the others; else all.
tests() { # title, tree, tests at once per processor, stores of most suites, stores of suite store
	title=$1 tree=$2 at_once=$3 most=$4 store=$5
	how=$mode
	[ "$mode" != deep ] || was_checked "$tree" || how=all
	case $how in
	check)
		rm -f "$tree/checked"
		echo "$most $store" >"$tree/checking"
		set -- --no-suite deep
		variable=FW_STORES
		;;
	deep)
		read -r most store <"$tree/checked"
		set -- --suite deep --suite store --suite system
		variable=FW_STORES_DONE
		;;
	all) run "$title" "$tree" "$at_once"; return ;;
	esac
	if same "$most" "$store"; then
		on_stores "$store" "$title" "$tree" "$at_once" "$@"
	else
		on_stores "$store" "$title: stores" "$tree" "$at_once" --suite store
		on_stores "$most" "$title: the others" "$tree" "$at_once" "$@" --no-suite store
	fi
	[ "$how" != check ] || mv "$tree/checking" "$tree/checked"
}

same() { # two lists of stores: is memory, which only suite store has, the only difference?
	[ "${1#memory,}" = "${2#memory,}" ]
}

on_stores() { # stores, then what run() gets
	stores=$1
	shift
	export "$variable=$stores"
	echo "== $variable=$stores"
	run "$@"
	unset "$variable"
}

plain() {
	build build || return 1
	begin_ahead
	tests "tests" build 7 "$engines" "$store_engines"
}
small() {
	build build-small || return 1
	# the parser is the same in each build
	run "tests of a build without servers" build-small 7 --suite unit --suite store --suite small --no-suite parse
}
asan() {
	build build-asan || return 1
	tests "tests under ASan and UBSan" build-asan 5 sqlite sqlite
}
tsan() {
	build build-tsan || return 1
	set -- --suite threads
	case $mode in
	check) set -- --suite threads --no-suite deep ;;
	deep) ! was_checked build-tsan || set -- --suite deep ;;
	esac
	[ "$mode" != check ] || { rm -f build-tsan/checked && : >build-tsan/checking; }
	run "threads under TSan" build-tsan 5 "$@"
	[ "$mode" != check ] || mv build-tsan/checking build-tsan/checked
}
clang() {
	build build-clang || return 1
	run "tests of clang's build" build-clang 7
}
fuzz() {
	build build-fuzz || return 1
	echo "== fuzz targets, ${FUZZ_SECONDS:-3} s each"
	tests/fuzz/run.sh build-fuzz "${FUZZ_SECONDS:-3}" || failed="$failed fuzz"
	logs="$logs build-fuzz/fuzz-count.txt"
}
reported() { # lint or analyze: its output if it ran ahead, else run it now
	echo "== $1"
	if [ -n "$ahead" ]; then
		ready "build-$1"
		cat "$data/$1.log"
		[ -e "$data/$1.good" ]
	else
		sh "tools/$1.sh"
	fi || failed="$failed $1"
}
lint() {
	reported lint
}
analyze() {
	reported analyze
}

# Other servers than the usual ones, and another release. What is not installed is left out.
valkey() {
	command -v valkey-server >/dev/null || { echo "== valkey is left out: it is not installed"; return 0; }
	export FW_REDIS=valkey FW_STORES=redis
	run "stores on Valkey" build 7 --suite store
	unset FW_REDIS FW_STORES
}
mysql() {
	mysqld=${FW_MYSQLD:-/usr/sbin/mysqld}
	"$mysqld" --version 2>/dev/null | grep -qiv mariadb || { echo "== MySQL is left out: set FW_MYSQLD"; return 0; }
	export FW_MYSQLD="$mysqld" FW_STORES=mysql
	run "stores on MySQL" build 7 --suite store
	unset FW_MYSQLD FW_STORES
}
sid() {
	if [ "$(id -u)" = 0 ] && command -v debootstrap >/dev/null; then
		tools/release-check.sh sid || failed="$failed sid"
	else
		echo "== sid is left out: it needs root and debootstrap"
	fi
}

# The time of this shell, of all that it waited for, and of what these waited for: what it cost.
spent() {
	wall=$(($(date +%s) - began))
	times >"$data/times"
	tr 'ms' '  ' <"$data/times" | awk -v wall="$wall" -v limit="$limit" '
		{ for (i = 1; i < NF; i += 2) used += $i + $(i + 1) / 60 }
		END {
			printf "%.1f minutes of processors, %.1f minutes of time\n", used, wall / 60
			if (limit && used > limit)
				printf "the limit is %s minutes of processors\n", limit
			exit limit && used > limit
		}'
}
costs() {
	[ ! -s "$data/cost" ] || {
		echo "the most expensive tests: seconds of processors, in the kernel, of time; page faults / 1000"
		sort -rn "$data/cost" | head -n "${COSTS:-25}"
		awk '{ n += $1 } END { printf "%8.1f  all %d tests\n", n, NR }' "$data/cost"
	}
}

began=$(date +%s)
python=$(python3 -c 'import sys; print(sys.executable)') # what `python3` finds may be a script, which costs more
limit=
mode=all
case ${1:-check} in
check) mode=check parts="plain asan tsan lint" limit=${CHECK_MINUTES:-} ;;
deep) mode=deep parts="plain small asan tsan fuzz analyze" ;;
nightly)
	parts="plain small clang asan tsan fuzz lint analyze valkey mysql sid" FUZZ_SECONDS=${FUZZ_SECONDS:-600}
	export FW_LONG=1
	;;
plain | small | clang | asan | tsan | fuzz | lint | analyze) parts=$1 ;;
*) echo "usage: tools/check.sh [check|deep|plain|small|clang|asan|tsan|fuzz|lint|analyze|nightly]" >&2; exit 2 ;;
esac
engines=
store_engines=
if [ "$mode" = check ]; then
	engines=$(sh tools/engines.sh) && store_engines=$(sh tools/engines.sh store) || exit 1
	if same "$engines" "$store_engines"; then
		echo "== this is FW_STORES=$store_engines make check"
	else
		echo "== this is FW_STORES=$engines make check; suite store: FW_STORES=$store_engines"
		limit=
	fi
	case $engines in *,*,*) limit= ;; esac # of the day's engine alone
fi
in_memory
server_data
for part in $parts; do
	$part || failed="$failed $part"
done
[ -z "$ahead" ] || wait "$ahead"
ahead=
costs
spent || failed="$failed cost"
# Last of all, what failed, since often only the end of a long output is kept; .ci/run repeats it.
summary=build/$mode.summary
[ -d build ] || summary=/dev/null
# shellcheck disable=SC2086 # a list
{
	[ -z "$logs" ] || python3 tools/count-tests.py $logs
	[ -z "$failed" ] || echo "failed:$failed"
} | tee "$summary"
[ -z "$failed" ]
