#!/bin/sh
# SPDX-License-Identifier: ISC
# Configure once, then build build/feedwheel.
set -eu
cd "$(dirname "$0")/.."
if ! command -v meson >/dev/null 2>&1; then
	echo "meson is not installed: run 'make deps' on Debian; docs/install.md lists the packages" >&2
	exit 1
fi
[ -f build/build.ninja ] || meson setup build >build.log 2>&1 || { cat build.log >&2; rm -f build.log; exit 1; }
rm -f build.log
ninja -C build "$@"
