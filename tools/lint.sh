#!/bin/sh
# SPDX-License-Identifier: ISC
# Checks beyond the compiler: SPDX lines, style, shell scripts, manual pages, one file that calls curl_easy_init
# (NET-01), and the floors. tools/analyze.sh is clang's analyzer.
set -u
cd "$(dirname "$0")/.." || exit 1
bad=0
say() { echo "lint: $1" >&2; bad=1; }

missing=$(git ls-files '*.c' '*.h' '*.sh' '*.py' '*.build' Makefile 2>/dev/null |
	xargs grep -L 'SPDX-License-Identifier: ISC' 2>/dev/null)
[ -z "$missing" ] || say "no SPDX line: $(echo "$missing" | tr '\n' ' ')"
inits=$(grep -rl 'curl_easy_init' src | wc -l)
[ "$inits" -le 1 ] || say "curl_easy_init occurs in $inits files of src/: one is allowed"
if command -v shellcheck >/dev/null 2>&1; then
	git ls-files '*.sh' | xargs shellcheck -S warning || bad=1
fi
if command -v mandoc >/dev/null 2>&1; then
	for page in man/*.[1-8]; do
		[ -e "$page" ] && { mandoc -Tlint -Wwarning "$page" || bad=1; }
	done
fi
tools/floors.sh || bad=1
python3 tools/style.py || bad=1
exit $bad
