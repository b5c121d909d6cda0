/* SPDX-License-Identifier: ISC */
/*
 * Retraction: a commit removes the entries that their feeds take back, as retention removes old
 * ones; those with labels of accounts stay. An entry that is not stored leaves no trace.
 */
#include <stdlib.h>

#include "store/sql/core.h"

FW_COMPARE(retract_compare, struct sql_old_entry, id)

/* Several visits of one commit may retract the same entry: keep each once. */
static size_t retract_unique(struct sql_old_entry *e, size_t n)
{
	size_t kept = 0;

	if (n)
		qsort(e, n, sizeof(*e), retract_compare);
	for (size_t i = 0; i < n; i++) {
		if (!kept || e[kept - 1].id != e[i].id)
			e[kept++] = e[i];
	}
	return kept;
}

int sql_entries_retract(struct sql *s, const struct sql_visit *v, size_t n, struct sql_changes *log, struct fw_err *err)
{
	struct fw_buf found = FW_BUF_INIT(0);
	/* locked: retention may remove the same entry meanwhile */
	struct sql_rows r = SQL_QUERY_ROWS(s, err, sql_old_entry_row, &found,
		"SELECT e.id, e.feed_id, e.entry_key, e.revision FROM {rows} entry_keys k, entries e"
		" WHERE k.feed_id = v.feed AND k.entry_key = v.ekey AND e.id = k.entry_id"
		" AND NOT EXISTS (SELECT 1 FROM entry_labels l WHERE l.entry_id = e.id) {update}",
		"feed:i ekey:b");
	struct sql_old_entry *e;
	bool locked = false, any;
	int rc;

	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; v[i].has_entries && v[i].o.rc != FW_ENOTFOUND && k < v[i].o.retracted_n; k++) {
			if (!locked)
				r.rc = sql_accounts_lock_all(s, &any, err);
			locked = true;
			sql_rows_add(&r, SQL_V(SQL_INT(v[i].o.feed_id), SQL_KEY(v[i].o.retracted[k].key)));
		}
	}
	rc = sql_rows_end(&r);
	rc = rc == FW_ENOMEM ? fw_no_memory(err) : rc;
	e = (struct sql_old_entry *)(void *)found.p;
	rc = rc ? rc : sql_entries_remove(s, e, retract_unique(e, found.len / sizeof(*e)), log, err);
	fw_buf_finish(&found);
	return rc;
}
