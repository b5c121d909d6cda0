/* SPDX-License-Identifier: ISC */
/* Titles of RSS do not declare whether they are HTML. They count as HTML if they look like it. */
#include "parse/charset/entity.h"
#include "parse/charset/scan.h"
#include "parse/html/title.h"
#include "parse/html/token.h"

/* Tags that are never meant as text, or that must never be treated as text. */
static bool tag_is_evident(enum fw_el el)
{
	switch (el) {
	case FW_E_BR:
	case FW_E_HR:
	case FW_E_IMG:
	case FW_E_WBR:
	case FW_E_BASE:
	case FW_E_EMBED:
	case FW_E_FRAME:
	case FW_E_LINK:
	case FW_E_META:
		return true;
	default:
		return fw_el_flags(el) & (FW_EL_RAW | FW_EL_DROP);
	}
}

/*
 * A tag that is mentioned as text: "The <template> element". It has no attributes, would swallow
 * all that follows, and is not closed. Scripts, styles and frames never count: losing a word is
 * better than keeping one of those.
 */
static bool tag_is_mentioned(struct fw_str s, enum fw_el el, struct fw_str name)
{
	struct fw_str rest = fw_str_sub(s, (size_t)(name.p - s.p) + name.len, s.len);
	char close[16];

	if (el == FW_E_SCRIPT || el == FW_E_STYLE || el == FW_E_IFRAME || !(fw_el_flags(el) & (FW_EL_RAW | FW_EL_DROP)))
		return false;
	return rest.len && rest.p[0] == '>' && fw_snprintf(close, sizeof(close), "</%s", fw_el_name(el)) &&
		!fw_str_ifind(rest, fw_str(close));
}

/* Is there a known reference with its ';' at s.p[at], which is '&'? */
static bool reference_at(struct fw_str s, size_t at)
{
	size_t i = at + 1;
	uint32_t cp[2];

	while (i < s.len && i - at < 34 && (fw_is_alnum(s.p[i]) || s.p[i] == '#'))
		i++;
	if (i == s.len || s.p[i] != ';' || i == at + 1)
		return false;
	return s.p[at + 1] == '#' ? i > at + 2 : fw_entity_find(fw_str_sub(s, at + 1, i), cp) > 0;
}

bool fw_title_is_html(struct fw_str s)
{
	const char *p = s.p, *end = s.p + s.len;
	bool evidence = false;

	for (; s.len && (p = scan_markup(p, end)) < end; p++) {
		size_t i = (size_t)(p - s.p), from;
		struct fw_str name;
		enum fw_el el;

		if (s.p[i] == '&') {
			evidence |= reference_at(s, i);
			continue;
		}
		if (i + 1 == s.len)
			continue;
		from = i + 1;
		if (s.p[from] == '!' && fw_str_starts(fw_str_sub(s, from, s.len), FW_STR("!--"))) {
			evidence = true;
			continue;
		}
		from += s.p[from] == '/';
		if (from == s.len || !fw_is_alpha(s.p[from]))
			continue;
		for (name = (struct fw_str){s.p + from, 0}; from + name.len < s.len && fw_is_alnum(name.p[name.len]);
			name.len++)
			;
		/* unknown to HTML, hence text: "<vector>", "<your name>" */
		el = fw_el_find(name);
		if (el == FW_EL_NONE || (s.p[i + 1] != '/' && tag_is_mentioned(s, el, name)))
			return false;
		evidence |= s.p[i + 1] == '/' || tag_is_evident(el);
	}
	return evidence;
}
