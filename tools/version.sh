#!/bin/sh
# SPDX-License-Identifier: ISC
# tools/version.sh VERSION: print the version that the program of this tree states; meson.build calls it at each build.
#
# A tree of a release has no unreleased changes in NEWS.md: VERSION. Any other has VERSION+gCOMMIT: the commit is that
# of the repository, else the one that `git archive` or tools/make-deb.sh has written into tools/commit; without both it
# has VERSION+dev. Edits that are not committed do not show. `tools/version.sh` alone prints the commit.
set -eu
cd "$(dirname "$0")/.."
commit=
if [ -e .git ]; then
	commit=$(git rev-parse HEAD 2>/dev/null) || commit=
fi
[ "$commit" ] || commit=$(sed -n '/^[0-9a-f]\{40\}$/p' tools/commit)
if [ $# = 0 ]; then
	echo "$commit"
elif ! grep -q '^## Unreleased$' NEWS.md; then
	echo "$1"
elif [ "$commit" ]; then
	printf '%s+g%.8s\n' "$1" "$commit"
else
	echo "$1+dev"
fi
