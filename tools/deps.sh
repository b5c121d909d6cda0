#!/bin/sh
# SPDX-License-Identifier: ISC
# tools/deps.sh [build|bench|deb]: install the packages for building and testing. "build": for building and the demo
# only; "bench": for the references of make bench; "deb": for make deb. On Debian, as root or with sudo; elsewhere it
# lists the packages and stops. a|b: the first one that exists. No release or version is named here: packages that
# follow the release's newest are used instead.
set -eu
build="build-essential gperf meson ninja-build pkg-config|pkgconf libcurl4-openssl-dev libuv1-dev
  libargon2-dev libc-ares-dev libidn2-dev libsqlite3-dev
  libhiredis-dev libmariadb-dev libpq-dev libutf8proc-dev libmicrohttpd-dev libjansson-dev libgumbo-dev
  libuchardet-dev libssl-dev librabbitmq-dev libseccomp-dev libxxhash-dev libdeflate-dev libbrotli-dev libzstd-dev
  zlib1g-dev ca-certificates check libexpat1-dev libnghttp2-dev python3"
tests="mariadb-server postgresql pgbouncer redis-server|valkey-server rabbitmq-server clang clang-format
  libclang-rt-dev llvm curl sqlite3 mandoc shellcheck openssl
  lld procps iproute2 nginx wrk python3-feedparser python3-jsonschema chromium
  newsboat liferea xvfb xdotool dbus libfaketime ruby"
case ${1:-} in
build) tests= ;;
bench) build="python3-feedparser wrk nginx sqlite3" tests= ;;
deb) tests="debhelper dpkg-dev fakeroot lintian" ;;
esac

installed() { # package
	dpkg-query -W -f '${Status}\n' "$1" 2>/dev/null | grep -q 'ok installed'
}

known() { # package: can apt install it?
	LC_ALL=C apt-cache policy "$1" 2>/dev/null | grep -q 'Candidate: [^(]'
}

lacking() { # a|b ...: of each, nothing if one is installed, else what choose() says
	for names; do
		found=
		for p in $(echo "$names" | tr '|' ' '); do
			if installed "$p"; then
				found=1
			fi
		done
		[ -n "$found" ] || choose "$names"
	done
}

choose() { # a|b: the first that apt knows; if it knows none, the first, for apt to say so
	for p in $(echo "$1" | tr '|' ' '); do
		if known "$p"; then
			echo "$p"
			return
		fi
	done
	echo "${1%%|*}"
}

if command -v dpkg-query >/dev/null 2>&1; then
	# shellcheck disable=SC2086 # lists of packages, here and below
	missing=$(lacking $build $tests)
	[ -n "$missing" ] || exit 0
	sudo=
	if [ "$(id -u)" != 0 ]; then
		if ! command -v sudo >/dev/null 2>&1; then
			# shellcheck disable=SC2086
			echo "packages are missing, and sudo is not installed; as root run"
			echo "  apt-get install" $missing
			exit 1
		fi >&2
		sudo=sudo
	fi
	$sudo apt-get update -qq
	# shellcheck disable=SC2086
	missing=$(lacking $build $tests) # now that apt has its lists
	# shellcheck disable=SC2086
	echo installing: $missing
	# shellcheck disable=SC2086
	$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
	exit 0
fi
if [ "${1:-}" = bench ]; then
	echo "feedwheel installs $build on Debian only; rows that need it are left out" >&2
	exit 1
fi
# Not Debian: ask pkg-config.
missing=
for m in libargon2 libcurl libuv libcares libidn2 sqlite3 libmariadb hiredis jansson gumbo uchardet libssl libxxhash \
	libpq libseccomp librabbitmq libutf8proc libmicrohttpd libdeflate libbrotlidec libzstd zlib check; do
	pkg-config --exists "$m" 2>/dev/null || missing="$missing $m"
done
command -v meson >/dev/null 2>&1 || missing="$missing meson"
command -v ninja >/dev/null 2>&1 || missing="$missing ninja"
[ -n "$missing" ] || exit 0
cat >&2 <<END
feedwheel installs its packages by itself on Debian only. Missing here (pkg-config names):
 $missing
On Debian they are: $build $tests
END
exit 1
