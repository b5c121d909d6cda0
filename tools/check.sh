#!/bin/sh
# SPDX-License-Identifier: ISC
# Build and run every test. Without an argument: the plain build. asan, tsan: that tree only.
set -eu
cd "$(dirname "$0")/.."
tree() { # name, meson arguments
	name=$1
	shift
	[ -f "$name/build.ninja" ] || meson setup "$name" "$@" >/dev/null
	ninja -C "$name" --quiet
}
case ${1:-all} in
asan) tree build-asan -Db_sanitize=address,undefined -Db_lundef=false; meson test -C build-asan --print-errorlogs; exit ;;
tsan) tree build-tsan -Db_sanitize=thread -Db_lundef=false; meson test -C build-tsan --print-errorlogs --suite threads; exit ;;
esac
tools/build.sh
meson test -C build --print-errorlogs
