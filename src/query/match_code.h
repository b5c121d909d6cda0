/* SPDX-License-Identifier: ISC */
/*
 * A query as bytes, for sets of many: its terms are features (match_features.h) where the presence
 * of a feature decides, and terms as query_matches() evaluates them where it does not. Serves
 * match.c.
 */
#ifndef FW_QUERY_MATCH_CODE_H
#define FW_QUERY_MATCH_CODE_H

#include "query/match_features.h"
#include "query/query_scratch.h"

/* Append a query's code. FW_ENOMEM, FW_ELIMIT: then what was appended is to be cut off. */
FW_MUST_CHECK int match_code_write(struct fw_buf *out, struct features *f, const struct query_node *q);

/* bits: which features the entry has. */
bool match_code_matches(const char *code, const uint64_t *bits, struct query_scratch *s);

/*
 * Calls on_key with features of which each entry that matches has at least one: the rarest such
 * set. FEATURE_ANY alone if there is none.
 */
typedef void match_key_cb(void *ctx, uint32_t feature);
void match_code_keys(const char *code, const struct features *f, match_key_cb *on_key, void *ctx);
/*
 * The rarest feature, other than key, that each entry which matches has; FEATURE_NONE: there is
 * none.
 */
uint32_t match_code_second(const char *code, const struct features *f, uint32_t key);

#endif
