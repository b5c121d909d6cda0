#!/bin/sh
# SPDX-License-Identifier: ISC
# embed.sh IN OUT NAME: write a text as a C string of that name, without white space at the start of lines.
set -eu
{
	printf '/* made by embed.sh */\nextern const char %s[];\nconst char %s[] =\n' "$3" "$3"
	sed -e 's/^[[:space:]]*//' -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^.*$/"&\\n"/' "$1"
	printf ';\n'
} >"$2"
