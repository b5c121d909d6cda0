/* SPDX-License-Identifier: ISC */
/* Sanitised contents in memory; see api/view.h. Any thread. */
#ifndef FW_ENGINE_VIEW_CACHE_H
#define FW_ENGINE_VIEW_CACHE_H

#include "api/view.h"

/* Write what was kept for this entry and hash as a member of j. False: nothing was. */
bool view_cache_write(struct fw_view_cache *c, int64_t id, uint64_t hash, struct fw_json *j, const char *key);
/* Keep it, or free it: text is malloc's. */
void view_cache_keep(struct fw_view_cache *c, int64_t id, uint64_t hash, char *text, size_t len);

#endif
