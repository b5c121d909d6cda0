#!/bin/sh
# SPDX-License-Identifier: ISC
# embed.sh IN OUT: the description of the API as a C string.
set -eu
{
	printf '/* made by embed.sh */\n#include "http/http.h"\n\nconst char http_openapi_text[] =\n'
	sed -e 's/^[[:space:]]*//' -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^.*$/"&\\n"/' "$1"
	printf ';\n'
} >"$2"
