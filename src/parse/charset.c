/* SPDX-License-Identifier: ISC */
/*
 * From bytes to valid UTF-8.
 *
 * What declares the encoding, strongest first: a byte order mark, zero bytes around the first '<' (XML 1.0 appendix F), the HTTP
 * charset, the XML declaration, UTF-8 (RFC 7303 section 3.2). The first that decodes without a fault wins. When none does: UTF-8
 * with replacements if most of it is UTF-8 (a transfer that was cut, one stray byte), the declared one with replacements if its
 * faults are rare, then what uchardet says, then windows-1252, which reads anything.
 *
 * Labels and their encodings are those of the WHATWG Encoding Standard; only names from this table reach iconv_open (CHR-02).
 * UTF-8, UTF-16, UTF-32 and windows-1252 are decoded here, the rest by iconv.
 */
#include <errno.h>
#include <iconv.h>
#include <stdint.h>
#include <uchardet.h>

#include "base/str.h"
#include "base/utf8.h"
#include "parse/charset.h"

#define SNIFF_BYTES ((size_t)64 * 1024)
#define SNIFF_MIN 8 /* fewer bytes beyond ASCII tell nothing */
#define DECLARATION_BYTES ((size_t)1024)

enum codec { BY_ICONV, UTF8, UTF16LE, UTF16BE, UTF32LE, UTF32BE, CP1252 };

struct encoding {
	const char *name;
	enum codec codec;
	const char *iconv; /* BY_ICONV only */
	const char *labels; /* blank between, lower case */
};

static const struct encoding ENCODINGS[] = {
	{"utf-8", UTF8, NULL, "utf-8 utf8 unicode-1-1-utf-8 unicode11utf8 unicode20utf8 x-unicode20utf8"},
	{"windows-1252", CP1252, NULL,
		"windows-1252 cp1252 x-cp1252 iso-8859-1 iso8859-1 iso88591 iso_8859-1 iso_8859-1:1987 iso-ir-100 latin1 latin-1 l1 "
		"cp819 ibm819 csisolatin1 us-ascii ascii ansi_x3.4-1968 iso646-us"},
	{"ibm866", BY_ICONV, "CP866", "ibm866 866 cp866 csibm866"},
	{"iso-8859-2", BY_ICONV, "ISO-8859-2",
		"iso-8859-2 iso8859-2 iso88592 iso_8859-2 iso_8859-2:1987 iso-ir-101 latin2 l2 csisolatin2"},
	{"iso-8859-3", BY_ICONV, "ISO-8859-3",
		"iso-8859-3 iso8859-3 iso88593 iso_8859-3 iso_8859-3:1988 iso-ir-109 latin3 l3 csisolatin3"},
	{"iso-8859-4", BY_ICONV, "ISO-8859-4",
		"iso-8859-4 iso8859-4 iso88594 iso_8859-4 iso_8859-4:1988 iso-ir-110 latin4 l4 csisolatin4"},
	{"iso-8859-5", BY_ICONV, "ISO-8859-5",
		"iso-8859-5 iso8859-5 iso88595 iso_8859-5 iso_8859-5:1988 iso-ir-144 cyrillic csisolatincyrillic"},
	{"iso-8859-6", BY_ICONV, "ISO-8859-6",
		"iso-8859-6 iso8859-6 iso88596 iso_8859-6 iso_8859-6:1987 iso-ir-127 arabic asmo-708 ecma-114 csisolatinarabic "
		"csiso88596e csiso88596i iso-8859-6-e iso-8859-6-i"},
	{"iso-8859-7", BY_ICONV, "ISO-8859-7",
		"iso-8859-7 iso8859-7 iso88597 iso_8859-7 iso_8859-7:1987 iso-ir-126 greek greek8 ecma-118 elot_928 csisolatingreek "
		"sun_eu_greek"},
	{"iso-8859-8", BY_ICONV, "ISO-8859-8",
		"iso-8859-8 iso8859-8 iso88598 iso_8859-8 iso_8859-8:1988 iso-ir-138 hebrew visual csiso88598e csisolatinhebrew "
		"iso-8859-8-e iso-8859-8-i csiso88598i logical"},
	{"iso-8859-10", BY_ICONV, "ISO-8859-10", "iso-8859-10 iso8859-10 iso885910 iso-ir-157 latin6 l6 csisolatin6"},
	{"iso-8859-13", BY_ICONV, "ISO-8859-13", "iso-8859-13 iso8859-13 iso885913"},
	{"iso-8859-14", BY_ICONV, "ISO-8859-14", "iso-8859-14 iso8859-14 iso885914"},
	{"iso-8859-15", BY_ICONV, "ISO-8859-15", "iso-8859-15 iso8859-15 iso885915 iso_8859-15 latin9 latin-9 l9 csisolatin9"},
	{"iso-8859-16", BY_ICONV, "ISO-8859-16", "iso-8859-16"},
	{"koi8-r", BY_ICONV, "KOI8-R", "koi8-r koi8_r koi8 koi cskoi8r"},
	{"koi8-u", BY_ICONV, "KOI8-U", "koi8-u koi8-ru"},
	{"macintosh", BY_ICONV, "MACINTOSH", "macintosh mac x-mac-roman csmacintosh"},
	{"windows-874", BY_ICONV, "CP874", "windows-874 dos-874 iso-8859-11 iso8859-11 iso885911 tis-620"},
	{"windows-1250", BY_ICONV, "CP1250", "windows-1250 cp1250 x-cp1250"},
	{"windows-1251", BY_ICONV, "CP1251", "windows-1251 cp1251 x-cp1251"},
	{"windows-1253", BY_ICONV, "CP1253", "windows-1253 cp1253 x-cp1253"},
	{"windows-1254", BY_ICONV, "CP1254",
		"windows-1254 cp1254 x-cp1254 iso-8859-9 iso8859-9 iso88599 iso_8859-9 iso_8859-9:1989 iso-ir-148 latin5 l5 csisolatin5"},
	{"windows-1255", BY_ICONV, "CP1255", "windows-1255 cp1255 x-cp1255"},
	{"windows-1256", BY_ICONV, "CP1256", "windows-1256 cp1256 x-cp1256"},
	{"windows-1257", BY_ICONV, "CP1257", "windows-1257 cp1257 x-cp1257"},
	{"windows-1258", BY_ICONV, "CP1258", "windows-1258 cp1258 x-cp1258"},
	{"x-mac-cyrillic", BY_ICONV, "MAC-CYRILLIC", "x-mac-cyrillic x-mac-ukrainian"},
	{"gb18030", BY_ICONV, "GB18030",
		"gb18030 gbk gb2312 gb_2312 gb_2312-80 chinese csgb2312 csiso58gb231280 iso-ir-58 x-gbk cp936 euc-cn"},
	{"big5", BY_ICONV, "BIG5-HKSCS", "big5 big5-hkscs cn-big5 csbig5 x-x-big5 cp950"},
	{"euc-jp", BY_ICONV, "EUC-JP-MS", "euc-jp x-euc-jp cseucpkdfmtjapanese"},
	{"iso-2022-jp", BY_ICONV, "ISO-2022-JP", "iso-2022-jp csiso2022jp"},
	{"shift_jis", BY_ICONV, "CP932", "shift_jis shift-jis sjis x-sjis ms_kanji ms932 windows-31j csshiftjis cp932"},
	{"euc-kr", BY_ICONV, "CP949",
		"euc-kr korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 iso-ir-149 cseuckr csksc56011987 windows-949 cp949 uhc"},
	{"utf-16le", UTF16LE, NULL, "utf-16le utf-16 unicode ucs-2 iso-10646-ucs-2 unicodefeff csunicode utf16"},
	{"utf-16be", UTF16BE, NULL, "utf-16be unicodefffe"},
	/* not WHATWG's, but XML's: only ever believed when the bytes look like it */
	{"utf-32le", UTF32LE, NULL, "utf-32le utf-32 ucs-4 ucs-4le iso-10646-ucs-4 utf32"},
	{"utf-32be", UTF32BE, NULL, "utf-32be ucs-4be"},
};

static const struct encoding *by_label(struct fw_str label)
{
	label = fw_str_trim(label);
	if (!label.len || label.len > 40)
		return NULL;
	for (size_t i = 0; i < FW_N(ENCODINGS); i++) {
		struct fw_str rest = fw_str(ENCODINGS[i].labels);

		while (rest.p) {
			if (fw_str_ieq(fw_str_split(rest, ' ', &rest), label))
				return &ENCODINGS[i];
		}
	}
	return NULL;
}

static const struct encoding *by_codec(enum codec codec)
{
	for (size_t i = 0; i < FW_N(ENCODINGS); i++) {
		if (ENCODINGS[i].codec == codec)
			return &ENCODINGS[i];
	}
	return NULL;
}

const char *fw_charset_label(struct fw_str label)
{
	const struct encoding *e = by_label(label);

	return e ? e->name : NULL;
}

/* ---- the header --------------------------------------------------------------------------------------------------------- */

static struct fw_str unquote(struct fw_str s)
{
	s = fw_str_trim(s);
	if (s.len >= 2 && (s.p[0] == '"' || s.p[0] == '\'') && s.p[s.len - 1] == s.p[0])
		s = fw_str_trim(fw_str_sub(s, 1, s.len - 1));
	return s;
}

struct fw_str fw_charset_of_type(struct fw_str content_type)
{
	struct fw_str rest;

	(void)fw_str_split(content_type, ';', &rest);
	while (rest.p) {
		struct fw_str value, part = fw_str_split(rest, ';', &rest);
		struct fw_str name = fw_str_trim(fw_str_split(part, '=', &value));

		if (value.p && fw_str_ieq(name, FW_STR("charset"))) {
			value = unquote(value);
			return value.len ? value : FW_STR_NONE;
		}
	}
	return FW_STR_NONE;
}

void fw_media_type(struct fw_str content_type, char *dst, size_t cap)
{
	struct fw_str rest, type = fw_str_trim(fw_str_split(content_type, ';', &rest));
	size_t n = 0;

	for (; n < type.len && n + 1 < cap; n++)
		dst[n] = (char)fw_lower((unsigned char)type.p[n]);
	if (cap)
		dst[n] = '\0';
}

/* ---- what the bytes themselves say ------------------------------------------------------------------------------------------ */

static bool begins(struct fw_str s, const char *bytes, size_t n)
{
	return s.len >= n && memcmp(s.p, bytes, n) == 0;
}

/* *skip is the length of the mark. */
static const struct encoding *by_mark(struct fw_str s, size_t *skip)
{
	*skip = 4;
	if (begins(s, "\xff\xfe\0\0", 4))
		return by_codec(UTF32LE);
	if (begins(s, "\0\0\xfe\xff", 4))
		return by_codec(UTF32BE);
	*skip = 3;
	if (begins(s, "\xef\xbb\xbf", 3))
		return by_codec(UTF8);
	*skip = 2;
	if (begins(s, "\xff\xfe", 2))
		return by_codec(UTF16LE);
	if (begins(s, "\xfe\xff", 2))
		return by_codec(UTF16BE);
	*skip = 0;
	return NULL;
}

/* Zero bytes around the first character of markup or JSON. */
static const struct encoding *by_zeros(struct fw_str s)
{
	const unsigned char *p = (const unsigned char *)s.p;

	if (s.len < 4)
		return NULL;
	if (p[0] && !p[1] && !p[2] && !p[3])
		return by_codec(UTF32LE);
	if (!p[0] && !p[1] && !p[2] && p[3])
		return by_codec(UTF32BE);
	if (p[0] && !p[1] && p[2] && !p[3])
		return by_codec(UTF16LE);
	if (!p[0] && p[1] && !p[2] && p[3])
		return by_codec(UTF16BE);
	return NULL;
}

/* The encoding pseudo-attribute of an XML declaration near the start; absent when there is none. */
static struct fw_str declared(struct fw_str s)
{
	struct fw_str head = fw_str_sub(s, 0, DECLARATION_BYTES), rest;
	const char *at = fw_str_find(head, FW_STR("<?xml")), *end;

	rest = fw_str_trim(head);
	if (!at || *rest.p == '{' || *rest.p == '[') /* JSON may speak of XML */
		return FW_STR_NONE;
	head = fw_str_sub(head, (size_t)(at - head.p) + 5, head.len);
	end = fw_str_find(head, FW_STR("?>"));
	if (end)
		head.len = (size_t)(end - head.p);
	else if ((end = memchr(head.p, '>', head.len)) != NULL)
		head.len = (size_t)(end - head.p);
	at = fw_str_ifind(head, FW_STR("encoding"));
	if (!at)
		return FW_STR_NONE;
	head = fw_str_sub(head, (size_t)(at - head.p) + 8, head.len);
	(void)fw_str_split(head, '=', &rest);
	rest = fw_str_trim(rest);
	if (rest.len && (rest.p[0] == '"' || rest.p[0] == '\''))
		return fw_str_trim(fw_str_split(fw_str_sub(rest, 1, rest.len), rest.p[0], &head));
	for (size_t i = 0; i < rest.len; i++) {
		if (fw_is_space((unsigned char)rest.p[i]))
			rest.len = i;
	}
	return rest.len ? rest : FW_STR_NONE;
}

/* ---- decoding --------------------------------------------------------------------------------------------------------------- */

struct tally {
	size_t fault_n; /* places replaced by U+FFFD */
	size_t high_n;  /* characters beyond ASCII that were fine */
	size_t zero_n;  /* U+0000 taken out: no character of any document */
};

/* Where text is decoded to. The next attempt writes over one that was no good. */
struct out {
	struct fw_arena *a;
	char *p;
	size_t len, cap;
	struct tally t;
	bool failed;
};

static bool room(struct out *o, size_t n)
{
	size_t cap;
	char *p;

	if (o->failed || o->cap - o->len >= n)
		return !o->failed;
	cap = FW_MAX(o->cap + o->cap / 2, o->len + n) + 64;
	p = fw_arena_grow(o->a, o->p, o->cap, cap);
	if (!p) {
		o->failed = true;
		return false;
	}
	o->p = p;
	o->cap = cap;
	return true;
}

static void put(struct out *o, uint32_t cp)
{
	if (cp == 0) {
		o->t.zero_n++;
		return;
	}
	if (room(o, 4))
		o->len += fw_utf8_put(o->p + o->len, cp);
	o->t.high_n += cp >= 0x80;
}

static void put_fault(struct out *o)
{
	put(o, 0xfffd);
	o->t.high_n--;
	o->t.fault_n++;
}

static void from_utf8(struct out *o, struct fw_str s)
{
	size_t i = 0, n;

	while (i < s.len && !o->failed) {
		size_t good = fw_utf8_valid(s.p + i, s.len - i);
		struct fw_str run = fw_str_sub(s, i, i + good);

		for (size_t k = 0; k < run.len; k += n) {
			const char *zero = memchr(run.p + k, 0, run.len - k);

			n = zero ? (size_t)(zero - run.p) - k : run.len - k;
			if (room(o, n) && n) {
				memcpy(o->p + o->len, run.p + k, n);
				o->len += n;
			}
			for (size_t j = 0; j < n; j++)
				o->t.high_n += ((unsigned char)run.p[k + j] & 0xc0) == 0xc0;
			if (zero) {
				o->t.zero_n++;
				n++;
			}
		}
		i += good;
		if (i < s.len) {
			put_fault(o);
			/* one replacement for a character that is merely cut short */
			for (i++; i < s.len && ((unsigned char)s.p[i] & 0xc0) == 0x80; i++)
				;
		}
	}
}

static void from_utf16(struct out *o, struct fw_str s, bool big)
{
	const unsigned char *p = (const unsigned char *)s.p;
	int hi = big ? 0 : 1, lo = big ? 1 : 0;

	for (size_t i = 0; i + 1 < s.len && !o->failed; i += 2) {
		uint32_t u = (uint32_t)p[i + hi] << 8 | p[i + lo];

		if (u >= 0xd800 && u <= 0xdbff && i + 3 < s.len) {
			uint32_t v = (uint32_t)p[i + 2 + hi] << 8 | p[i + 2 + lo];

			if (v >= 0xdc00 && v <= 0xdfff) {
				put(o, 0x10000 + ((u - 0xd800) << 10) + (v - 0xdc00));
				i += 2;
				continue;
			}
		}
		if (u >= 0xd800 && u <= 0xdfff)
			put_fault(o);
		else
			put(o, u);
	}
	if (s.len % 2)
		put_fault(o);
}

static void from_utf32(struct out *o, struct fw_str s, bool big)
{
	const unsigned char *p = (const unsigned char *)s.p;

	for (size_t i = 0; i + 3 < s.len && !o->failed; i += 4) {
		uint32_t u = big ? (uint32_t)p[i] << 24 | (uint32_t)p[i + 1] << 16 | (uint32_t)p[i + 2] << 8 | p[i + 3] :
			(uint32_t)p[i + 3] << 24 | (uint32_t)p[i + 2] << 16 | (uint32_t)p[i + 1] << 8 | p[i];

		if (u > 0x10ffff || (u >= 0xd800 && u <= 0xdfff))
			put_fault(o);
		else
			put(o, u);
	}
	if (s.len % 4)
		put_fault(o);
}

uint32_t fw_windows_1252(unsigned char c)
{
	/* 80-9F; the five holes are the C1 controls, as in browsers */
	static const uint16_t high[32] = {
		0x20ac, 0x81, 0x201a, 0x192, 0x201e, 0x2026, 0x2020, 0x2021, 0x2c6, 0x2030, 0x160, 0x2039, 0x152, 0x8d, 0x17d, 0x8f,
		0x90, 0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014, 0x2dc, 0x2122, 0x161, 0x203a, 0x153, 0x9d, 0x17e, 0x178,
	};

	return c >= 0x80 && c < 0xa0 ? high[c - 0x80] : c;
}

static void from_cp1252(struct out *o, struct fw_str s)
{
	size_t i = 0;

	while (i < s.len && !o->failed) {
		size_t from = i;

		while (i < s.len && (unsigned char)s.p[i] - 1u < 0x7f)
			i++;
		if (room(o, i - from) && i > from) {
			memcpy(o->p + o->len, s.p + from, i - from);
			o->len += i - from;
		}
		for (; i < s.len && (unsigned char)s.p[i] - 1u >= 0x7f; i++)
			put(o, fw_windows_1252((unsigned char)s.p[i]));
	}
}

/* iconv, one U+FFFD for each byte it cannot read. */
static void from_iconv(struct out *o, struct fw_str s, const char *name)
{
	iconv_t cd = iconv_open("UTF-8", name);
	char *in = (char *)(uintptr_t)s.p;
	size_t left = s.len;

	if (cd == (iconv_t)-1) {
		o->t.fault_n = SIZE_MAX / 2; /* this C library does not know it: try the next */
		return;
	}
	while (left && room(o, left + 16)) {
		char *at = o->p + o->len;
		size_t space = o->cap - o->len, before = left;
		size_t rc = iconv(cd, &in, &left, &at, &space);
		int why = errno;

		for (const char *p = o->p + o->len; p < at; p++)
			o->t.high_n += ((unsigned char)*p & 0xc0) == 0xc0;
		o->len = (size_t)(at - o->p);
		if (rc != (size_t)-1 || why == E2BIG) {
			if (rc == (size_t)-1 && left == before && !room(o, o->cap + 64))
				break;
			continue;
		}
		put_fault(o);
		if (left) { /* glibc refuses A2 E8 of Korean after it has gone past it */
			in++;
			left--;
		}
	}
	iconv_close(cd);
}

/* U+0000 out of what iconv wrote. */
static void drop_zeros(struct out *o)
{
	char *d = o->len ? memchr(o->p, 0, o->len) : NULL;

	for (const char *p = d; d && p < o->p + o->len; p++) {
		if (*p)
			*d++ = *p;
		else
			o->t.zero_n++;
	}
	if (d)
		o->len = (size_t)(d - o->p);
}

/* Most characters past ASCII take two bytes in UTF-8, or two of theirs become three: about right, and seldom too small. */
static size_t estimate(const struct encoding *e, struct fw_str s)
{
	size_t n = s.len + 32, high = 0;

	if (e->codec != CP1252 && e->codec != BY_ICONV)
		return n + s.len / 8;
	for (size_t i = 0; i < s.len; i++)
		high += (unsigned char)s.p[i] >> 7;
	return n + high * (strcmp(e->name, "windows-874") == 0 ? 2 : 1); /* Thai: three bytes for one */
}

/* Decode all of s into *text. False: out of memory. o->t tells how well it went. */
static bool decode(struct out *o, const struct encoding *e, struct fw_str s, struct fw_str *text)
{
	o->len = 0;
	o->t = (struct tally){0};
	if (!room(o, estimate(e, s)))
		return false;
	switch (e->codec) {
	case UTF8: from_utf8(o, s); break;
	case UTF16LE: from_utf16(o, s, false); break;
	case UTF16BE: from_utf16(o, s, true); break;
	case UTF32LE: from_utf32(o, s, false); break;
	case UTF32BE: from_utf32(o, s, true); break;
	case CP1252: from_cp1252(o, s); break;
	case BY_ICONV: from_iconv(o, s, e->iconv); drop_zeros(o); break;
	}
	if (o->failed)
		return false;
	/* a mark may also stand behind leading bytes that were another one */
	*text = (struct fw_str){o->p, o->len};
	if (begins(*text, "\xef\xbb\xbf", 3))
		*text = fw_str_sub(*text, 3, text->len);
	return true;
}

/* ---- choosing ------------------------------------------------------------------------------------------------------------------- */

struct candidate {
	const struct encoding *e;
	const char *by;
};

struct choice {
	struct candidate c[5];
	int n;
	bool unknown;  /* a label that is none */
	bool mismatch; /* a wide encoding was declared, but the bytes are narrow */
};

static bool is_wide(const struct encoding *e)
{
	return e->codec >= UTF16LE && e->codec <= UTF32BE;
}

static void offer(struct choice *ch, struct fw_str label, const char *by)
{
	const struct encoding *e = label.p ? by_label(label) : NULL;

	if (label.p && !e)
		ch->unknown = true;
	else if (e && is_wide(e))
		ch->mismatch = true; /* it has neither a mark nor zeros: it cannot be */
	else if (e)
		ch->c[ch->n++] = (struct candidate){e, by};
}

static size_t high_bytes(struct fw_str s)
{
	size_t n = 0;

	for (size_t i = 0; i < s.len; i++)
		n += (unsigned char)s.p[i] >> 7;
	return n;
}

/* What uchardet takes it for, from a little before the first byte beyond ASCII on. */
static const struct encoding *sniffed(struct fw_str s)
{
	const struct encoding *e = NULL;
	size_t from = 0;
	uchardet_t u;

	if (high_bytes(s) < SNIFF_MIN)
		return NULL;
	while ((unsigned char)s.p[from] < 0x80)
		from++;
	s = fw_str_sub(s, from > 1024 ? from - 1024 : 0, s.len);
	u = uchardet_new();
	if (!u)
		return NULL;
	if (uchardet_handle_data(u, s.p, FW_MIN(s.len, SNIFF_BYTES)) == 0) {
		uchardet_data_end(u);
		e = by_label(fw_str(uchardet_get_charset(u)));
	}
	uchardet_delete(u);
	return e && !is_wide(e) ? e : NULL;
}

static void set(struct fw_charset_result *r, struct fw_str text, struct candidate c, const char *problem, const char *repair)
{
	r->text = text;
	r->encoding = c.e->name;
	r->declared_by = c.by;
	if (problem) {
		r->wrong = true;
		r->problem = problem;
		r->repair = repair;
	}
}

/* Nothing that was declared fits. */
static int rescue(struct out *o, struct fw_str s, const struct choice *ch, struct fw_charset_result *r)
{
	static const char bytes[] = "bytes that its encoding does not have";
	struct candidate c = {by_codec(UTF8), "sniffed"};
	struct fw_str text;

	if (!decode(o, c.e, s, &text))
		return FW_ENOMEM;
	if (o->t.high_n >= 4 * o->t.fault_n) {
		set(r, text, c, bytes, "read as UTF-8, the wrong ones replaced by U+FFFD");
		return 0;
	}
	for (int i = 0; i < ch->n; i++) {
		if (ch->c[i].e->codec != BY_ICONV)
			continue;
		if (!decode(o, ch->c[i].e, s, &text))
			return FW_ENOMEM;
		if (o->t.high_n >= 20 * o->t.fault_n) {
			set(r, text, ch->c[i], bytes, "the wrong ones replaced by U+FFFD");
			return 0;
		}
	}
	c.e = sniffed(s);
	if (c.e && c.e->codec != UTF8) {
		if (!decode(o, c.e, s, &text))
			return FW_ENOMEM;
		if (o->t.high_n >= 20 * o->t.fault_n) {
			set(r, text, c, bytes, "the encoding was guessed from the bytes");
			return 0;
		}
	}
	c.e = by_codec(CP1252);
	if (!decode(o, c.e, s, &text))
		return FW_ENOMEM;
	set(r, text, c, bytes, "read as windows-1252");
	return 0;
}

/* A mark or zeros leave no doubt: whatever does not fit is replaced. */
static int decode_certain(struct out *o, struct fw_str s, struct candidate c, struct fw_charset_result *r)
{
	struct fw_str text;

	if (c.e->codec == UTF8 && !memchr(s.p, 0, s.len) && fw_utf8_valid(s.p, s.len) == s.len) {
		set(r, s, c, NULL, NULL);
		return 0;
	}
	if (!decode(o, c.e, s, &text))
		return FW_ENOMEM;
	if (c.e->codec == UTF8 && o->t.fault_n > 1 && o->t.high_n < 4 * o->t.fault_n) {
		struct choice none = {.n = 0};

		return rescue(o, s, &none, r); /* a mark in front of something else */
	}
	set(r, text, c, o->t.fault_n || o->t.zero_n ? "bytes that its encoding does not have" : NULL, "replaced by U+FFFD");
	return 0;
}

static int choose(struct out *o, struct fw_str s, struct choice *ch, struct fw_charset_result *r)
{
	bool zero = memchr(s.p, 0, s.len) != NULL;
	struct fw_str text;

	for (int i = 0; i < ch->n; i++) {
		const struct encoding *e = ch->c[i].e;

		if (e->codec == UTF8 && !zero) {
			if (fw_utf8_valid(s.p, s.len) != s.len)
				continue;
			text = s;
		} else {
			if (!decode(o, e, s, &text))
				return FW_ENOMEM;
			if (o->t.fault_n || o->t.zero_n)
				continue;
		}
		if (i > 0)
			set(r, text, ch->c[i], "bytes that the declared encoding does not have", "another encoding was found to fit");
		else
			set(r, text, ch->c[i], NULL, NULL);
		return 0;
	}
	return rescue(o, s, ch, r);
}

/* "us-ascii" is windows-1252 to browsers; but bytes beyond ASCII prove it wrong, and UTF-8 is then the better guess. */
static bool is_ascii_label(struct fw_str label)
{
	return fw_str_ieq(label, FW_STR("us-ascii")) || fw_str_ieq(label, FW_STR("ascii"));
}

/* A server's habitual single-byte label over a document that says UTF-8 and is. */
static bool mislabelled(struct fw_str http, struct fw_str xml, struct fw_str s)
{
	const struct encoding *h = by_label(http), *x = by_label(xml);

	return h && x && x->codec == UTF8 && (h->codec == CP1252 || (h->codec == BY_ICONV && fw_str_istarts(fw_str(h->name), FW_STR("iso-8859")))) &&
		high_bytes(s) > 0 && fw_utf8_valid(s.p, s.len) == s.len;
}

int fw_charset_decode(struct fw_arena *a, struct fw_str bytes, struct fw_str content_type, struct fw_charset_result *r,
	struct fw_err *err)
{
	struct fw_str http = fw_charset_of_type(content_type), xml;
	struct choice ch = {.n = 0};
	struct out o = {.a = a};
	const struct encoding *e;
	size_t skip;
	int rc;

	*r = (struct fw_charset_result){.text = FW_STR(""), .encoding = "utf-8", .declared_by = "default"};
	if (!bytes.len)
		return 0;
	e = by_mark(bytes, &skip);
	if (e) {
		rc = decode_certain(&o, fw_str_sub(bytes, skip, bytes.len), (struct candidate){e, "bom"}, r);
		goto out;
	}
	e = by_zeros(bytes);
	if (e) {
		rc = decode_certain(&o, bytes, (struct candidate){e, "zeros"}, r);
		goto out;
	}
	xml = declared(bytes);
	if ((is_ascii_label(http) || (!http.p && is_ascii_label(xml))) && high_bytes(bytes)) {
		http = xml = FW_STR_NONE;
		ch.mismatch = true;
	}
	if (mislabelled(http, xml, bytes)) {
		http = FW_STR_NONE;
		ch.mismatch = true;
	}
	offer(&ch, http, "http");
	offer(&ch, xml, "xml");
	if (ch.n == 0 || ch.c[ch.n - 1].e->codec != UTF8)
		ch.c[ch.n++] = (struct candidate){by_codec(UTF8), "default"};
	rc = choose(&o, bytes, &ch, r);
	if (!rc && (ch.unknown || ch.mismatch) && !r->problem) {
		r->wrong = true;
		r->problem = ch.unknown ? "the declared encoding is unknown" : "the declared encoding cannot be that of these bytes";
		r->repair = "another encoding was found to fit";
	}
out:
	if (o.p) /* nothing of it when another way was found after all */
		fw_arena_trim(a, o.p, o.cap, r->text.p >= o.p && r->text.p < o.p + o.cap ? o.len : 0);
	if (rc)
		return fw_err_set(err, a->max_bytes ? FW_ELIMIT : FW_ENOMEM, "decoding the document takes more than the memory allowed");
	return 0;
}
