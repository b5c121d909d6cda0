#!/bin/sh
# SPDX-License-Identifier: ISC
# make bench and its parts. Exit status 0: fine; 1: a row is short; others: a part failed.
# TINY=1: sizes of seconds (bench/table.py).
set -eu
cd "$(dirname "$0")/.."

store() { # STORES="sqlite redis" ONLY="schedule entries events search job whole million", or BEFORE=folder
	if [ -n "${BEFORE:-}" ]; then
		bench/store_before.py
		return
	fi
	set --
	for name in $(echo "${STORES:-}" | tr , ' '); do
		set -- "$@" --store "$name"
	done
	rc=0
	if [ -z "${ONLY:-}" ]; then
		build/bench/bench_store "$@" || rc=$?
	fi
	for part in $(echo "${ONLY:-whole}" | tr , ' '); do
		[ "$rc" -le 1 ] || break
		case $part in
		whole | million) "bench/$part.py" ;;
		*) build/bench/bench_store "$@" --only "$part" ;;
		esac || rc=$?
	done
	return "$rc"
}

orders() { # ONLY="match collect"
	rc=0
	for part in $(echo "${ONLY:-match collect}" | tr , ' '); do
		[ "$rc" -le 1 ] || break
		now=0
		case $part in
		match) build/bench/bench_orders ${DOCUMENTS:+"$DOCUMENTS"} ;;
		collect) bench/orders.py ;;
		*)
			echo "bench-orders: ONLY=$ONLY: $part is unknown, known are: match collect" >&2
			return 2
			;;
		esac || now=$?
		[ "$now" -le "$rc" ] || rc=$now
	done
	return "$rc"
}

part() { # name
	rc=0
	printf '\n# bench-%s\n' "$1"
	case ${TINY:-}$1 in parse | ingest | before) tools/deps.sh bench || : ;; esac
	case $1 in
	parse) build/bench/bench_parse ${DOCUMENTS:+"$DOCUMENTS"} ;;
	orders) orders ;;
	read) build/bench/bench_read ;;
	store) store ;;
	*) "bench/$1.py" ;;
	esac || rc=$?
	return "$rc"
}

case ${1:-bench} in
bench)
	status=0
	for p in parse store ingest plan websub orders read clients page collect; do
		rc=0
		part $p || rc=$?
		[ "$rc" -le "$status" ] || status=$rc
	done
	exit "$status"
	;;
bench-parse | bench-store | bench-ingest | bench-plan | bench-websub | bench-orders | bench-read | bench-clients | \
	bench-page | bench-collect | bench-before)
	part "${1#bench-}"
	;;
*)
	echo "usage: bench/run.sh [bench|bench-PART]," \
		"PART: parse, store, ingest, plan, websub, orders, read, clients, page, collect, before" >&2
	exit 2
	;;
esac
