/* SPDX-License-Identifier: ISC */
/*
 * Dates as feeds write them: RFC 822/2822 in every spelling seen, RFC 3339, W3CDTF shortened, ISO 8601 ordinal and week dates,
 * asctime, MSSQL, Perforce, month and day names in the languages feeds come in. Never the locale, never strptime. Pure.
 */
#ifndef FW_PARSE_DATE_DATE_H
#define FW_PARSE_DATE_DATE_H

#include "feedwheel/types.h"

/*
 * True and *out (Unix ms, UTC) when s holds a date. A date without a zone is UTC. Two-digit years: 00-68 are 20xx, 69-99 19xx
 * (RFC 2822 says 00-49; feeds say otherwise). 24:00 is the next day's midnight, second 60 the next minute. Impossible dates
 * (31 June, month 13, hour 25) give false. Linear; at most the first 200 bytes are looked at.
 * *zone_unknown: it names a zone that nobody knows, and was read as UTC; may be NULL.
 */
FW_MUST_CHECK bool fw_date_parse(struct fw_str s, int64_t *out, bool *zone_unknown);

#endif
