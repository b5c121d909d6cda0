/* SPDX-License-Identifier: ISC */
/*
 * The picture as SVG: headline, busy slots over time, one row per slot with its fetches, histogram
 * of durations.
 *
 * The rows are an inner SVG whose horizontal unit is 1 ms and which is stretched to the width.
 * Zooming changes its viewBox; that is all that the HTML page's script does. Text and ticks, which
 * must not be stretched, lie over it.
 */
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/str.h"
#include "base/url.h"
#include "base/utf8.h"
#include "base/xml.h"
#include "picture/timeline.h"

#define WIDTH 1600
#define LEFT 64
#define ACROSS 1500 /* width of the rows */
#define NOTE_WIDTH 450
#define BUSY_TOP 128
#define BUSY_HEIGHT 56
#define ROWS_TOP (BUSY_TOP + BUSY_HEIGHT + 10)
#define ROWS_HEIGHT 640 /* maximum of all rows together, unless rows get lower than ROW_HEIGHT_MIN */
#define ROW_HEIGHT_MAX 24
#define ROW_HEIGHT_MIN 3
#define ROW_HEIGHT_ROOMY 10 /* from this height on, thin lines above and below a bar fit */
#define BUCKETS 750
#define BINS 40 /* of the histogram: two per octave, from 1 ms up */
#define BINS_OCTAVE 2
#define HISTOGRAM_HEIGHT 130

/* Colours that colour-blind people can distinguish (Okabe and Ito). */
static const struct {
	const char *word, *colour;
} PHASE[PHASE_N] = {
	[PHASE_QUEUE] = {"queue", "#9a9a9a"},
	[PHASE_DNS] = {"name", "#cc79a7"},
	[PHASE_CONNECT] = {"connect", "#e69f00"},
	[PHASE_TLS] = {"TLS", "#d55e00"},
	[PHASE_WAIT] = {"wait", "#0072b2"},
	[PHASE_BODY] = {"body", "#009e73"},
	[PHASE_PARSE] = {"parse", "#f0e442"},
	[PHASE_STORE] = {"store", "#56b4e9"},
};

static const char PICTURE_STYLE[] =
	"svg{font:13px "
	"system-ui,sans-serif}.back{fill:#fff}text{fill:#222}.dim{fill:#666}.head{font-size:20px;font-weight:600}"
	".row{fill:#f3f3f3}.busy{fill:#8a8a8a}.tick{stroke:#bbb}.end{stroke:#fff}"
	".mark{fill:none;stroke:#e0002d;stroke-width:3}.half{stroke:#000;stroke-dasharray:5 "
	"4}.batch{stroke:#000;stroke-opacity:.6}.ok{fill:#0072b2}.no{fill:#d55e00}.shade{fill:#000;fill-opacity:.5}"
	".tag{font-weight:600;paint-order:stroke;stroke:#fff;stroke-width:6;stroke-linejoin:round}"
	"@media(prefers-color-scheme:dark){.back{fill:#161616}text{fill:#ddd}.dim{fill:#999}.row{fill:#242424}.tick{"
	"stroke:#555}"
	".end{stroke:#161616}.half,.batch{stroke:#fff}.shade{fill:#fff;fill-opacity:.6}.tag{stroke:#161616}}";

extern const char timeline_script[]; /* timeline.js */

/* ---- words ----------------------------------------------------------------------------------- */

/* Append text for an element or an attribute, without control characters. */
static void svg_text(struct fw_buf *out, struct fw_str s)
{
	fw_xml_escape(out, s, FW_XML_DROP);
}

static void svg_cstr(struct fw_buf *out, const char *s)
{
	svg_text(out, fw_str(s));
}

static void svg_url(struct fw_buf *out, struct fw_str s, size_t most)
{
	struct fw_buf shown = FW_BUF_INIT(0);

	fw_url_show(&shown, s);
	if (shown.len > most) {
		svg_text(out, (struct fw_str){shown.p, fw_utf8_cut(shown.p, shown.len, most)});
		fw_buf_adds(out, "...");
	} else {
		svg_text(out, fw_buf_str(&shown));
	}
	fw_buf_finish(&shown);
}

/* "412 ms", "3.2 s" */
static void svg_duration(struct fw_buf *out, int64_t us)
{
	char text[FW_RFC3339_MAX];

	if (us < 10000)
		fw_buf_addf(out, "%.1f ms", (double)us / 1000);
	else
		fw_buf_adds(out, fw_duration_text(text, us / 1000));
}

/* ---- bars ------------------------------------------------------------------------------------ */

static double x_ms(int64_t us)
{
	return (double)us / 1000;
}

static int row_height(const struct timeline *t)
{
	return FW_MAX(FW_MIN(ROWS_HEIGHT / (int)t->row_n, ROW_HEIGHT_MAX), ROW_HEIGHT_MIN);
}

static void svg_rect(struct fw_buf *out, enum phase p, int64_t from_us, int64_t us, double y, double h)
{
	if (us > 0)
		fw_buf_addf(out, "<rect class=\"p%d\" x=\"%.3f\" y=\"%.1f\" width=\"%.3f\" height=\"%.1f\"/>", (int)p,
			x_ms(from_us), y, x_ms(us), h);
}

/* The bar's tooltip. */
static void svg_tooltip(struct fw_buf *out, const struct timeline_bar *b)
{
	const struct fw_visit *v = &b->visit;

	fw_buf_adds(out, "<title>");
	svg_url(out, v->feed_url, 200);
	fw_buf_addf(out, "\nfeed %lld, slot %d: %s", (long long)v->feed_id, v->slot + 1, fw_visit_kind_name(v->kind));
	if (v->http_status)
		fw_buf_addf(out, " (%d)", v->http_status);
	fw_buf_adds(out, ", ");
	svg_duration(out, b->until_us - b->from_us);
	fw_buf_adds(out, " from ");
	svg_duration(out, b->from_us);
	fw_buf_adds(out, "\n");
	for (int p = 0; p < PHASE_N; p++) {
		if (b->took_us[p] > 0) {
			fw_buf_addf(out, "%s ", PHASE[p].word);
			svg_duration(out, b->took_us[p]);
			fw_buf_adds(out, "  ");
		}
	}
	fw_buf_addf(out, "\n%llu bytes received, %u entries, %u new", (unsigned long long)v->wire_bytes, v->item_n,
		v->new_n);
	if (v->error.len) {
		fw_buf_adds(out, "\n");
		svg_text(out, fw_str_sub(v->error, 0, 300));
	}
	fw_buf_adds(out, "</title>");
}

static void svg_bar(struct fw_buf *out, const struct timeline_bar *b, int high, bool mark)
{
	double y = (double)b->row * high,
	       thin = high >= 16         ? 2 :
		high >= ROW_HEIGHT_ROOMY ? 1 :
					   0,
	       top = y + (high >= 7 ? 1 : 0) + thin, h = high - (high >= 7 ? 1 : 0) - 2 * thin;
	int64_t at = b->from_us, behind = b->until_us + b->took_us[PHASE_PARSE];

	fw_buf_adds(out, "<g>");
	svg_tooltip(out, b);
	if (thin > 0) { /* time outside the slot: thin lines above and below */
		svg_rect(out, PHASE_QUEUE, at - FW_MIN(b->took_us[PHASE_QUEUE], at),
			FW_MIN(b->took_us[PHASE_QUEUE], at), y + 1, thin);
		svg_rect(out, PHASE_STORE, behind, b->took_us[PHASE_STORE], y + high - thin, thin);
	}
	for (int p = PHASE_DNS; p <= PHASE_BODY; p++) {
		svg_rect(out, (enum phase)p, at, b->took_us[p], top, h);
		at += b->took_us[p];
	}
	svg_rect(out, PHASE_PARSE, b->until_us, b->took_us[PHASE_PARSE], top, h);
	if (!fw_visit_succeeded(b->visit.kind))
		fw_buf_addf(out, "<rect class=\"shade\" x=\"%.3f\" y=\"%.1f\" width=\"%.3f\" height=\"%.1f\"/>",
			x_ms(b->from_us), top, x_ms(b->until_us - b->from_us), h);
	fw_buf_addf(out, "<path class=\"end\" d=\"M%.3f %.1fv%.1f\"/>", x_ms(b->until_us), top, h);
	if (mark)
		fw_buf_addf(out, "<rect class=\"mark\" x=\"%.3f\" y=\"%.1f\" width=\"%.3f\" height=\"%.1f\"/>",
			x_ms(b->from_us), top, x_ms(b->until_us - b->from_us), h);
	fw_buf_adds(out, "</g>\n");
}

/* Open an inner SVG with a horizontal unit of 1 ms. */
static void svg_inner_begin(const struct timeline *t, struct fw_buf *out, const char *id, int y, int high)
{
	fw_buf_addf(out,
		"<svg id=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %.3f %d\" "
		"preserveAspectRatio=\"none\">\n",
		id, LEFT, y, ACROSS, high, FW_MAX(x_ms(t->total_us), 1.0), high);
}

static void svg_vertical(struct fw_buf *out, const char *class, int64_t at_us, int high)
{
	fw_buf_addf(out, "<path class=\"%s\" d=\"M%.3f 0v%d\"/>\n", class, x_ms(at_us), high);
}

/* The start of each batch but the first. */
static void svg_batches(const struct timeline *t, struct fw_buf *out, int high)
{
	for (size_t i = t->batch; t->batch && i < t->n; i += t->batch)
		svg_vertical(out, "batch", t->bar[i].from_us, high);
}

static bool half_is_shown(const struct timeline *t)
{
	return t->half_us < t->end_us - (t->end_us - t->begin_us) / 20;
}

static void svg_rows(const struct timeline *t, struct fw_buf *out, int y)
{
	int high = row_height(t), all = high * (int)t->row_n;
	uint32_t each = high >= ROW_HEIGHT_ROOMY ? 1 : 10; /* every each-th row has its number */

	for (uint32_t i = each - 1; i < t->row_n; i += each)
		fw_buf_addf(out,
			"<text class=\"dim\" x=\"%d\" y=\"%d\" text-anchor=\"end\" font-size=\"%d\">%u</text>\n",
			LEFT - 6, y + (int)i * high + high - high / 3, FW_MIN(FW_MAX(high - 1, 9), 12), i + 1);
	svg_inner_begin(t, out, "rows", y, all);
	fw_buf_addf(out, "<rect class=\"row\" width=\"%.3f\" height=\"%d\"/>\n", FW_MAX(x_ms(t->total_us), 1.0), all);
	for (size_t i = 0; i < t->n; i++) {
		if (i != t->last)
			svg_bar(out, &t->bar[i], high, false);
	}
	svg_bar(out, &t->bar[t->last], high, true);
	svg_batches(t, out, all);
	if (half_is_shown(t))
		svg_vertical(out, "half", t->half_us, all);
	fw_buf_adds(out, "</svg>\n");
}

/* ---- busy slots ------------------------------------------------------------------------------ */

static void svg_busy(const struct timeline *t, struct fw_buf *out)
{
	double *share = calloc(BUCKETS, sizeof(*share)), wide = FW_MAX((double)t->total_us, 1.0) / BUCKETS;

	if (!share) {
		out->rc = FW_ENOMEM;
		return;
	}
	for (size_t i = 0; i < t->n; i++) {
		double from = (double)t->bar[i].from_us / wide, until = (double)t->bar[i].until_us / wide;

		for (int k = (int)from; k < BUCKETS && k < until; k++)
			share[k] += fmin(until, k + 1) - fmax(from, k);
	}
	svg_inner_begin(t, out, "busy", BUSY_TOP, BUSY_HEIGHT);
	fw_buf_addf(out, "<rect class=\"row\" width=\"%.3f\" height=\"%d\"/>\n<path class=\"busy\" d=\"M0 %d",
		FW_MAX(x_ms(t->total_us), 1.0), BUSY_HEIGHT, BUSY_HEIGHT);
	for (int k = 0; k < BUCKETS; k++)
		fw_buf_addf(out, "V%.1fH%.3f", BUSY_HEIGHT * (1 - fmin(share[k] / t->row_n, 1)), (k + 1) * wide / 1000);
	fw_buf_addf(out, "V%dz\"/>\n</svg>\n", BUSY_HEIGHT);
	fw_buf_addf(out,
		"<text class=\"dim\" x=\"%d\" y=\"%d\" text-anchor=\"end\">100 %%</text><text class=\"dim\" x=\"%d\" "
		"y=\"%d\" text-anchor=\"end\">0</text><text class=\"dim\" x=\"%d\" y=\"%d\">busy slots</text>\n",
		LEFT - 6, BUSY_TOP + 11, LEFT - 6, BUSY_TOP + BUSY_HEIGHT, LEFT, BUSY_TOP - 5);
	free(share);
}

/* ---- text over the rows ---------------------------------------------------------------------- */

static double svg_x(const struct timeline *t, int64_t us)
{
	return LEFT + ACROSS * (double)us / FW_MAX((double)t->total_us, 1.0);
}

/* A step of 1, 2 or 5 times a power of ten, so that about ten fit. */
static double axis_step(double whole)
{
	double s = pow(10, floor(log10(whole / 10)));

	return whole / s > 50 ? 5 * s : whole / s > 20 ? 2 * s : s;
}

static void svg_axis(const struct timeline *t, struct fw_buf *out, int y)
{
	double whole = FW_MAX(x_ms(t->total_us), 1.0), s = axis_step(whole);

	fw_buf_addf(out, "<g id=\"axis\" data-y=\"%d\">\n", y);
	for (double ms = 0; ms <= whole; ms += s) {
		double x = LEFT + ACROSS * ms / whole;

		fw_buf_addf(out,
			"<path class=\"tick\" d=\"M%.1f %dv5\"/><text class=\"dim\" x=\"%.1f\" y=\"%d\" "
			"text-anchor=\"middle\">",
			x, y, x, y + 18);
		if (whole < 1000)
			fw_buf_addf(out, "%.4g ms</text>\n", ms);
		else
			fw_buf_addf(out, "%.4g s</text>\n", ms / 1000);
	}
	fw_buf_adds(out, "</g>\n");
}

/*
 * Label the bar that ended last: before the bar, or inside it if there is no room. timeline.js does
 * the same.
 */
static void svg_last_label(const struct timeline *t, struct fw_buf *out, int y)
{
	const struct timeline_bar *b = &t->bar[t->last];
	int high = row_height(t), at = y + (int)b->row * high;

	bool inside = svg_x(t, b->from_us) < LEFT + NOTE_WIDTH;

	fw_buf_addf(out,
		"<g class=\"note\" data-ms=\"%.3f\" transform=\"translate(%.1f)\"><text class=\"tag\" x=\"%d\" y=\"%d\""
		" text-anchor=\"%s\">last: ",
		x_ms(b->from_us), svg_x(t, b->from_us), inside ? 8 : -8, at + high / 2 + 5, inside ? "start" : "end");
	svg_url(out, b->visit.feed_url, 60);
	fw_buf_adds(out, ", ");
	svg_duration(out, b->until_us - b->from_us);
	if (!fw_visit_succeeded(b->visit.kind))
		fw_buf_addf(out, ", %s", fw_visit_kind_name(b->visit.kind));
	fw_buf_adds(out, "</text></g>\n");
}

/* The legend, only for what the picture contains. */
static void svg_legend(const struct timeline *t, struct fw_buf *out)
{
	bool roomy = row_height(t) >= ROW_HEIGHT_ROOMY;
	int x = LEFT;

	for (int p = 0; p < PHASE_N; p++) {
		bool thin = p == PHASE_QUEUE || p == PHASE_STORE;

		if (thin && !roomy)
			continue;
		fw_buf_addf(out,
			"<rect class=\"p%d\" x=\"%d\" y=\"%d\" width=\"14\" height=\"%d\"/><text x=\"%d\" "
			"y=\"94\">%s</text>\n",
			p, x, p == PHASE_STORE ? 93 : 82, thin ? 3 : 14, x + 20, PHASE[p].word);
		x += 100;
	}
	if (t->failed_n) {
		fw_buf_addf(out,
			"<rect class=\"p%d\" x=\"%d\" y=\"82\" width=\"14\" height=\"14\"/><rect class=\"shade\" "
			"x=\"%d\" y=\"82\" width=\"14\" height=\"14\"/><text x=\"%d\" y=\"94\">failed</text>\n",
			(int)PHASE_WAIT, x, x, x + 20);
		x += 100;
	}
	if (t->batch && t->batch < t->n) {
		fw_buf_addf(out, "<path class=\"batch\" d=\"M%d 82v14\"/><text x=\"%d\" y=\"94\">next batch</text>\n",
			x + 4, x + 14);
		x += 130;
	}
	if (half_is_shown(t))
		fw_buf_addf(out,
			"<path class=\"half\" d=\"M%d 82v14\"/><text x=\"%d\" y=\"94\">half of the slots have "
			"finished</text>\n",
			x + 4, x + 14);
}

static void svg_head(const struct timeline *t, struct fw_buf *out)
{
	char at[FW_RFC3339_MAX];

	fw_buf_addf(out, "<text class=\"head\" x=\"%d\" y=\"34\">", LEFT);
	svg_cstr(out, t->verdict);
	fw_buf_addf(out, "</text>\n<text x=\"%d\" y=\"60\">Run of %s: %zu %s in ", LEFT,
		fw_rfc3339(at, t->started_ms / 1000 * 1000), t->n, t->n == 1 ? "fetch" : "fetches");
	svg_duration(out, t->total_us);
	fw_buf_addf(out, " on %u ", t->row_n);
	if (t->slots > t->row_n)
		fw_buf_addf(out, "of %u ", t->slots);
	fw_buf_addf(out, "%s, %.1f %% idle", FW_MAX(t->row_n, t->slots) == 1 ? "slot" : "slots", t->idle * 100);
	if (t->failed_n)
		fw_buf_addf(out, ", %zu failed", t->failed_n);
	if (t->order.len) {
		fw_buf_adds(out, "; order ");
		svg_text(out, t->order);
	}
	if (t->predicted_us) {
		fw_buf_adds(out, ", forecast ");
		svg_duration(out, t->predicted_us);
	}
	fw_buf_adds(out, "; lower bound for any order ");
	svg_duration(out, t->bound_us);
	fw_buf_adds(out,
		t->bound_us == t->slots_us           ? " (work / slots)" :
			t->bound_us == t->longest_us ? " (the longest fetch)" :
						       " (one host's feeds)");
	fw_buf_adds(out, "</text>\n");
}

/* ---- histogram ------------------------------------------------------------------------------- */

static int histogram_bin(int64_t us)
{
	double octaves = us > 1000 ? log2((double)us / 1000) : 0;

	return FW_MIN((int)(octaves * BINS_OCTAVE), BINS - 1);
}

static void svg_percentile(const struct timeline *t, struct fw_buf *out, const int64_t *took, int percent, int x, int y)
{
	fw_buf_addf(out, "<text x=\"%d\" y=\"%d\">%s ", x, y,
		percent == 50          ? "median" :
			percent == 100 ? "longest" :
			percent == 95  ? "95 % took at most" :
					 "99 % took at most");
	svg_duration(out, took[(t->n * (size_t)percent + 99) / 100 - 1]);
	fw_buf_adds(out, "</text>\n");
}

static void svg_histogram(const struct timeline *t, struct fw_buf *out, int y)
{
	static const int PERCENT[] = {50, 95, 99, 100};
	size_t n[2][BINS + 1] = {{0}}, most = 1;
	int64_t *took = calloc(t->n, sizeof(*took));
	int base = y + HISTOGRAM_HEIGHT, first = BINS, last = 0;

	if (!took) {
		out->rc = FW_ENOMEM;
		return;
	}
	for (size_t i = 0; i < t->n; i++) {
		int b;

		took[i] = t->bar[i].until_us - t->bar[i].from_us;
		b = histogram_bin(took[i]);
		n[!fw_visit_succeeded(t->bar[i].visit.kind)][b]++;
		most = FW_MAX(most, n[0][b] + n[1][b]);
		first = FW_MIN(first, b / BINS_OCTAVE * BINS_OCTAVE);
		last = FW_MAX(last, b);
	}
	qsort(took, t->n, sizeof(*took), timeline_by_us);
	fw_buf_addf(out, "<text class=\"dim\" x=\"%d\" y=\"%d\">durations of the fetches%s</text>\n", LEFT, y - 8,
		t->failed_n ? " (orange: failed)" : "");
	for (int b = first; b <= last + 1; b++) {
		double ok = (HISTOGRAM_HEIGHT - 16) * (double)n[0][b] / (double)most,
		       no = (HISTOGRAM_HEIGHT - 16) * (double)n[1][b] / (double)most;
		int x = LEFT + (b - first) * 30;

		if (b <= last && n[0][b] + n[1][b])
			fw_buf_addf(out,
				"<g><title>%zu fetches, %zu failed</title><rect class=\"ok\" x=\"%d\" y=\"%.1f\" "
				"width=\"28\" height=\"%.1f\"/>"
				"<rect class=\"no\" x=\"%d\" y=\"%.1f\" width=\"28\" height=\"%.1f\"/><text "
				"class=\"dim\" x=\"%d\" y=\"%.1f\" text-anchor=\"middle\""
				" font-size=\"11\">%zu</text></g>\n",
				n[0][b] + n[1][b], n[1][b], x, base - ok, ok, x, base - ok - no, no, x + 14,
				base - ok - no - 3, n[0][b] + n[1][b]);
		if (b % BINS_OCTAVE == 0) {
			fw_buf_addf(out,
				"<path class=\"tick\" d=\"M%d %dv5\"/><text class=\"dim\" x=\"%d\" y=\"%d\" "
				"text-anchor=\"middle\" font-size=\"11\">",
				x, base, x, base + 17);
			svg_duration(out, INT64_C(1000) << (b / BINS_OCTAVE));
			fw_buf_adds(out, "</text>\n");
		}
	}
	for (size_t i = 0; i < FW_N(PERCENT); i++)
		svg_percentile(t, out, took, PERCENT[i], LEFT + (last - first + 2) * 30 + 40, y + 20 + 20 * (int)i);
	free(took);
}

/* ---- entry points ---------------------------------------------------------------------------- */

static int rows_bottom(const struct timeline *t)
{
	return ROWS_TOP + row_height(t) * (int)t->row_n;
}

static int picture_height(const struct timeline *t)
{
	return rows_bottom(t) + 70 + HISTOGRAM_HEIGHT + 30;
}

static void svg_picture(const struct timeline *t, struct fw_buf *out, const char *more, const char *hint)
{
	int bottom = rows_bottom(t), high = picture_height(t);

	fw_buf_addf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" %s>\n<style>%s", WIDTH, high,
		more, PICTURE_STYLE);
	for (int p = 0; p < PHASE_N; p++)
		fw_buf_addf(out, ".p%d{fill:%s}", p, PHASE[p].colour);
	fw_buf_adds(out, "path,.mark{vector-effect:non-scaling-stroke}</style>\n");
	fw_buf_addf(out, "<rect class=\"back\" width=\"%d\" height=\"%d\"/>\n", WIDTH, high);
	svg_head(t, out);
	svg_legend(t, out);
	svg_busy(t, out);
	fw_buf_addf(out, "<text class=\"dim\" x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", LEFT + ACROSS,
		BUSY_TOP - 5, hint);
	svg_rows(t, out, ROWS_TOP);
	svg_axis(t, out, bottom);
	svg_last_label(t, out, ROWS_TOP);
	svg_histogram(t, out, bottom + 66);
	fw_buf_adds(out, "</svg>\n");
}

void timeline_svg(const struct timeline *t, struct fw_buf *out)
{
	char size[80];

	(void)fw_snprintf(size, sizeof(size), "width=\"%d\" height=\"%d\"", WIDTH, picture_height(t));
	fw_buf_adds(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
	svg_picture(t, out, size, "");
}

void timeline_html(const struct timeline *t, struct fw_buf *out)
{
	fw_buf_addf(out,
		"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>feedwheel: %zu "
		"fetches</title>\n<style>"
		"body{margin:0}svg#all{width:100%%;height:auto;display:block}svg#rows{cursor:grab}#tip{position:fixed;"
		"display:none;max-width:46em;padding:.5em .8em;background:#111;color:#fff;font:13px/1.5 "
		"system-ui,sans-serif;white-space:pre-wrap;overflow-wrap:anywhere;border-radius:4px;border:1px solid "
		"#777;pointer-events:none}@media(prefers-color-scheme:dark){body{background:#161616}}</style>\n</"
		"head>\n<body>\n",
		t->n);
	svg_picture(
		t, out, "id=\"all\"", "zoom: mouse wheel or + -; move: drag or arrow keys; reset: double click or 0");
	fw_buf_adds(out, "<div id=\"tip\"></div>\n<script>\n");
	fw_buf_adds(out, timeline_script);
	fw_buf_adds(out, "</script>\n</body>\n</html>\n");
}
