#!/bin/sh
# SPDX-License-Identifier: ISC
# make bench and its parts. A part that is not there yet says so; asking for just that part then fails.
set -eu
cd "$(dirname "$0")/.."
command_of() { # part
	case $1 in
	collect | ingest | plan | websub | before) echo "bench/$1.py" ;;
	*) echo "build/bench/bench_$1" ;;
	esac
}
part() { # name
	rc=0
	if [ ! -x "$(command_of "$1")" ]; then
		echo "bench-$1: not in this version yet"
		return 3
	fi
	printf '\n# bench-%s\n' "$1"
	case $1 in parse | ingest | before) tools/deps.sh bench || : ;; esac
	"$(command_of "$1")" || rc=$?
	[ "$1" != store ] || bench/whole.py || rc=$?
	return "$rc"
}
case ${1:-bench} in
bench)
	status=0
	for p in parse store ingest plan collect; do
		part $p || [ $? = 3 ] || status=1
	done
	exit $status
	;;
bench-*) part "${1#bench-}" ;;
*)
	echo "usage: bench/run.sh [bench|bench-collect|bench-parse|bench-store|bench-ingest|bench-plan|bench-websub|bench-before]" >&2
	exit 2
	;;
esac
