#!/bin/sh
# SPDX-License-Identifier: ISC
# Configure once, then build build/feedwheel.
set -eu
cd "$(dirname "$0")/.."
command -v meson >/dev/null 2>&1 || { echo "meson is not here: run 'make deps' (Debian) or see README.md for the packages" >&2; exit 1; }
[ -f build/build.ninja ] || meson setup build >build.log 2>&1 || { cat build.log >&2; rm -f build.log; exit 1; }
rm -f build.log
ninja -C build "$@"
