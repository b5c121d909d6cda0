/* SPDX-License-Identifier: ISC */
/* Reports, memory, hash tables, characters: what every part of the tokenizer leans on. */
#ifndef FW_PARSE_XML_UTIL_H
#define FW_PARSE_XML_UTIL_H

#include "parse/xml/state.h"

/* Something is not as XML has it; what is done about it. */
void fw_xml_repair(struct xml_state *s, const char *p, const char *what, const char *repair);
/* The same where XML itself is fine: a limit, an entity that is not loaded. */
void fw_xml_note(struct xml_state *s, const char *p, const char *what, const char *repair);
/* FW_ENOMEM or FW_ELIMIT, whichever it is, with words. */
int fw_xml_memory(struct xml_state *s);
/* The larger array (at least want members of size bytes), or NULL. */
void *fw_xml_room(struct xml_state *s, void *array, size_t *cap, size_t want, size_t size);

struct xml_node *fw_xml_table_find(const struct xml_table *t, uint64_t seed, struct fw_str key);
FW_MUST_CHECK int fw_xml_table_add(struct xml_state *s, struct xml_table *t, struct xml_node *node, struct fw_str key);

/* Is the name (of name bytes, the first one a start) a name by XML 1.0, 5th edition? Only those outside ASCII can fail. */
bool fw_xml_name_ok(const char *p, const char *end);
/* May XML 1.0 hold this character? */
bool fw_xml_char_ok(uint32_t cp);

/* The first place in [p, end) where needle stands, or NULL. */
const char *fw_xml_find(const char *p, const char *end, const char *needle, size_t n);
/* The same up to the window's end, with a failure in the document remembered in *none: it is not tried again. */
const char *fw_xml_find_once(struct xml_state *s, const char *p, const char *needle, size_t n, bool *none);

#endif
