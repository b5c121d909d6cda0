/* SPDX-License-Identifier: ISC */
/*
 * Names the probable type of a document that is not a feed, for the error message. Reads only its
 * first bytes.
 */
#include "base/str.h"
#include "parse/charset/sniff.h"

#define SNIFF_HEAD 4096
#define SNIFF_PAGE_HEAD ((size_t)256 * 1024)

static bool has_magic(struct fw_str s, size_t at, const char *magic, size_t n)
{
	return s.len >= at + n && !memcmp(s.p + at, magic, n);
}

static const char *binary_name(struct fw_str s)
{
	static const struct {
		const char *magic;
		uint8_t at, n;
		const char *name;
	} known[] = {
		{"\x89PNG\r\n\x1a\n", 0, 8, "an image (PNG)"},
		{"\xff\xd8\xff", 0, 3, "an image (JPEG)"},
		{"GIF8", 0, 4, "an image (GIF)"},
		{"WEBP", 8, 4, "an image (WebP)"},
		{"\0\0\1\0", 0, 4, "an image (icon)"},
		{"ftypavif", 4, 8, "an image (AVIF)"},
		{"BM", 0, 2, "an image (BMP)"},
		{"II*\0", 0, 4, "an image (TIFF)"},
		{"MM\0*", 0, 4, "an image (TIFF)"},
		{"wOF2", 0, 4, "a font"},
		{"%!PS", 0, 4, "a PostScript document"},
		{"{\\rtf", 0, 5, "an RTF document"},
		{"%PDF-", 0, 5, "a PDF document"},
		{"PK\3\4", 0, 4, "a ZIP archive"},
		{"\x1f\x8b", 0, 2, "compressed data (gzip) that cannot be unpacked"},
		{"\x28\xb5\x2f\xfd", 0, 4, "compressed data (zstd)"},
		{"BZh", 0, 3, "compressed data (bzip2)"},
		{"\xfd"
		 "7zXZ",
			0, 5, "compressed data (xz)"},
		{"ID3", 0, 3, "audio (MP3)"},
		{"OggS", 0, 4, "audio or video (Ogg)"},
		{"ftyp", 4, 4, "audio or video (MP4)"},
		{"RIFF", 0, 4, "audio or video (RIFF)"},
		{"\x7f"
		 "ELF",
			0, 4, "a program (ELF)"},
	};
	size_t i;

	for (i = 0; i < FW_N(known); i++) {
		if (has_magic(s, known[i].at, known[i].magic, known[i].n))
			return known[i].name;
	}
	return NULL;
}

/* Binary: more than one byte in a hundred is a control character that text does not contain. */
static bool is_binary(struct fw_str s)
{
	size_t i, odd = 0;

	for (i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.p[i];

		odd += (c < 32 && !fw_is_space(c) && c != 0x1b) || c == 127;
	}
	return odd * 100 > s.len;
}

/* Skip a document type other than HTML's. Returns s if there is none. */
static struct fw_str past_doctype(struct fw_str s)
{
	const char *end;

	if (!fw_str_istarts(s, FW_STR("<!doctype")) || fw_str_istarts(s, FW_STR("<!doctype html")))
		return s;
	end = memchr(s.p, '>', s.len);
	if (end && memchr(s.p, '[', (size_t)(end - s.p))) {
		end = fw_str_find(s, FW_STR("]>"));
		end = end ? end + 1 : NULL;
	}
	return end ? fw_str_trim(fw_str_sub(s, (size_t)(end + 1 - s.p), s.len)) : s;
}

/*
 * Skip a BOM, white space, comments, processing instructions and the document type. *declared: one
 * was an XML declaration.
 */
static struct fw_str first_tag(struct fw_str s, bool *declared)
{
	const char *end;

	*declared = false;
	if (has_magic(s, 0, "\xef\xbb\xbf", 3))
		s = fw_str_sub(s, 3, s.len);
	for (;;) {
		s = fw_str_trim(s);
		if (has_magic(s, 0, "<!--", 4)) {
			end = fw_str_find(s, FW_STR("-->"));
			s = end ? fw_str_sub(s, (size_t)(end + 3 - s.p), s.len) : FW_STR("");
		} else if (has_magic(s, 0, "<?", 2)) {
			*declared |= fw_str_istarts(s, FW_STR("<?xml"));
			end = fw_str_find(s, FW_STR("?>"));
			s = end ? fw_str_sub(s, (size_t)(end + 2 - s.p), s.len) : FW_STR("");
		} else if (past_doctype(s).len != s.len) {
			s = past_doctype(s);
		} else {
			return s;
		}
	}
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

bool fw_sniff_is_html(struct fw_str bytes, struct fw_str content_type)
{
	static const char *const tags[] = {"<!doctype html", "<html", "<head", "<body", "<title", "<meta", "<script",
		"<div", "<p>", "<h1", "<h2", "<h3", "<link", "<style", "<table", "<br", "<a ", "<b>", "<p ", "<pre",
		"<span", "<center", "<font", "<form", "<img"};
	struct fw_str s = fw_str_sub(bytes, 0, SNIFF_HEAD);
	char type[40];
	bool declared;
	size_t i;

	s = first_tag(s, &declared);
	for (i = 0; i < FW_N(tags); i++) {
		if (fw_str_istarts(s, fw_str(tags[i])))
			return true;
	}
	if (fw_str_ifind(s, FW_STR("<html")))
		return true;
	fw_media_type(content_type, type, sizeof(type));
	return !declared && s.len && s.p[0] == '<' && !strcmp(type, "text/html");
}

const char *fw_sniff_name(struct fw_str bytes, struct fw_str content_type)
{
	struct fw_str s = fw_str_sub(bytes, 0, SNIFF_HEAD), tag;
	const char *name;
	bool declared;

	if (!bytes.len)
		return "empty";
	name = binary_name(s);
	if (name)
		return name;
	tag = first_tag(s, &declared);
	if (!tag.len)
		return bytes.len <= SNIFF_HEAD && !declared ? "empty (white space or comments only)" :
							      "an XML document";
	if (fw_sniff_is_html(bytes, content_type))
		return "an HTML page";
	if (fw_str_istarts(tag, FW_STR("<opml")))
		return "a list of subscriptions (OPML)";
	if (fw_str_istarts(tag, FW_STR("<svg")))
		return "an image (SVG)";
	if (fw_str_istarts(tag, FW_STR("<urlset")) || fw_str_istarts(tag, FW_STR("<sitemapindex")))
		return "a sitemap";
	if (declared || tag.p[0] == '<')
		return "an XML document";
	if (tag.p[0] == '{' || tag.p[0] == '[')
		return "JSON that is not a feed";
	return is_binary(s) ? "binary data" : "plain text";
}

bool fw_sniff_has_login(struct fw_str html)
{
	struct fw_str s = fw_str_sub(html, 0, SNIFF_PAGE_HEAD);
	const char *at;

	while ((at = fw_str_ifind(s, FW_STR("<input"))) != NULL) {
		struct fw_str tag;

		s = fw_str_sub(s, (size_t)(at - s.p), s.len);
		tag = fw_str_split(s, '>', &s);
		if (fw_str_ifind(tag, FW_STR("password")))
			return true;
	}
	return false;
}
