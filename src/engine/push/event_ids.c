/* SPDX-License-Identifier: ISC */
#include "engine/push/event_ids.h"

#include "base/clock.h"
#include "base/log.h"

int event_ids_reserve(struct fw_store *st, struct fw_ids *ids, int64_t clash_n, struct fw_err *err)
{
	struct fw_id_range r = {.first = fw_ids_serial(ids) + 1, .clash_n = clash_n};
	int rc = fw_store_event_ids(st, &r, err);

	if (!rc)
		fw_ids_range(ids, r.number, r.first, r.last);
	return rc;
}

/* A new range for n events: in the old one are other rows, so it is not trusted. */
static int event_ids_clash(struct fw_store *st, struct fw_ids *ids, size_t n, uint64_t *clash_n, struct fw_err *err)
{
	int rc = event_ids_reserve(st, ids, (int64_t)n, err);

	if (rc)
		return rc;
	*clash_n += n;
	fw_warn("%zu of the events had the id of another one, and got a new one: older versions made ids from the"
		" clock, and so do stores that became one",
		n);
	return 0;
}

int fw_event_ids_put(
	struct fw_store *st, struct fw_ids *ids, struct fw_event *e, size_t n, uint64_t *clash_n, struct fw_err *err)
{
	int rc;

	while ((rc = fw_store_event_put(st, e, n, err)) == FW_ECLASH) {
		size_t again = 0;

		for (size_t i = 0; i < n; i++)
			again += e[i].clashes;
		rc = event_ids_clash(st, ids, again, clash_n, err);
		if (rc)
			break;
		for (size_t i = 0; i < n; i++)
			e[i].id = e[i].clashes ? fw_ids_take(ids, 1, fw_store_now_ms(st)) : e[i].id;
	}
	return rc;
}

int event_ids_put_dead(
	struct fw_store *st, struct fw_ids *ids, struct fw_dead_letter *d, uint64_t *clash_n, struct fw_err *err)
{
	int rc;

	while ((rc = fw_store_dead_letter_put(st, d, err)) == FW_ECLASH) {
		rc = event_ids_clash(st, ids, 1, clash_n, err);
		if (rc)
			break;
		d->id = fw_ids_take(ids, 1, fw_store_now_ms(st));
	}
	return rc;
}
