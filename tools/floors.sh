#!/bin/sh
# SPDX-License-Identifier: ISC
# Draw the include graph of src/ as floors, and fail if a room includes a header that it must not know (HACKING.md).
# usage: tools/floors.sh [SOURCE_ROOT]
set -eu
cd "${1:-$(dirname "$0")/..}"
# shellcheck disable=SC2016 # an awk program
find src -name '*.[ch]' | LC_ALL=C sort | xargs awk '
BEGIN {
	# room: the rooms (or single headers) that it may include, besides feedwheel*.h
	may["base"] = "base"
	may["parse/charset"] = "base parse/charset"
	may["parse/date"] = "base parse/date"
	may["parse/xml"] = "base parse/charset parse/xml"
	may["parse/html"] = "base parse/charset parse/html"
	may["parse/feed"] = "base parse/charset parse/date parse/xml parse/html parse/feed"
	may["parse"] = "base parse/charset parse/xml parse/html parse/feed parse"
	may["sched"] = "base sched"
	may["fetch"] = "base fetch"
	may["query"] = "base query"
	may["store"] = "base query parse/html/text.h store api/account.h" # rows of accounts, described once
	may["api"] = "api"
	workshops = "base parse/html parse/feed parse sched fetch query store api"
	# The engine knows none of its rooms; a room knows those before it, in this order, where it is named here.
	may["engine"] = workshops " engine"
	below = workshops " engine"
	may["engine/accounts"] = below " engine/accounts"
	may["engine/sandbox"] = below " engine/sandbox"
	may["engine/orders"] = below " engine/orders"
	may["engine/push"] = below " engine/push engine/orders/orders.h"
	may["engine/websub"] = below " engine/websub"
	may["engine/run"] = below " engine/run engine/sandbox/sandbox.h engine/push/quota.h engine/websub/websub.h" \
		" engine/orders/orders.h engine/orders/runner.h engine/orders/runner_process.h"
	may["engine/copy"] = below " engine/copy"
	may["engine/out"] = below " engine/out"
	may["engine/ops"] = below " engine/ops engine/sandbox/sandbox.h engine/orders/runner.h engine/orders/exchange.h"
	may["picture"] = "base picture"
	rooms = "http/auth http/server http/metrics http/api http/readers http/readers/greader" \
		" http/readers/miniflux http/readers/fever http/web http"
	below = "base api http/auth"
	may["http/auth"] = below
	below = below " http/server"
	may["http/server"] = below
	may["http/metrics"] = below " http/metrics"
	may["http/api"] = below " http/api"
	may["http/readers"] = below " http/readers"
	may["http/readers/greader"] = below " http/readers http/readers/greader"
	may["http/readers/miniflux"] = below " http/readers http/readers/miniflux"
	may["http/readers/fever"] = below " http/readers http/readers/fever"
	may["http/web"] = below " http/readers http/web picture"
	may["http"] = "base api picture http " rooms
	may["cli"] = "base api picture cli http/serve.h"
	# libraries and system headers that only some files may include: a pattern of headers, a pattern of files
	only["^base/banned\\.h$"] = "^$" # the compiler reads it before each file
	only["^argon2\\.h$"] = "^src/engine/accounts/"
	only["^curl/"] = "^src/fetch/"
	only["^ares\\.h$"] = "^src/fetch/"
	only["^uv\\.h$"] = "^src/(fetch|engine)/"
	only["^microhttpd\\.h$"] = "^src/http/"
	only["^(gumbo|uchardet|iconv)\\.h$"] = "^src/(parse|http)/"
	only["^jansson\\.h$"] = "^src/((parse|http|query)/|store/inbox|" \
		"engine/(push/event_row|run/run_record|records|orders/|out/|websub/))"
	only["^sqlite3\\.h$"] = "^src/store/(sql/)?sqlite"
	only["^(libpq-fe|postgres)"] = "^src/store/(sql/)?postgres"
	only["^(mysql|mariadb|errmsg)"] = "^src/store/(maria|mysql)"
	only["^(amqp|rabbitmq-c/)"] = "^src/engine/orders/exchange[.]c"
	only["^hiredis"] = "^src/store/redis"
	only["^(sys/socket|netdb|netinet/|arpa/|poll|sys/epoll)"] = "^src/((fetch|engine|http|store)/|base/cidr[.])"
	# parse and sched are pure: no files, clocks, threads, processes
	only["^(fcntl|unistd|time|sys/time|sys/stat|pthread|signal|sys/wait|dirent|locale)\\.h$"] = \
		"^src/(base|fetch|store|engine|http|cli)/|^src/query/fold"
}
# the longest folder that is a room: "parse/xml/tag.h" is in parse/xml, "store/sql/sql.h" in store
function room_of(file) {
	do
		sub(/\/?[^\/]*$/, "", file)
	while (file != "" && !(file in may))
	return file
}
FNR == 1 { room = room_of(substr(FILENAME, 5)); files++ }
/fw_(now|mono)_(ms|us) *\(/ && room ~ /^(parse|sched)(\/|$)/ { wrong("looks at a clock: time comes in as an argument") }
!/^#[ \t]*include[ \t]*[<"]/ { next }
{
	header = $0
	sub(/^#[ \t]*include[ \t]*[<"]/, "", header)
	sub(/[>"].*/, "", header)
	for (pattern in only)
		if (header ~ pattern && FILENAME !~ only[pattern])
			wrong("must not know <" header ">")
	if ($0 !~ /"/ || header ~ /^feedwheel(\.h|\/)/)
		next
	its_room = room_of(header)
	if (!(room in may))
		wrong("stands in a room that tools/floors.sh does not know")
	else if (index(" " may[room] " ", " " its_room " ") == 0 && index(" " may[room] " ", " " header " ") == 0)
		wrong("must not look into " its_room " (\"" header "\"); it may: " may[room])
	seen[room, its_room]++
}
function wrong(text) { printf "%s:%d: %s\n", FILENAME, FNR, text; bad++ }
END {
	n = split("base parse/charset parse/date parse/xml parse/html parse/feed parse sched fetch query store api" \
		" engine engine/accounts engine/sandbox engine/orders engine/push engine/websub engine/run" \
		" engine/copy engine/out engine/ops picture " rooms " cli", order, " ")
	for (i = 1; i <= n; i++) {
		printf "%-22s", order[i]
		for (k = 1; k <= n; k++)
			if ((order[i], order[k]) in seen)
				printf " %s %d", order[k], seen[order[i], order[k]]
		print ""
	}
	printf "%d files, %d wrong\n", files, bad
	exit bad > 0 || files == 0
}'
