/* SPDX-License-Identifier: ISC */
/* Reports, memory, hash tables and characters: used by every file of the tokenizer. */
#ifndef FW_PARSE_XML_UTIL_H
#define FW_PARSE_XML_UTIL_H

#include "parse/xml/state.h"

/* Report an XML error and its repair. */
void fw_xml_repair(struct xml_state *s, const char *p, const char *what, const char *repair);
/* The same where the XML is correct: a limit, an entity that is not loaded. */
void fw_xml_note(struct xml_state *s, const char *p, const char *what, const char *repair);
/* Return FW_ENOMEM or FW_ELIMIT, as it applies, and set the message. */
int fw_xml_memory(struct xml_state *s);
/* Grow the array to at least want members of size bytes. NULL: out of memory. */
void *fw_xml_room(struct xml_state *s, void *array, size_t *cap, size_t want, size_t size);

struct xml_node *fw_xml_table_find(const struct xml_table *t, uint64_t seed, struct fw_str key);
FW_MUST_CHECK int fw_xml_table_add(struct xml_state *s, struct xml_table *t, struct xml_node *node, struct fw_str key);

/*
 * Is this a valid name (XML 1.0, 5th edition)? It consists of name bytes and starts with a start
 * byte, so only characters outside ASCII can be invalid.
 */
bool fw_xml_name_ok(const char *p, const char *end);
/* Does XML 1.0 allow this character? */
bool fw_xml_char_ok(uint32_t cp);

/* The first needle in [p, end), or NULL. */
const char *fw_xml_find(const char *p, const char *end, const char *needle, size_t n);
/*
 * The same up to the window's end. A failed search in the document sets *none and is not repeated.
 */
const char *fw_xml_find_once(struct xml_state *s, const char *p, const char *needle, size_t n, bool *none);

#endif
