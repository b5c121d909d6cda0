/* SPDX-License-Identifier: ISC */
/*
 * Plans: comma-separated words, each "name" or "name=value". %XX is decoded after the split, so
 * "%2C" is a comma.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "origin.h"

const char plan_help[] =
	"Plans (comma-separated words; %XX is decoded after the split, so write %2C for a comma):\n"
	"  first=N after=N            only the first N requests of a feed; only those after the Nth\n"
	"  status=NNN, or just 404    this status and a short page (204: no page)\n"
	"  retry-after=TEXT           Retry-After: TEXT (seconds or a date)\n"
	"  redirect=CODE:TARGET       TARGET: feed/J, next, loop (two URLs), endless (always a new one), or text\n"
	"  always-304                 304 to each request, with or without validators\n"
	"  stale-304                  304 to each conditional request, whatever has changed\n"
	"  validators=WHICH           both (default), etag, lm, none, weak, odd (odd bytes), fresh (new each time)\n"
	"  ignore-validators          sends validators, but always answers 200\n"
	"  coding=C[+C]               identity gzip deflate raw-deflate br zstd; forced, stacked left to right\n"
	"  claim=TEXT                 Content-Encoding: TEXT, whatever the body is\n"
	"  chunked | until-close      framing other than Content-Length\n"
	"  cut=PERCENT                only this part of the coded body, with matching lengths\n"
	"  short=BYTES                Content-Length is BYTES larger than the body\n"
	"  reset=W shut=W hang=W      W: start (before the response), headers (in the middle), body (in the middle);\n"
	"                             reset sends RST, shut closes normally, hang sends nothing more\n"
	"  refuse noaccept nxdomain   no connection: RST, no reply to SYN, no such name (only in --print-urls)\n"
	"  drip=BYTES_PER_SECOND      at this rate\n"
	"  latency=MS                 instead of --latency\n"
	"  endless endless-headers    a body, or headers, without an end\n"
	"  header-kb=N header-n=N     one header of N KiB; N small headers\n"
	"  bomb=MB | bomb=endless     compressed spaces (gzip; other codings with coding=, not endless)\n"
	"  type=TEXT charset=TEXT     Content-Type; an empty type: no header\n"
	"  html bare-html junk empty  a page that links to the feed; a page that does not; binary bytes; no bytes\n"
	"  grow=N | grow=Nms          generated RSS: one more entry each N requests, or each N ms\n"
	"  start=N window=N           the entries at first (10); the limit of entries in the document (20)\n"
	"  expires=SECONDS            Expires: now + SECONDS (may be negative)\n"
	"  header=NAME: VALUE         any header, can be repeated\n"
	"  cookie close http10        Set-Cookie; Connection: close; an HTTP/1.0 response\n";

static bool number(struct fw_str v, int64_t *out)
{
	return fw_str_int(v, out) && *out >= 0;
}

static bool where(struct fw_str v, enum where *out)
{
	*out = fw_str_eq(v, FW_STR("start"))    ? BEFORE_HEADERS :
		fw_str_eq(v, FW_STR("headers")) ? MID_HEADERS :
		fw_str_eq(v, FW_STR("body"))    ? MID_BODY :
						  NOWHERE;
	return *out != NOWHERE;
}

static bool validators(struct fw_str v, enum validators *out)
{
	static const char *const name[] = {"both", "etag", "lm", "none", "weak", "odd", "fresh"};

	for (size_t i = 0; i < FW_N(name); i++) {
		if (!fw_str_eq(v, fw_str(name[i])))
			continue;
		*out = (enum validators)i;
		return true;
	}
	return false;
}

static void header_add(struct plan *p, const char *name, struct fw_str value)
{
	struct fw_buf b = FW_BUF_INIT(0);

	if (p->headers)
		fw_buf_adds(&b, p->headers);
	fw_buf_adds(&b, name);
	fw_buf_addstr(&b, value);
	fw_buf_adds(&b, "\r\n");
	free(p->headers);
	p->headers = fw_buf_take(&b, NULL);
}

/* Words without a value that set one member. */
static bool bare_word(struct plan *p, struct fw_str w)
{
	const struct {
		const char *name;
		bool *flag;
	} flags[] = {{"chunked", &p->chunked}, {"until-close", &p->until_close}, {"close", &p->close},
		{"cookie", &p->cookie}, {"ignore-validators", &p->ignore_validators}, {"always-304", &p->always_304},
		{"stale-304", &p->stale_304}, {"endless", &p->endless}, {"endless-headers", &p->endless_headers},
		{"http10", &p->http10}};
	const struct {
		const char *name;
		enum source source;
	} sources[] = {{"html", FROM_HTML}, {"bare-html", FROM_BARE_HTML}, {"junk", FROM_JUNK}, {"empty", FROM_EMPTY}};
	const struct {
		const char *name;
		enum net net;
	} nets[] = {{"noaccept", NET_NOACCEPT}, {"refuse", NET_REFUSE}, {"nxdomain", NET_NXDOMAIN}};
	int64_t n;

	for (size_t i = 0; i < FW_N(flags); i++)
		if (fw_str_eq(w, fw_str(flags[i].name)))
			return *flags[i].flag = true;
	for (size_t i = 0; i < FW_N(sources); i++)
		if (fw_str_eq(w, fw_str(sources[i].name)))
			return p->source = sources[i].source, true;
	for (size_t i = 0; i < FW_N(nets); i++)
		if (fw_str_eq(w, fw_str(nets[i].name)))
			return p->net = nets[i].net, true;
	if (number(w, &n) && n >= 200 && n <= 599)
		return p->status = (int)n, true;
	return fw_str_eq(w, FW_STR("ok"));
}

static bool set_redirect(struct plan *p, struct fw_str v)
{
	struct fw_str target;
	int64_t code;

	if (!number(fw_str_split(v, ':', &target), &code) || code < 300 || code > 399 || !target.p)
		return false;
	p->status = (int)code;
	free(p->redirect);
	p->redirect = fw_str_dup(target);
	return true;
}

static bool set_growth(struct plan *p, struct fw_str v)
{
	bool ms = fw_str_ends(v, FW_STR("ms"));

	p->source = FROM_GROWTH;
	return ms ? number(fw_str_sub(v, 0, v.len - 2), &p->grow_ms) && p->grow_ms > 0 :
		    number(v, &p->grow_requests) && p->grow_requests > 0;
}

static bool value_word(struct plan *p, struct fw_str k, struct fw_str v)
{
	const struct {
		const char *name;
		int64_t *to;
	} numbers[] = {{"first", &p->first}, {"after", &p->after}, {"short", &p->missing}, {"drip", &p->drip_bps},
		{"latency", &p->latency_ms}, {"header-kb", &p->header_kb}, {"header-n", &p->header_n},
		{"start", &p->grow_start}, {"window", &p->window}};
	const struct {
		const char *name;
		char **to;
	} texts[] = {{"coding", &p->coding}, {"claim", &p->claim}, {"type", &p->type}, {"charset", &p->charset}};
	int64_t n;

	for (size_t i = 0; i < FW_N(numbers); i++)
		if (fw_str_eq(k, fw_str(numbers[i].name)))
			return number(v, numbers[i].to);
	for (size_t i = 0; i < FW_N(texts); i++)
		if (fw_str_eq(k, fw_str(texts[i].name)))
			return free(*texts[i].to), (*texts[i].to = fw_str_dup(v)) != NULL;
	if (fw_str_eq(k, FW_STR("status")))
		return number(v, &n) && n >= 100 && n <= 999 && (p->status = (int)n);
	if (fw_str_eq(k, FW_STR("cut")))
		return number(v, &n) && n >= 1 && n <= 99 && (p->cut_percent = (int)n);
	if (fw_str_eq(k, FW_STR("redirect")))
		return set_redirect(p, v);
	if (fw_str_eq(k, FW_STR("retry-after")))
		return header_add(p, "Retry-After: ", v), true;
	if (fw_str_eq(k, FW_STR("header")))
		return header_add(p, "", v), true;
	if (fw_str_eq(k, FW_STR("validators")))
		return validators(v, &p->validators);
	if (fw_str_eq(k, FW_STR("reset")))
		return where(v, &p->reset);
	if (fw_str_eq(k, FW_STR("shut")))
		return where(v, &p->shut);
	if (fw_str_eq(k, FW_STR("hang")))
		return where(v, &p->hang);
	if (fw_str_eq(k, FW_STR("expires")))
		return p->has_expires = true, fw_str_int(v, &p->expires_s);
	if (fw_str_eq(k, FW_STR("grow")))
		return set_growth(p, v);
	if (fw_str_eq(k, FW_STR("bomb")))
		return fw_str_eq(v, FW_STR("endless")) ? (p->bomb_mb = -1) : number(v, &p->bomb_mb) && p->bomb_mb > 0;
	return false;
}

static char *percent_decode(struct fw_str s)
{
	struct fw_buf b = FW_BUF_INIT(0);

	for (size_t i = 0; i < s.len; i++) {
		if (s.p[i] == '%' && i + 2 < s.len && fw_hexval(s.p[i + 1]) >= 0 && fw_hexval(s.p[i + 2]) >= 0) {
			fw_buf_addc(&b, (char)(fw_hexval(s.p[i + 1]) << 4 | fw_hexval(s.p[i + 2])));
			i += 2;
		} else {
			fw_buf_addc(&b, s.p[i]);
		}
	}
	return b.p ? fw_buf_take(&b, NULL) : fw_str_dup(FW_STR(""));
}

static void plan_free(struct plan *p)
{
	free((char *)p->text);
	free(p->redirect);
	free(p->headers);
	free(p->type);
	free(p->charset);
	free(p->coding);
	free(p->claim);
	free(p);
}

struct plan *plan_parse(struct fw_str words, char *why, size_t why_cap)
{
	struct plan *p = calloc(1, sizeof(*p));
	struct fw_str rest = words;

	if (!p)
		die("out of memory");
	*p = (struct plan){.text = fw_str_dup(words), .first = -1, .latency_ms = -1, .grow_start = 10, .window = 20};
	while (rest.p) {
		struct fw_str word = fw_str_trim(fw_str_split(rest, ',', &rest)), v, k;
		char *plain = percent_decode(word);

		k = fw_str_split(fw_str(plain), '=', &v);
		if (!(v.p ? value_word(p, k, v) : bare_word(p, k))) {
			(void)fw_snprintf(why, why_cap, "\"%s\" is no plan word; see --help", plain);
			free(plain);
			plan_free(p);
			return NULL;
		}
		free(plain);
	}
	return p;
}

/* ---- rules ----------------------------------------------------------------------------------- */

static bool selector(struct fw_str s, struct rule *r)
{
	struct fw_str a, b;

	*r = (struct rule){.from = 0, .to = INT64_MAX};
	if (fw_str_eq(s, FW_STR("*")))
		return true;
	if (s.len && s.p[0] == '%') {
		a = fw_str_split(fw_str_sub(s, 1, s.len), '=', &b);
		return number(a, &r->mod) && r->mod > 0 && (!b.p || number(b, &r->rest));
	}
	a = fw_str_split(s, '-', &b);
	if (!number(a, &r->from))
		return false;
	r->to = r->from;
	return !b.p || (number(b, &r->to) && r->to >= r->from);
}

void rules_add(struct rules *r, struct fw_str line, const char *where_from)
{
	struct fw_str s = fw_str_trim(line), words;
	struct rule rule;
	char why[300];

	if (!s.len || s.p[0] == '#')
		return;
	if (!selector(fw_str_split(s, ' ', &words), &rule) || !words.p)
		die("%s: \"%.*s\" is not \"SELECTOR WORDS\"; see --help", where_from, FW_STR_ARG(s));
	rule.plan = plan_parse(fw_str_trim(words), why, sizeof(why));
	if (!rule.plan)
		die("%s: %s", where_from, why);
	r->rule = realloc(r->rule, (r->n + 1) * sizeof(*r->rule));
	if (!r->rule)
		die("out of memory");
	r->rule[r->n++] = rule;
}

void rules_load(struct rules *r, const char *file)
{
	FILE *f = fopen(file, "r");
	char line[4096];

	if (!f)
		die("--plans %s: cannot be read", file);
	while (fgets(line, sizeof(line), f))
		rules_add(r, fw_str(line), file);
	fclose(f);
}

/* The last matching rule wins, so that general rules can come first. */
struct plan *rules_find(const struct rules *r, size_t feed)
{
	for (size_t k = r->n; k-- > 0;) {
		const struct rule *x = &r->rule[k];
		int64_t i = (int64_t)feed;

		if (i >= x->from && i <= x->to && (!x->mod || i % x->mod == x->rest))
			return x->plan;
	}
	return NULL;
}
