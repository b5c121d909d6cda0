#!/bin/sh
# SPDX-License-Identifier: ISC
# usage: staticlib.sh OUT WORKDIR ARCHIVE... : one archive with one object, hidden symbols made local
set -eu
out=$1
work=$2
shift 2
mkdir -p "$work"
# on i386 functions for addresses are in groups, which a linker may take from elsewhere unless their names are local
ld -r --force-group-allocation -o "$work/feedwheel.o" --whole-archive "$@"
objcopy --localize-hidden "$work/feedwheel.o"
rm -f "$out"
ar rcs "$out" "$work/feedwheel.o"
