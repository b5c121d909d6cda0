#!/bin/sh
# SPDX-License-Identifier: ISC
# tools/deps.sh [build|bench]: install what building and testing need; "build": what building and the demo need, without servers and
# checkers; "bench": what make bench compares with. Debian (as root or with sudo); elsewhere it lists the packages and stops.
set -eu
build="build-essential gperf meson ninja-build pkg-config libcurl4-openssl-dev libuv1-dev libc-ares-dev libidn2-dev libsqlite3-dev
  libhiredis-dev libmariadb-dev libpq-dev libutf8proc-dev libmicrohttpd-dev libjansson-dev libgumbo-dev libuchardet-dev libssl-dev libxxhash-dev libdeflate-dev
  libbrotli-dev libzstd-dev zlib1g-dev ca-certificates check libexpat1-dev libnghttp2-dev python3"
tests="mariadb-server postgresql-15 pgbouncer redis-server clang libclang-rt-14-dev llvm curl sqlite3 mandoc shellcheck openssl procps iproute2 nginx-light chromium"
[ "${1:-}" != build ] || tests=
[ "${1:-}" != bench ] || { build="python3-feedparser wrk nginx-light sqlite3"; tests=; }
missing=
if command -v dpkg-query >/dev/null 2>&1; then
	for p in $build $tests; do
		dpkg-query -W -f '${Status}\n' "$p" 2>/dev/null | grep -q 'ok installed' || missing="$missing $p"
	done
	[ -n "$missing" ] || exit 0
	sudo=
	if [ "$(id -u)" != 0 ]; then
		command -v sudo >/dev/null 2>&1 || { printf 'these packages are missing, and there is no sudo here; as root run\n  apt-get install%s\n' "$missing" >&2; exit 1; }
		sudo=sudo
	fi
	printf 'installing:%s\n' "$missing"
	$sudo apt-get update -qq
	# shellcheck disable=SC2086 # a list of packages
	DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends $missing >/dev/null
	exit 0
fi
[ "${1:-}" != bench ] || { echo "feedwheel installs $build on Debian only; rows that need it are left out" >&2; exit 1; }
# Not Debian: pkg-config tells what is there.
for m in libcurl libuv libcares libidn2 sqlite3 libmariadb hiredis jansson gumbo uchardet libssl libxxhash libpq libutf8proc libmicrohttpd libdeflate libbrotlidec libzstd zlib check; do
	pkg-config --exists "$m" 2>/dev/null || missing="$missing $m"
done
command -v meson >/dev/null 2>&1 || missing="$missing meson"
command -v ninja >/dev/null 2>&1 || missing="$missing ninja"
[ -n "$missing" ] || exit 0
cat >&2 <<END
feedwheel installs its packages by itself on Debian 12 only. Missing here (pkg-config names):
 $missing
On Debian they are: $build $tests
END
exit 1
