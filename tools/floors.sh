#!/bin/sh
# SPDX-License-Identifier: ISC
# Draw the floors of the house from its #include lines, and fail where one room looks into another it must not know (HACKING.md).
# usage: tools/floors.sh [SOURCE_ROOT]
set -eu
cd "${1:-$(dirname "$0")/..}"
# shellcheck disable=SC2016 # an awk program
find src -name '*.[ch]' | LC_ALL=C sort | xargs awk '
BEGIN {
	# room: the rooms whose headers it may include, besides feedwheel*.h
	may["base"] = "base"
	may["parse"] = "base parse"
	may["sched"] = "base sched"
	may["fetch"] = "base fetch"
	may["store"] = "base store"
	may["engine"] = "base parse sched fetch store engine"
	may["http"] = "base http"
	may["cli"] = "base cli"
	# libraries and system headers that only some may know: a pattern of headers, a pattern of files
	only["^curl/"] = "^src/fetch/"
	only["^ares\\.h$"] = "^src/fetch/"
	only["^uv\\.h$"] = "^src/(fetch|engine)/"
	only["^microhttpd\\.h$"] = "^src/http/"
	only["^(gumbo|uchardet|iconv)\\.h$"] = "^src/(parse|http)/"
	only["^jansson\\.h$"] = "^src/((parse|http)/|engine/(event_row|run_record|websub_rec|websub_wish)[.])"
	only["^sqlite3\\.h$"] = "^src/store/(sql/)?sqlite"
	only["^(libpq-fe|postgres)"] = "^src/store/(sql/)?postgres"
	only["^(mysql|mariadb|errmsg)"] = "^src/store/(maria|mysql)"
	only["^hiredis"] = "^src/store/redis"
	only["^(sys/socket|netdb|netinet/|arpa/|poll|sys/epoll)"] = "^src/((fetch|engine|http|store)/|base/cidr[.])"
	# parse and sched are pure: no files, clocks, threads, processes
	only["^(fcntl|unistd|time|sys/time|sys/stat|pthread|signal|sys/wait|dirent|locale)\\.h$"] = "^src/(base|fetch|store|engine|http|cli)/"
}
FNR == 1 { split(FILENAME, path, "/"); room = path[2]; files++ }
/fw_(now|mono)_(ms|us) *\(/ && (room == "parse" || room == "sched") { wrong("looks at a clock: time comes in as an argument") }
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
	split(header, part, "/")
	if (!(room in may))
		wrong("stands in a room that tools/floors.sh does not know")
	else if (index(" " may[room] " ", " " part[1] " ") == 0)
		wrong("must not look into " part[1] " (\"" header "\"); it may: " may[room])
	seen[room, part[1]]++
}
function wrong(text) { printf "%s:%d: %s\n", FILENAME, FNR, text; bad++ }
END {
	n = split("base parse sched fetch store engine http cli", order, " ")
	printf "%-8s", "room"
	for (i = 1; i <= n; i++) printf "%8s", order[i]
	print ""
	for (i = 1; i <= n; i++) {
		printf "%-8s", order[i]
		for (k = 1; k <= n; k++) printf "%8s", (order[i], order[k]) in seen ? seen[order[i], order[k]] : "."
		print ""
	}
	printf "%d files, %d wrong\n", files, bad
	exit bad > 0 || files == 0
}'
