/* SPDX-License-Identifier: ISC */
/*
 * Chooses a document's encoding; decode.c decodes it.
 *
 * Declarations, strongest first: a byte order mark, zero bytes around the first '<' (XML 1.0
 * appendix F), the HTTP charset, the XML declaration, UTF-8 (RFC 7303 section 3.2). The first that
 * decodes without a fault wins. If none does: UTF-8 with replacements if most of it is UTF-8 (a
 * truncated transfer, one stray byte); the declared encoding with replacements if its faults are
 * rare; then uchardet's guess; then windows-1252, which can decode anything.
 *
 * A document that is valid UTF-8 throughout, with enough multi-byte characters to rule out chance,
 * is UTF-8 whatever it declares.
 *
 * Labels and encodings are those of the WHATWG Encoding Standard. No other label is accepted
 * (CHR-02), so UTF-7, EBCDIC and ISO-2022-CN are never decoded.
 */
#include <string.h>
#include <uchardet.h>

#include "base/utf8.h"
#include "parse/charset/charset.h"
#include "parse/charset/decode.h"
#include "parse/charset/scan.h"
#include "parse/charset/sniff.h"

#define SNIFF_BYTES ((size_t)64 * 1024)
#define SNIFF_MIN 8 /* with fewer bytes outside ASCII a guess is worthless */
#define DECLARATION_BYTES ((size_t)1024)
/* this many continuation bytes, all valid, are not chance */
#define UTF8_PROOF 8

static const struct encoding ENCODINGS[] = {
	{"utf-8", UTF8, "utf-8 utf8 unicode-1-1-utf-8 unicode11utf8 unicode20utf8 x-unicode20utf8"},
	{"windows-1252", SINGLE_BYTE,
		"windows-1252 cp1252 x-cp1252 iso-8859-1 iso8859-1 iso88591 iso_8859-1 iso_8859-1:1987 iso-ir-100 "
		"latin1 latin-1 l1 cp819 ibm819 csisolatin1 us-ascii ascii ansi_x3.4-1968 iso646-us "
		"x-user-defined"}, /* as for a page's <meta>: a private use area helps no reader */
	{"ibm866", SINGLE_BYTE, "ibm866 866 cp866 csibm866"},
	{"iso-8859-2", SINGLE_BYTE,
		"iso-8859-2 iso8859-2 iso88592 iso_8859-2 iso_8859-2:1987 iso-ir-101 latin2 l2 csisolatin2"},
	{"iso-8859-3", SINGLE_BYTE,
		"iso-8859-3 iso8859-3 iso88593 iso_8859-3 iso_8859-3:1988 iso-ir-109 latin3 l3 csisolatin3"},
	{"iso-8859-4", SINGLE_BYTE,
		"iso-8859-4 iso8859-4 iso88594 iso_8859-4 iso_8859-4:1988 iso-ir-110 latin4 l4 csisolatin4"},
	{"iso-8859-5", SINGLE_BYTE,
		"iso-8859-5 iso8859-5 iso88595 iso_8859-5 iso_8859-5:1988 iso-ir-144 cyrillic csisolatincyrillic"},
	{"iso-8859-6", SINGLE_BYTE,
		"iso-8859-6 iso8859-6 iso88596 iso_8859-6 iso_8859-6:1987 iso-ir-127 arabic asmo-708 ecma-114 "
		"csisolatinarabic csiso88596e csiso88596i iso-8859-6-e iso-8859-6-i"},
	{"iso-8859-7", SINGLE_BYTE,
		"iso-8859-7 iso8859-7 iso88597 iso_8859-7 iso_8859-7:1987 iso-ir-126 greek greek8 ecma-118 elot_928 "
		"csisolatingreek sun_eu_greek"},
	{"iso-8859-8", SINGLE_BYTE,
		"iso-8859-8 iso8859-8 iso88598 iso_8859-8 iso_8859-8:1988 iso-ir-138 hebrew visual csiso88598e "
		"csisolatinhebrew iso-8859-8-e iso-8859-8-i csiso88598i logical"},
	{"iso-8859-10", SINGLE_BYTE, "iso-8859-10 iso8859-10 iso885910 iso-ir-157 latin6 l6 csisolatin6"},
	{"iso-8859-13", SINGLE_BYTE, "iso-8859-13 iso8859-13 iso885913"},
	{"iso-8859-14", SINGLE_BYTE, "iso-8859-14 iso8859-14 iso885914"},
	{"iso-8859-15", SINGLE_BYTE, "iso-8859-15 iso8859-15 iso885915 iso_8859-15 latin9 latin-9 l9 csisolatin9"},
	{"iso-8859-16", SINGLE_BYTE, "iso-8859-16"},
	{"koi8-r", SINGLE_BYTE, "koi8-r koi8_r koi8 koi cskoi8r"},
	{"koi8-u", SINGLE_BYTE, "koi8-u koi8-ru"},
	{"macintosh", SINGLE_BYTE, "macintosh mac x-mac-roman csmacintosh"},
	{"windows-874", SINGLE_BYTE, "windows-874 dos-874 iso-8859-11 iso8859-11 iso885911 tis-620"},
	{"windows-1250", SINGLE_BYTE, "windows-1250 cp1250 x-cp1250"},
	{"windows-1251", SINGLE_BYTE, "windows-1251 cp1251 x-cp1251"},
	{"windows-1253", SINGLE_BYTE, "windows-1253 cp1253 x-cp1253"},
	{"windows-1254", SINGLE_BYTE,
		"windows-1254 cp1254 x-cp1254 iso-8859-9 iso8859-9 iso88599 iso_8859-9 iso_8859-9:1989 iso-ir-148 "
		"latin5 l5 csisolatin5"},
	{"windows-1255", SINGLE_BYTE, "windows-1255 cp1255 x-cp1255"},
	{"windows-1256", SINGLE_BYTE, "windows-1256 cp1256 x-cp1256"},
	{"windows-1257", SINGLE_BYTE, "windows-1257 cp1257 x-cp1257"},
	{"windows-1258", SINGLE_BYTE, "windows-1258 cp1258 x-cp1258"},
	{"x-mac-cyrillic", SINGLE_BYTE, "x-mac-cyrillic x-mac-ukrainian"},
	{"gb18030", GB18030,
		"gb18030 gbk gb2312 gb_2312 gb_2312-80 chinese csgb2312 csiso58gb231280 iso-ir-58 x-gbk cp936 euc-cn"},
	{"big5", BIG5, "big5 big5-hkscs cn-big5 csbig5 x-x-big5 cp950"},
	{"euc-jp", EUC_JP, "euc-jp x-euc-jp cseucpkdfmtjapanese"},
	{"iso-2022-jp", ISO_2022_JP, "iso-2022-jp csiso2022jp"},
	{"shift_jis", SHIFT_JIS, "shift_jis shift-jis sjis x-sjis ms_kanji ms932 windows-31j csshiftjis cp932"},
	{"euc-kr", EUC_KR,
		"euc-kr korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 iso-ir-149 cseuckr csksc56011987 "
		"windows-949 cp949 uhc"},
	{"utf-16le", UTF16LE, "utf-16le utf-16 unicode ucs-2 iso-10646-ucs-2 unicodefeff csunicode utf16"},
	{"utf-16be", UTF16BE, "utf-16be unicodefffe"},
	/* from XML, not WHATWG: used only if the bytes match */
	{"utf-32le", UTF32LE, "utf-32le utf-32 ucs-4 ucs-4le iso-10646-ucs-4 utf32"},
	{"utf-32be", UTF32BE, "utf-32be ucs-4be"},
};

static const struct encoding *encoding_by_label(struct fw_str label)
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

static const struct encoding *encoding_by_codec(enum codec codec)
{
	for (size_t i = 0; i < FW_N(ENCODINGS); i++) {
		if (ENCODINGS[i].codec == codec)
			return &ENCODINGS[i];
	}
	return NULL;
}

static const struct encoding *encoding_windows_1252(void)
{
	return &ENCODINGS[1];
}

const char *fw_charset_label(struct fw_str label)
{
	const struct encoding *e = encoding_by_label(label);

	return e ? e->name : NULL;
}

/* ---- the header ------------------------------------------------------------------------------ */

static struct fw_str label_unquote(struct fw_str s)
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
			value = label_unquote(value);
			return value.len ? value : FW_STR_NONE;
		}
	}
	return FW_STR_NONE;
}

/* ---- detection from the bytes ---------------------------------------------------------------- */

static bool bytes_begin_with(struct fw_str s, const char *bytes, size_t n)
{
	return s.len >= n && memcmp(s.p, bytes, n) == 0;
}

/* *skip is the length of the BOM. */
static const struct encoding *encoding_by_bom(struct fw_str s, size_t *skip)
{
	*skip = 4;
	if (bytes_begin_with(s, "\xff\xfe\0\0", 4))
		return encoding_by_codec(UTF32LE);
	if (bytes_begin_with(s, "\0\0\xfe\xff", 4))
		return encoding_by_codec(UTF32BE);
	*skip = 3;
	if (bytes_begin_with(s, "\xef\xbb\xbf", 3))
		return encoding_by_codec(UTF8);
	*skip = 2;
	if (bytes_begin_with(s, "\xff\xfe", 2))
		return encoding_by_codec(UTF16LE);
	if (bytes_begin_with(s, "\xfe\xff", 2))
		return encoding_by_codec(UTF16BE);
	*skip = 0;
	return NULL;
}

/* Detect UTF-16 and UTF-32 by zero bytes around the first character of markup or JSON. */
static const struct encoding *encoding_by_zeros(struct fw_str s)
{
	const unsigned char *p = (const unsigned char *)s.p;

	if (s.len < 4)
		return NULL;
	if (p[0] && !p[1] && !p[2] && !p[3])
		return encoding_by_codec(UTF32LE);
	if (!p[0] && !p[1] && !p[2] && p[3])
		return encoding_by_codec(UTF32BE);
	if (p[0] && !p[1] && p[2] && !p[3])
		return encoding_by_codec(UTF16LE);
	if (!p[0] && p[1] && !p[2] && p[3])
		return encoding_by_codec(UTF16BE);
	return NULL;
}

/* The value at the start of s, with or without quotes. */
static struct fw_str attr_value_first(struct fw_str s)
{
	struct fw_str rest;

	s = fw_str_trim(s);
	if (s.len && (s.p[0] == '"' || s.p[0] == '\''))
		return fw_str_trim(fw_str_split(fw_str_sub(s, 1, s.len), s.p[0], &rest));
	for (size_t i = 0; i < s.len; i++) {
		if (fw_is_space((unsigned char)s.p[i]) || s.p[i] == '"' || s.p[i] == '\'' || s.p[i] == ';')
			s.len = i;
	}
	return s.len ? s : FW_STR_NONE;
}

/* The charset of a <meta> near the start of an HTML page, also within its content attribute. */
static struct fw_str label_of_html(struct fw_str head)
{
	const char *at = fw_str_ifind(head, FW_STR("<meta"));
	struct fw_str value;

	while (at) {
		head = fw_str_sub(head, (size_t)(at - head.p) + 5, head.len);
		value = fw_str_split(head, '>', &head);
		at = fw_str_ifind(value, FW_STR("charset"));
		if (at) {
			(void)fw_str_split(fw_str_sub(value, (size_t)(at - value.p) + 7, value.len), '=', &value);
			return attr_value_first(value);
		}
		at = fw_str_ifind(head, FW_STR("<meta"));
	}
	return FW_STR_NONE;
}

/* The encoding in the XML declaration, or in an HTML page's <meta>. Absent: none. */
static struct fw_str label_of_document(struct fw_str s, struct fw_str content_type)
{
	struct fw_str head = fw_str_sub(s, 0, DECLARATION_BYTES), rest;
	const char *at = fw_str_find(head, FW_STR("<?xml")), *end;

	rest = fw_str_trim(head);
	/* JSON text may quote an XML declaration */
	if (rest.len && (*rest.p == '{' || *rest.p == '['))
		return FW_STR_NONE;
	if (!at)
		return fw_sniff_is_html(s, content_type) ? label_of_html(head) : FW_STR_NONE;
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
	return attr_value_first(rest);
}

/* ---- choosing -------------------------------------------------------------------------------- */

struct candidate {
	const struct encoding *e;
	const char *by;
};

struct choice {
	struct candidate c[5];
	int n;
	const char *problem; /* with the declarations, or NULL */
	size_t offset;       /* of the faulty declaration */
};

static const char LABEL_UNKNOWN[] = "the declared encoding is unknown",
		  LABEL_MISMATCH[] = "the declared encoding does not match the bytes",
		  FAULT[] = "bytes that its encoding does not have", OTHER[] = "another encoding was found to fit",
		  REPLACED[] = "replaced by U+FFFD";

static bool encoding_is_wide(const struct encoding *e)
{
	return e->codec >= UTF16LE && e->codec <= UTF32BE;
}

/* Is every byte below 0x80 outside a longer character an ASCII character? */
static bool encoding_holds_ascii(const struct encoding *e)
{
	return !encoding_is_wide(e) && e->codec != ISO_2022_JP;
}

/* Add a candidate. offset: position of the label in the document; 0: not in the document. */
static void candidate_add(struct choice *ch, struct fw_str label, const char *by, size_t offset)
{
	const struct encoding *e = label.p ? encoding_by_label(label) : NULL;
	/* a wide encoding would have a BOM or zero bytes, and this document has neither */
	const char *problem = !e ? LABEL_UNKNOWN : encoding_is_wide(e) ? LABEL_MISMATCH : NULL;

	if (!label.p)
		return;
	if (!problem) {
		ch->c[ch->n++] = (struct candidate){e, by};
	} else if (ch->problem != LABEL_UNKNOWN) {
		ch->problem = problem;
		ch->offset = offset;
	}
}

static size_t high_bytes(struct fw_str s)
{
	size_t n = 0;

	for (size_t i = 0; i < s.len; i++)
		n += (unsigned char)s.p[i] >> 7;
	return n;
}

/* uchardet's guess, from shortly before the first byte outside ASCII. */
static const struct encoding *encoding_sniff(struct fw_str s)
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
		e = encoding_by_label(fw_str(uchardet_get_charset(u)));
	}
	uchardet_delete(u);
	return e && !encoding_is_wide(e) ? e : NULL;
}

static void charset_result_set(struct fw_charset_result *r, struct fw_str text, struct candidate c)
{
	r->text = text;
	r->encoding = c.e->name;
	r->declared_by = c.by;
}

static void charset_result_wrong(struct fw_charset_result *r, size_t offset, const char *problem, const char *repair)
{
	r->wrong = true;
	r->offset = offset;
	r->problem = problem;
	r->repair = repair;
}

/* Decode s. *place: the offset in the text of the byte `bad`, at which another encoding failed. */
static bool decode_locating(
	struct decode_out *o, const struct encoding *e, struct fw_str s, size_t bad, struct fw_str *text, size_t *place)
{
	if (!fw_charset_decode_as(o, e, fw_str_sub(s, 0, bad), text))
		return false;
	*place = text->len;
	return fw_charset_decode_as(o, e, s, text);
}

/*
 * Choose a fallback when no declared encoding fits. `bad`: the byte at which the first one failed.
 */
static int decode_fallback(
	struct decode_out *o, struct fw_str s, const struct choice *ch, size_t bad, struct fw_charset_result *r)
{
	struct candidate c = {encoding_by_codec(UTF8), "sniffed"};
	struct fw_str text;
	size_t place;

	if (!fw_charset_decode_as(o, c.e, s, &text))
		return FW_ENOMEM;
	if (o->t.high_n >= 4 * o->t.fault_n) {
		charset_result_set(r, text, c);
		charset_result_wrong(r, o->t.place, FAULT, "read as UTF-8, the wrong ones replaced by U+FFFD");
		return 0;
	}
	for (int i = 0; i < ch->n; i++) {
		if (ch->c[i].e->codec == UTF8)
			continue;
		if (!fw_charset_decode_as(o, ch->c[i].e, s, &text))
			return FW_ENOMEM;
		if (o->t.high_n >= 20 * o->t.fault_n) {
			charset_result_set(r, text, ch->c[i]);
			charset_result_wrong(r, o->t.place, FAULT, "the wrong ones replaced by U+FFFD");
			return 0;
		}
	}
	c.e = encoding_sniff(s);
	if (c.e && c.e->codec != UTF8) {
		if (!decode_locating(o, c.e, s, bad, &text, &place))
			return FW_ENOMEM;
		if (o->t.high_n >= 20 * o->t.fault_n) {
			charset_result_set(r, text, c);
			charset_result_wrong(r, place, FAULT, "the encoding was guessed from the bytes");
			return 0;
		}
	}
	c.e = encoding_windows_1252();
	if (!decode_locating(o, c.e, s, bad, &text, &place))
		return FW_ENOMEM;
	charset_result_set(r, text, c);
	charset_result_wrong(r, place, FAULT, "read as windows-1252");
	return 0;
}

/* Decode by a BOM, zero bytes or escapes, which are conclusive. Faults are replaced. */
static int decode_certain(struct decode_out *o, struct fw_str s, struct candidate c, struct fw_charset_result *r)
{
	struct fw_str text;

	if (c.e->codec == UTF8 && !memchr(s.p, 0, s.len) && fw_utf8_valid(s.p, s.len) == s.len) {
		charset_result_set(r, s, c);
		return 0;
	}
	if (!fw_charset_decode_as(o, c.e, s, &text))
		return FW_ENOMEM;
	if (c.e->codec == UTF8 && o->t.fault_n > 1 && o->t.high_n < 4 * o->t.fault_n) {
		struct choice none = {.n = 0};

		return decode_fallback(o, s, &none, o->t.bad, r); /* a BOM before something else */
	}
	charset_result_set(r, text, c);
	if (o->t.fault_n || o->t.zero_n)
		charset_result_wrong(r, o->t.place, FAULT, REPLACED);
	return 0;
}

static int encoding_choose(struct decode_out *o, struct fw_str s, struct choice *ch, struct fw_charset_result *r)
{
	bool zero = memchr(s.p, 0, s.len) != NULL;
	size_t bad = 0, place = 0;
	struct fw_str text = s;

	for (int i = 0; i < ch->n; i++) {
		const struct encoding *e = ch->c[i].e;

		if (e->codec == UTF8 && !zero) {
			place = fw_utf8_valid(s.p, s.len);
			if (place != s.len) {
				bad = i > 0 ? bad : place;
				continue;
			}
			place = bad;
			text = s;
		} else if (!zero && encoding_holds_ascii(e) && scan_high(s.p, s.p + s.len) == s.p + s.len) {
			text = s; /* no decoding needed */
		} else {
			if (i > 0 ? !decode_locating(o, e, s, bad, &text, &place) :
				    !fw_charset_decode_as(o, e, s, &text))
				return FW_ENOMEM;
			if (o->t.fault_n || o->t.zero_n) {
				bad = i > 0 ? bad : o->t.bad;
				continue;
			}
		}
		charset_result_set(r, text, ch->c[i]);
		if (i > 0)
			charset_result_wrong(r, place, "bytes that the declared encoding does not have", OTHER);
		return 0;
	}
	return decode_fallback(o, s, ch, bad, r);
}

/*
 * "us-ascii" means windows-1252 to browsers. Bytes outside ASCII disprove the label, and UTF-8 is
 * the better guess.
 */
static bool is_ascii_label(struct fw_str label)
{
	return fw_str_ieq(label, FW_STR("us-ascii")) || fw_str_ieq(label, FW_STR("ascii"));
}

/*
 * Did a server label a document with its default single-byte charset that declares UTF-8 and is
 * UTF-8?
 */
static bool is_mislabelled(struct fw_str http, struct fw_str xml, struct fw_str s)
{
	const struct encoding *h = encoding_by_label(http), *x = encoding_by_label(xml);

	return h && x && x->codec == UTF8 &&
		(h == encoding_windows_1252() || fw_str_istarts(fw_str(h->name), FW_STR("iso-8859"))) &&
		high_bytes(s) > 0 && fw_utf8_valid(s.p, s.len) == s.len;
}

/* Is s valid UTF-8 with enough multi-byte characters to disprove another declared encoding? */
static bool proves_utf8(struct fw_str s)
{
	size_t n = 0, i = s.len ? (size_t)(scan_high(s.p, s.p + s.len) - s.p) : 0;

	if (i == s.len || fw_utf8_valid(s.p, s.len) != s.len)
		return false;
	for (; i < s.len && n < UTF8_PROOF; i++)
		n += ((unsigned char)s.p[i] & 0xc0) == 0x80;
	return n == UTF8_PROOF;
}

/* Collect the candidates: the header's, the document's, UTF-8. */
static void candidates_collect(struct choice *ch, struct fw_str bytes, struct fw_str content_type)
{
	struct fw_str http = fw_charset_of_type(content_type), xml = label_of_document(bytes, content_type);
	size_t offset = xml.p ? (size_t)(xml.p - bytes.p) : 0;
	const struct encoding *first;

	if ((is_ascii_label(http) || (!http.p && is_ascii_label(xml))) && high_bytes(bytes)) {
		ch->problem = LABEL_MISMATCH;
		ch->offset = http.p ? 0 : offset;
		http = xml = FW_STR_NONE;
	}
	if (is_mislabelled(http, xml, bytes)) {
		ch->problem = LABEL_MISMATCH;
		http = FW_STR_NONE;
	}
	candidate_add(ch, http, "http", 0);
	candidate_add(ch, xml, "xml", offset);
	first = ch->n ? ch->c[0].e : NULL;
	if (first && first->codec != UTF8 && proves_utf8(bytes)) {
		ch->problem = LABEL_MISMATCH;
		ch->offset = strcmp(ch->c[0].by, "xml") == 0 ? offset : 0;
		ch->n = 0;
	}
	if (ch->n == 0 || ch->c[ch->n - 1].e->codec != UTF8)
		ch->c[ch->n++] = (struct candidate){encoding_by_codec(UTF8), "default"};
}

static int decode_candidates(
	struct decode_out *o, struct fw_str bytes, struct fw_str content_type, struct fw_charset_result *r)
{
	struct choice ch = {.n = 0};
	const struct encoding *e;
	size_t skip;
	int rc;

	e = encoding_by_bom(bytes, &skip);
	if (e)
		return decode_certain(o, fw_str_sub(bytes, skip, bytes.len), (struct candidate){e, "bom"}, r);
	e = encoding_by_zeros(bytes);
	if (e)
		return decode_certain(o, bytes, (struct candidate){e, "zeros"}, r);
	candidates_collect(&ch, bytes, content_type);
	/* 7-bit escapes: any other encoding would also decode without faults */
	if (ch.c[0].e->codec == ISO_2022_JP && memchr(bytes.p, 0x1b, bytes.len))
		rc = decode_certain(o, bytes, ch.c[0], r);
	else
		rc = encoding_choose(o, bytes, &ch, r);
	if (!rc && ch.problem && !r->problem)
		charset_result_wrong(r, ch.offset, ch.problem, OTHER);
	return rc;
}

int fw_charset_decode(struct fw_arena *a, struct fw_str bytes, struct fw_str content_type, struct fw_charset_result *r,
	struct fw_err *err)
{
	struct decode_out o = {.a = a};
	int rc;

	*r = (struct fw_charset_result){.text = FW_STR(""), .encoding = "utf-8", .declared_by = "default"};
	if (!bytes.len)
		return 0;
	rc = decode_candidates(&o, bytes, content_type, r);
	/* release the buffer if the text is not in it */
	if (o.p)
		fw_arena_trim(a, o.p, o.cap, r->text.p >= o.p && r->text.p < o.p + o.cap ? o.len : 0);
	if (rc)
		return fw_err_set(
			err, a->max_bytes ? FW_ELIMIT : FW_ENOMEM, "memory limit exceeded while decoding the document");
	return 0;
}
