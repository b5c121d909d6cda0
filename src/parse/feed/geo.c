/* SPDX-License-Identifier: ISC */
/*
 * The location of an entry or feed: GeoRSS Simple and GML, W3C geo, ICBM. Written as GeoJSON.
 *
 * All inputs have latitude first, unless srsName names a system with x first. Their text is
 * collected until the shape that it belongs to ends: a polygon's ring, or any other shape as a
 * whole. The first shape is the place itself; the others are its list "more". GeoJSON: a Point has
 * one position, a LineString a list, a Polygon a list of rings. It has no boxes, which become "Box"
 * with two corners, and no circles, of which only the centre is kept.
 */
#include "parse/feed/geo.h"

#define POSITIONS_MAX 20000
#define MORE_BYTES ((size_t)256 << 10) /* memory of further shapes, beside the document's length */

struct position {
	double c[3];
	bool high; /* c[2] is set */
};

/* A text with positions, as in the document. */
struct piece {
	struct fw_str text;
	int dims;   /* numbers per position */
	size_t max; /* positions */
	struct piece *next;
};

struct fw_geo {
	double lat, lon, alt;
	bool has_lat, has_lon, has_alt;
	bool lon_first;
	int dims;          /* numbers per position in a list */
	const char *shape; /* "point" ...; NULL: none so far */
	struct piece *first, **at;
	struct fw_value *open;    /* the open or last shape; in the output when it has positions */
	struct fw_value *polygon; /* rings of the open polygon */
	struct fw_value *point;   /* from geo:lat and geo:long; its altitude may follow */
};

static struct fw_geo *geo_of(struct fw_builder *b)
{
	if (!b->geo && (b->geo = FW_NEW(b, struct fw_geo))) {
		b->geo->at = &b->geo->first;
		b->geo->dims = 2;
	}
	return b->geo;
}

static struct fw_value *geo_root(struct fw_builder *b)
{
	return fw_value_object(b, fw_extra_root(b, b->entry ? CTX_ENTRY : CTX_FEED), "geo");
}

/* ---- positions ------------------------------------------------------------------------------- */

/* Read the next number. False at the end or at anything else. */
static bool number_next(struct fw_str *s, double *out)
{
	size_t n = 0;

	while (s->len && (fw_is_space(s->p[0]) || s->p[0] == ',' || s->p[0] == ';'))
		*s = fw_str_sub(*s, 1, s->len);
	while (n < s->len && !fw_is_space(s->p[n]) && s->p[n] != ',' && s->p[n] != ';')
		n++;
	if (!n || !fw_str_double(fw_str_sub(*s, 0, n), out))
		return false;
	*s = fw_str_sub(*s, n, s->len);
	return true;
}

static bool position_next(struct fw_str *s, int dims, struct position *p)
{
	p->high = dims > 2;
	return number_next(s, &p->c[0]) && number_next(s, &p->c[1]) && (!p->high || number_next(s, &p->c[2]));
}

static void pieces_drop(struct fw_geo *g)
{
	g->first = NULL;
	g->at = &g->first;
}

static void piece_add(struct fw_builder *b, struct fw_geo *g, struct fw_str text, int dims, size_t max)
{
	struct piece *p = FW_NEW(b, struct piece);

	if (!p)
		return;
	*p = (struct piece){.text = text, .dims = dims, .max = max};
	*g->at = p;
	g->at = &p->next;
}

/* Iterates over the collected positions, at most POSITIONS_MAX. */
struct geo_cursor {
	const struct piece *piece;
	struct fw_str rest;
	size_t taken, n; /* from this piece; in all */
};

static bool cursor_next(struct geo_cursor *c, const struct fw_geo *g, struct position *p)
{
	if (!c->piece && !c->n && g->first) {
		c->piece = g->first;
		c->rest = c->piece->text;
	}
	for (; c->piece && c->n < POSITIONS_MAX; c->rest = c->piece ? c->piece->text : FW_STR_NONE) {
		if (c->taken < c->piece->max && position_next(&c->rest, c->piece->dims, p)) {
			c->taken++;
			c->n++;
			return true;
		}
		c->piece = c->piece->next;
		c->taken = 0;
	}
	return false;
}

static size_t positions_count(const struct fw_geo *g)
{
	struct geo_cursor c = {.piece = NULL};
	struct position p;

	while (cursor_next(&c, g, &p))
		;
	return c.n;
}

/* Append longitude, latitude and altitude to a list. */
static void position_put(struct fw_builder *b, struct fw_value *list, const struct fw_geo *g, const struct position *p)
{
	fw_value_num(b, list, NULL, p->c[!g->lon_first]);
	fw_value_num(b, list, NULL, p->c[g->lon_first]);
	if (p->high)
		fw_value_num(b, list, NULL, p->c[2]);
}

static void positions_put(struct fw_builder *b, struct fw_value *list, const struct fw_geo *g)
{
	struct geo_cursor c = {.piece = NULL};
	struct position p;

	while (list && cursor_next(&c, g, &p))
		position_put(b, fw_value_new(b, list, NULL, FW_VALUE_ARRAY), g, &p);
}

/* ---- shapes ---------------------------------------------------------------------------------- */

struct shape {
	const char *name, *type;
	size_t need; /* positions */
};

static const struct shape *shape_find(const char *name)
{
	static const struct shape known[] = {
		{"point", "Point", 1},
		{"circle", "Point", 1},
		{"line", "LineString", 2},
		{"box", "Box", 2},
		{"polygon", "Polygon", 4},
	};
	size_t i;

	for (i = 0; i < FW_N(known); i++) {
		if (!strcmp(known[i].name, name))
			return &known[i];
	}
	return NULL;
}

/* A shape begins: the first one is the place itself. */
static void shape_open(struct fw_builder *b, struct fw_geo *g)
{
	g->open = geo_root(b);
	g->polygon = NULL;
	if (!fw_value_find(g->open, "type"))
		return;
	g->open = FW_NEW(b, struct fw_value);
	if (g->open)
		g->open->type = FW_VALUE_OBJECT;
}

static bool has_number(const struct fw_value *v, const char *name, double x)
{
	v = fw_value_find(v, name);
	return v && v->type == FW_VALUE_NUMBER && v->number == x;
}

static bool is_point(const struct fw_value *shape, double lat, double lon)
{
	return has_number(shape, "lat", lat) && has_number(shape, "lon", lon);
}

/* Feeds often give one point twice: as GeoRSS, and as geo:lat and geo:long. */
static bool point_is_known(const struct fw_value *root, double lat, double lon)
{
	const struct fw_value *v = fw_value_members(fw_value_find(root, "more"));

	if (is_point(root, lat, lon))
		return true;
	while (v && !is_point(v, lat, lon))
		v = v->next;
	return v != NULL;
}

/*
 * Is there room for n positions of a shape that is not the first? Numbers take many times the
 * memory of their text, and a document must not lose entries by them.
 */
static bool has_room(struct fw_builder *b, const struct fw_geo *g, size_t n)
{
	if (g->open == geo_root(b))
		return true;
	b->more_shapes += n * 3 * sizeof(struct fw_value);
	if (b->more_shapes <= b->text.len + MORE_BYTES)
		return true;
	fw_build_problem(b, fw_build_offset(b), "further shapes that take more memory than the document", "left out");
	b->doc->dropped_n++;
	return false;
}

/* The open shape has positions: its list of coordinates. NULL: there are too many shapes. */
static struct fw_value *coordinates_new(struct fw_builder *b, struct fw_geo *g, const char *type)
{
	struct fw_value *root = geo_root(b), *more, *v;

	if (!root || !g->open || fw_value_find(g->open, "type"))
		return NULL;
	if (g->open != root) {
		more = fw_value_array(b, root, "more");
		if (!more ||
			!fw_build_count_member(b, &more->counted, FW_LIST_MAX, "more than 100 shapes of one place"))
			return NULL;
		v = fw_value_new(b, more, NULL, FW_VALUE_OBJECT);
		if (!v)
			return NULL;
		v->members = g->open->members; /* what was said of it so far */
		g->open = v;
	}
	fw_value_str(b, g->open, "type", fw_str(type));
	return fw_value_new(b, g->open, "coordinates", FW_VALUE_ARRAY);
}

/* A point; returns its coordinates, which are still empty. NULL: there is no room. */
static struct fw_value *point_new(struct fw_builder *b, struct fw_geo *g, double lat, double lon)
{
	struct fw_value *list = has_room(b, g, 1) ? coordinates_new(b, g, "Point") : NULL;

	if (list) {
		fw_value_num(b, g->open, "lat", lat);
		fw_value_num(b, g->open, "lon", lon);
	}
	return list;
}

static void point_put(struct fw_builder *b, struct fw_geo *g, bool once)
{
	struct geo_cursor c = {.piece = NULL};
	struct fw_value *list;
	struct position p;
	double lat, lon;

	if (!cursor_next(&c, g, &p))
		return;
	lat = p.c[g->lon_first];
	lon = p.c[!g->lon_first];
	if ((once && point_is_known(geo_root(b), lat, lon)) || !(list = point_new(b, g, lat, lon)))
		return;
	position_put(b, list, g, &p);
}

/* A shape of that name has ended: write it if it has enough positions. */
static void shape_put(struct fw_builder *b, struct fw_geo *g, const char *name)
{
	const struct shape *shape = shape_find(name);
	size_t n = shape ? positions_count(g) : 0;
	struct fw_value *list;

	if (!shape || n < shape->need)
		return;
	if (shape->need == 1) {
		point_put(b, g, !strcmp(name, "point"));
		return;
	}
	list = has_room(b, g, n) ? coordinates_new(b, g, shape->type) : NULL;
	if (list && shape->need == 4) {
		g->polygon = list;
		list = fw_value_new(b, list, NULL, FW_VALUE_ARRAY);
	}
	positions_put(b, list, g);
}

/* Write a polygon's ring. The first ring makes the polygon; the others are holes. */
static void ring_put(struct fw_builder *b, struct fw_geo *g)
{
	if (!g->polygon)
		shape_put(b, g, "polygon");
	else if (positions_count(g) >= 4 && has_room(b, g, positions_count(g)))
		positions_put(b, fw_value_new(b, g->polygon, NULL, FW_VALUE_ARRAY), g);
	pieces_drop(g);
}

/*
 * EPSG codes 4000 to 4999 are geographic, with latitude first. Others (UTM ...) and CRS84 have x
 * first.
 */
static bool x_first(struct fw_str srs)
{
	size_t from = srs.len;
	int64_t code;

	while (from > 0 && fw_is_digit(srs.p[from - 1]))
		from--;
	code = fw_build_number(fw_str_sub(srs, from, srs.len));
	return fw_str_ifind(srs, FW_STR("CRS84")) || (code != FW_NO_NUMBER && (code < 4000 || code > 4999));
}

/* ---- elements -------------------------------------------------------------------------------- */

static void note_add(struct fw_builder *b, struct fw_value *of, const char *name, bool number, struct fw_str s)
{
	double x;

	s = fw_build_line_text(b, s);
	if (number && fw_str_double(s, &x))
		fw_value_num(b, of, name, x);
	else if (!number && s.len)
		fw_value_str(b, of, name, s);
}

/* Read the attributes by which GeoRSS describes a shape. */
static void notes_read(struct fw_start_event *w, struct fw_value *of)
{
	note_add(w->b, of, "elevation", true, fw_attr(w, "elev"));
	note_add(w->b, of, "floor", true, fw_attr(w, "floor"));
	note_add(w->b, of, "radius", true, fw_attr(w, "radius"));
	note_add(w->b, of, "name", false, fw_attr(w, "featurename"));
	note_add(w->b, of, "feature_type", false, fw_attr(w, "featuretypetag"));
	note_add(w->b, of, "relationship", false, fw_attr(w, "relationshiptag"));
}

void fw_geo_start(struct fw_start_event *w)
{
	struct fw_geo *g = geo_of(w->b);
	struct fw_str srs = fw_attr(w, "srsName"), dims = fw_attr(w, "srsDimension");
	bool where = w->el->kind == EL_GEO_WHERE, ring = !strcmp(w->el->member, "ring");

	if (where)
		w->frame->ctx = CTX_GEO;
	else
		fw_text_capture(w, TEXT_TRIM);
	if (!g)
		return;
	if (w->el->kind != EL_GEO_POINTS && w->el->member[0]) { /* start of a shape, or of a ring */
		pieces_drop(g);
		if (!ring) {
			g->shape = w->el->member;
			shape_open(w->b, g);
			g->lon_first = false;
			g->dims = 2;
		}
	}
	if (w->el->kind == EL_GEO_SHAPE && w->attr_n)
		notes_read(w, g->open);
	if (srs.len)
		g->lon_first = x_first(srs);
	if (dims.len)
		g->dims = fw_build_number(dims) == 3 ? 3 : 2;
}

/* One number of geo:lat, geo:long and geo:alt, which form a point in any order. */
static void geo_number_end(struct fw_builder *b, struct fw_geo *g, enum fw_element_kind kind, double x)
{
	if (kind == EL_GEO_ALT) {
		if (!g->has_alt)
			fw_value_num(b, g->point, NULL, x);
		g->alt = x;
		g->has_alt = true;
		return;
	}
	if (g->has_lat && g->has_lon) /* the next point */
		g->has_lat = g->has_lon = g->has_alt = false;
	*(kind == EL_GEO_LAT ? &g->lat : &g->lon) = x;
	*(kind == EL_GEO_LAT ? &g->has_lat : &g->has_lon) = true;
	if (!g->has_lat || !g->has_lon)
		return;
	shape_open(b, g);
	g->point = point_is_known(geo_root(b), g->lat, g->lon) ? NULL : point_new(b, g, g->lat, g->lon);
	fw_value_num(b, g->point, NULL, g->lon);
	fw_value_num(b, g->point, NULL, g->lat);
	if (g->has_alt)
		fw_value_num(b, g->point, NULL, g->alt);
}

void fw_geo_end(struct fw_builder *b, struct fw_frame *f, struct fw_str s)
{
	struct fw_geo *g = geo_of(b);
	const char *name = f->el->member;
	struct fw_value *of;
	struct position p;
	double x;

	if (!g)
		return;
	switch ((enum fw_element_kind)f->el->kind) {
	case EL_GEO_NOTE:
		of = fw_context_around(b, f) == CTX_GEO && g->open ? g->open : geo_root(b);
		note_add(b, of, name, f->el->field == F_NUMBER, s);
		break;
	case EL_GEO_SHAPE:
		piece_add(b, g, s, 2, POSITIONS_MAX);
		shape_put(b, g, name);
		if (!strcmp(name, "circle") && position_next(&s, 2, &p))
			note_add(b, g->open, "radius", true, s);
		break;
	case EL_GEO_POINTS:
		if (!name[0])
			piece_add(b, g, s, g->dims, POSITIONS_MAX);
		else /* one position, of any length */
			piece_add(b, g, s, position_next(&(struct fw_str){s.p, s.len}, 3, &p) ? 3 : 2, 1);
		break;
	case EL_GEO_WHERE:
		if (!strcmp(name, "ring"))
			ring_put(b, g);
		else if (name[0] && g->shape && !strcmp(name, g->shape))
			shape_put(b, g, name);
		break;
	default:
		if (fw_str_double(fw_str_trim(s), &x))
			geo_number_end(b, g, (enum fw_element_kind)f->el->kind, x);
		break;
	}
}
