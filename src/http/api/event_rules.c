/* SPDX-License-Identifier: ISC */
/*
 * Nearly all events have one shape, which event_read.c parses in a tenth of the time of a JSON
 * parser. All other bodies, and invalid events, are parsed again here, so that each error is
 * reported in one way.
 */
#include <stdlib.h>

#include "base/str.h"
#include "feedwheel/ingest.h"
#include "http/api/event_read.h"
#include "http/api/event_rules.h"

struct event_rules *event_rules_create(const struct fw_config *c)
{
	struct event_rules *rules = malloc(sizeof(*rules));

	if (rules)
		*rules = (struct event_rules){fw_str(c->push_properties), c->push_section_min, c->push_id_min};
	return rules;
}

static bool property_is_listed(struct fw_str list, struct fw_str name)
{
	if (!list.p)
		return true;
	while (list.p) {
		if (fw_str_eq(fw_str_trim(fw_str_split(list, ',', &list)), name))
			return true;
	}
	return false;
}

/* Does the event conform to the rules? */
static bool event_is_valid(const struct event_rules *rules, const struct fw_event *e)
{
	return e->property.len && e->property.len <= FW_PROPERTY_MAX && e->section >= rules->section_min &&
		e->item >= rules->id_min && property_is_listed(rules->properties, e->property);
}

static int event_wrong_number(struct event_wrong *w, const char *name, bool there, int64_t min)
{
	if (min == 1)
		(void)fw_snprintf(w->words, sizeof(w->words), "%s is %s (a number above 0)", name,
			there ? "too small" : "missing");
	else
		(void)fw_snprintf(w->words, sizeof(w->words), "%s is %s (a number of at least %lld)", name,
			there ? "too small" : "missing", (long long)min);
	return FW_EINVAL;
}

static int event_wrong_set(struct event_wrong *w, const char *words)
{
	(void)fw_snprintf(w->words, sizeof(w->words), "%s", words);
	return FW_EINVAL;
}

static int event_from_json(const struct event_rules *rules, const json_t *o, struct fw_event *e, struct event_wrong *w)
{
	const json_t *property = json_object_get(o, "property"), *section = json_object_get(o, "section"),
		     *id = json_object_get(o, "id");

	if (!json_is_object(o))
		return event_wrong_set(w, "not a JSON object");
	e->property = (struct fw_str){json_string_value(property), json_string_length(property)};
	e->section = json_integer_value(section);
	e->item = json_integer_value(id);
	if (!e->property.len)
		return event_wrong_set(w, "property is missing (a non-empty string)");
	if (e->property.len > FW_PROPERTY_MAX)
		return event_wrong_set(w, "property is longer than 255 bytes");
	if (!property_is_listed(rules->properties, e->property))
		return event_wrong_set(w, "property is not in push_properties");
	if (!json_is_integer(section) || e->section < rules->section_min)
		return event_wrong_number(w, "section", json_is_integer(section), rules->section_min);
	if (!json_is_integer(id) || e->item < rules->id_min)
		return event_wrong_number(w, "id", json_is_integer(id), rules->id_min);
	return 0;
}

static int event_put_one(const struct event_rules *rules, const json_t *o, struct fw_event *e,
	const struct event_sink *to, size_t *n, struct event_wrong *w)
{
	int rc = event_from_json(rules, o, e, w);

	w->n = *n + 1;
	if (!rc)
		rc = to->put(to->ctx, e);
	*n += !rc;
	return rc;
}

static int event_put_json(const struct event_rules *rules, const json_t *doc, struct fw_event *e,
	const struct event_sink *to, size_t *n, struct event_wrong *w)
{
	int rc = 0;

	if (!json_is_array(doc))
		return event_put_one(rules, doc, e, to, n, w);
	for (size_t i = 0; i < json_array_size(doc) && !rc; i++)
		rc = event_put_one(rules, json_array_get(doc, i), e, to, n, w);
	return rc;
}

/* Parse the body as JSON, whatever its shape. */
static int events_read_json(const struct event_rules *rules, struct fw_str body, struct fw_event *e,
	const struct event_sink *to, size_t *n, struct event_wrong *w)
{
	int rc = 0;

	for (;;) {
		json_t *doc;

		while (body.len && (*body.p == ' ' || *body.p == '\n' || *body.p == '\r' || *body.p == '\t'))
			body = fw_str_sub(body, 1, body.len);
		if (!body.len || rc)
			return rc;
		doc = json_loadb(
			body.p, body.len, JSON_REJECT_DUPLICATES | JSON_DISABLE_EOF_CHECK | JSON_ALLOW_NUL, &w->json);
		if (!doc)
			return FW_EFORMAT;
		rc = event_put_json(rules, doc, e, to, n, w);
		json_decref(doc);
		body = fw_str_sub(body, (size_t)w->json.position, body.len);
	}
}

int events_read(const struct event_rules *rules, struct fw_str body, struct fw_event *e, const struct event_sink *to,
	size_t *n, struct event_wrong *wrong)
{
	struct event_reader in = {.p = body.p, .end = body.p + body.len};
	int what, rc = 0;

	*n = 0;
	while ((what = event_next(&in, e)) == EVENT_ONE && event_is_valid(rules, e)) {
		rc = to->put(to->ctx, e);
		if (rc)
			return rc;
		++*n;
	}
	if (what == EVENT_NONE)
		return 0;
	*n = 0;
	rc = to->restart(to->ctx);
	return rc ? rc : events_read_json(rules, body, e, to, n, wrong);
}
