#!/bin/sh
# SPDX-License-Identifier: ISC
# The demo: a new SQLite store, a few hundred sample feeds from the project's own test server on loopback (some slow,
# some failing on purpose), one run, its results and what held it up. Writes to build/demo only.
set -eu
cd "$(dirname "$0")/.."
fw=build/feedwheel
dir=build/demo
good=396 # 36 kinds of feed, 11 of each
bad=24
store=sqlite:$dir/demo.db
origin=

finish() {
	[ -z "$origin" ] || kill "$origin" 2>/dev/null || true
}
trap finish EXIT
trap 'exit 130' INT TERM

say() { # a heading
	if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
		printf '\n\033[1m%s\033[0m\n' "$1"
	else
		printf '\n%s\n' "$1"
	fi
}

[ "$(uname -s)" = Linux ] || { echo "the demo needs its origin, which is built on Linux only" >&2; exit 1; }
tools/build.sh feedwheel tests/origin/origin # half of all there is to build
rm -rf "$dir"
mkdir -p "$dir/docs"
tools/make-samples.py "$dir/docs" --copies 11

# The last feeds fail, each in its own way.
cat >"$dir/plans" <<'END'
396 404
397 410
398 500
399 503,retry-after=7200
400 429,retry-after=600
401 403
402 reset=start
403 reset=body
404 hang=start
405 hang=body
406 noaccept
407 refuse
408 nxdomain
409 html
410 bare-html
411 junk
412 empty
413 short=5000
414 cut=50
415 bomb=endless
416 endless
417 redirect=301:feed/3
418 redirect=302:loop
419 redirect=302:file:///etc/hostname
END
cat >"$dir/feedwheel.conf" <<'END'
# The demo's feeds live on loopback, which is refused unless allowed; and it has no patience.
allow_networks = 127.0.0.0/8
connect_timeout_ms = 1500
first_byte_timeout_ms = 3000
total_timeout_ms = 6000
max_body_bytes = 8388608
END

build/tests/origin/origin --docs "$dir/docs" --feeds $((good + bad)) --plans "$dir/plans" --latency lognormal:250:0.9 \
	--seed 7 --print-urls "$dir/feeds.txt" --log "$dir/requests.log" >"$dir/origin.out" &
origin=$!
n=0
until grep -q listening "$dir/origin.out"; do
	if [ $n = 100 ] || ! kill -0 "$origin" 2>/dev/null; then
		echo "the demo's origin did not start" >&2
		exit 1
	fi
	n=$((n + 1))
	sleep 0.1
done

run() { "$fw" --config "$dir/feedwheel.conf" --store "$store" "$@"; }

say "Subscribing to $((good + bad)) sample feeds, $bad of them with trouble built in"
run import "$dir/feeds.txt"
say "Collecting"
run run --once --progress || [ $? = 1 ] # 1: some feeds failed, as they should
say "The newest entries"
run entries --limit 12
say "What failed, and why"
run list --failing
say "What held the run up: a picture for your browser, to zoom into"
run timeline -o "$dir/run.html"
say "When a feed is polled next, and why"
run why "$(sed -n 1p "$dir/feeds.txt")"
run why "$(sed -n 400p "$dir/feeds.txt")"
say "How long all feeds would take again with 16 transfers at once, by fetch order"
run plan --all --compare --slots 16
say "The store: $dir/demo.db ($(du -h "$dir/demo.db" | cut -f1); open it with sqlite3)."
say "The test server's log: $dir/requests.log"
cat <<END

Next, with your own feeds:
  $fw add --check your.favourite.site   # its feed, or the ones to choose from; or: $fw import subscriptions.opml
  $fw run --once                                # fetch what is due; 'run' alone keeps going
  $fw entries --content | less                  # read
END
