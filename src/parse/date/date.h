/* SPDX-License-Identifier: ISC */
/*
 * Parses dates in every form that feeds use: RFC 822/2822 with its common errors, RFC 3339, partial
 * W3CDTF, ISO 8601 ordinal and week dates, asctime, MSSQL, Perforce, and month and day names in
 * many languages. Never uses the locale or strptime(). Pure.
 */
#ifndef FW_PARSE_DATE_DATE_H
#define FW_PARSE_DATE_DATE_H

#include "feedwheel/types.h"

/*
 * True, with *out in Unix ms UTC, if s contains a date.
 *
 * A date without a zone is UTC. Two-digit years: 00-68 are 20xx, 69-99 are 19xx (RFC 2822 draws the
 * line at 50, but feeds do not follow it). 24:00 is the next day's midnight, second 60 is the next
 * minute. Impossible dates (31 June, month 13, hour 25) give false. Linear; reads at most 200
 * bytes. *zone_unknown (may be NULL): the date names an unknown zone and is read as UTC.
 */
FW_MUST_CHECK bool fw_date_parse(struct fw_str s, int64_t *out, bool *zone_unknown);

#endif
