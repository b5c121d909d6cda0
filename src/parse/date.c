/* SPDX-License-Identifier: ISC */
/*
 * Dates, read the way feeds write them.
 *
 * Two straight paths take what nearly every feed has, RFC 3339 and RFC 822, without a look at anything else. What they do not
 * understand goes to the patient reader: the text is cut into numbers, words and signs; then, in this order, units in
 * ideographs (2004<year>5<month>), the clock time, the zone behind it, the month's name, and the numbers that are left are
 * understood as year, month and day. Words nobody knows (weekdays, "at", "o'clock") are passed over: a wrong weekday is the
 * commonest mistake in feeds, and the numbers say enough.
 *
 * Words are compared folded: lower case, accents taken off (Latin, Greek, Cyrillic), so that "Févr.", "fevr" and "FÉVR" are one.
 * Sources: RFC 822 section 5, RFC 2822 section 4.3, RFC 3339, ISO 8601, FMT-07, protocols note 5.9.
 */
#include "base/clock.h"
#include "base/str.h"
#include "base/utf8.h"
#include "parse/date.h"
#include "base/banned.h"

#define MAX_BYTES 200
#define MAX_TOKENS 64
#define NONE INT32_MIN

struct parts {
	int year, month, day, hour, minute, second, ms;
	int zone_min; /* east of Greenwich, or NONE */
};

static int full_year(int value, size_t digits)
{
	if (digits == 2)
		return value + (value <= 68 ? 2000 : 1900);
	if (digits == 3) /* 104 is 2004 where a program counted from 1900 (RFC 2822 section 4.3) */
		return value + 1900;
	return digits == 4 && value >= 1000 ? value : NONE;
}

static bool to_ms(const struct parts *p, int64_t *out)
{
	if (p->year < 1000 || p->year > 9999 || p->month < 1 || p->month > 12 || p->day < 1 ||
	    p->day > fw_month_days(p->year, p->month))
		return false;
	if (p->hour < 0 || p->hour > 24 || p->minute < 0 || p->minute > 59 || p->second < 0 || p->second > 60)
		return false;
	if (p->hour == 24 && (p->minute || p->second || p->ms))
		return false;
	*out = fw_time_ms(p->year, p->month, p->day, p->hour, p->minute, p->second, p->ms);
	if (p->zone_min != NONE)
		*out -= p->zone_min * FW_MINUTE_MS;
	return true;
}

/* ---- the straight paths ------------------------------------------------------------------------------------------------ */

/* n digits at p as a number, or a negative number. */
static int digits(const char *p, int n)
{
	int v = 0;

	for (int i = 0; i < n; i++) {
		int d = p[i] - '0';

		if (d < 0 || d > 9)
			return -1;
		v = v * 10 + d;
	}
	return v;
}

/* "+02:00", "-0500" filling the rest of s. */
static bool fast_offset(struct fw_str s, int *zone_min)
{
	int h, m;

	if ((s.len != 5 && s.len != 6) || (s.p[0] != '+' && s.p[0] != '-') || (s.len == 6 && s.p[3] != ':'))
		return false;
	h = digits(s.p + 1, 2);
	m = digits(s.p + s.len - 2, 2);
	if (h < 0 || h > 23 || m < 0 || m > 59)
		return false;
	*zone_min = (s.p[0] == '-' ? -1 : 1) * (h * 60 + m);
	return true;
}

/* "2003-12-31T10:14:55[.250][Z|+00:00]" and nothing else; a space instead of T is MSSQL's way. */
static bool fast_rfc3339(struct fw_str s, struct parts *p)
{
	size_t i = 19;
	int scale = 100;

	if (s.len < 19 || s.p[4] != '-' || s.p[7] != '-' || ((s.p[10] | 32) != 't' && s.p[10] != ' ') || s.p[13] != ':' || s.p[16] != ':')
		return false;
	p->year = digits(s.p, 4);
	p->month = digits(s.p + 5, 2);
	p->day = digits(s.p + 8, 2);
	p->hour = digits(s.p + 11, 2);
	p->minute = digits(s.p + 14, 2);
	p->second = digits(s.p + 17, 2);
	if ((p->year | p->month | p->day | p->hour | p->minute | p->second) < 0)
		return false;
	if (i < s.len && s.p[i] == '.') {
		for (i++; i < s.len && fw_is_digit(s.p[i]); i++, scale /= 10)
			p->ms += scale * (s.p[i] - '0');
	}
	s = fw_str_sub(s, i, s.len);
	if (s.len == 0 || (s.len == 1 && (s.p[0] | 32) == 'z'))
		return true;
	return fast_offset(s, &p->zone_min);
}

static int english_month(const char *p)
{
	static const char names[] = "janfebmaraprmayjunjulaugsepoctnovdec";
	char a = (char)(p[0] | 32), b = (char)(p[1] | 32), c = (char)(p[2] | 32);

	for (int i = 0; i < 36; i += 3) {
		if (names[i] == a && names[i + 1] == b && names[i + 2] == c)
			return i / 3 + 1;
	}
	return 0;
}

static bool zone_name(struct fw_str word, int *zone_min);

/* "EST", "CEST", "Z": a zone's name filling the rest of s. */
static bool fast_zone(struct fw_str s, int *zone_min)
{
	char word[4];

	if (s.len == 0 || s.len > sizeof(word))
		return false;
	for (size_t i = 0; i < s.len; i++)
		word[i] = (char)fw_lower((unsigned char)s.p[i]);
	return zone_name((struct fw_str){word, s.len}, zone_min);
}

/* "[Thu, ]1 Jan 2004 19:48:21 (GMT|UTC|Z|+0000)" and nothing else. */
static bool fast_rfc822(struct fw_str s, struct parts *p)
{
	size_t i = 0;

	if (s.len > 5 && s.p[3] == ',' && s.p[4] == ' ')
		i = 5;
	if (s.len < i + 20)
		return false;
	if (s.p[i + 1] == ' ') {
		p->day = digits(s.p + i, 1);
		i += 2;
	} else {
		p->day = digits(s.p + i, 2);
		if (s.p[i + 2] != ' ')
			return false;
		i += 3;
	}
	if (s.len < i + 19 || s.p[i + 3] != ' ' || s.p[i + 8] != ' ' || s.p[i + 11] != ':' || s.p[i + 14] != ':' ||
	    s.p[i + 17] != ' ')
		return false;
	p->month = english_month(s.p + i);
	p->year = digits(s.p + i + 4, 4);
	p->hour = digits(s.p + i + 9, 2);
	p->minute = digits(s.p + i + 12, 2);
	p->second = digits(s.p + i + 15, 2);
	if (!p->month || (p->day | p->year | p->hour | p->minute | p->second) < 0)
		return false;
	s = fw_str_sub(s, i + 18, s.len);
	if (s.len == 3 && (memcmp(s.p, "GMT", 3) == 0 || memcmp(s.p, "UTC", 3) == 0))
		return true;
	return fast_offset(s, &p->zone_min) || fast_zone(s, &p->zone_min);
}

/* ---- words --------------------------------------------------------------------------------------------------------------- */

/*
 * Full names and abbreviations that are not their beginnings, folded. A word means a month when it equals one of these, or is
 * the beginning (three letters or more) of one; equal ones first, then the earlier month. Hence some abbreviations stand here
 * although they begin a name: "lip" is Polish July, not Croatian June.
 */
static const char *const MONTHS[12] = {
	"january januar januari janvier enero januarie ianuarie gennaio gener janeiro jaenner janner januarja januar januarium "
	"styczen stycznia leden ledna ocak tammikuu tammikuuta sausio sausis sijecanj sijecnja jaanuar janvaris urtarrila "
	"январь января януари сичень сичня јануар студзень студзеня ιανουαριος ιανουαριου يناير ינואר جنوری มกราคม",
	"february februar februari fevrier febrero februarie febbraio febrer fevereiro feber luty lutego unor unora subat "
	"helmikuu helmikuuta vasario vasaris veljaca veljace veebruar februaris otsaila "
	"февраль февраля февруари лютии лютого фебруар люты φεβρουαριος φεβρουαριου فبراير פברואר กุมภาพันธ์",
	"march marz maerz mars marzo maart mrt mrz martie marco marc marcius marzec marca brezen brezna mart maret "
	"maaliskuu maaliskuuta kovo kovas ozujak ozujka marts martxoa "
	"март марта березень березня сакавик μαρτιος μαρτιου μαωτιος مارس מרץ มีนาคม",
	"april avril abril aprile aprilie aprilis kwiecien kwietnia duben dubna nisan huhtikuu huhtikuuta balandzio balandis "
	"travanj travnja aprill apirila апрель апреля април квитень квитня красавик απριλιος απριλιου ابريل אפריל เมษายน",
	"may mai mayo maggio mei maj maja maio maig majus kveten kvetna mayis toukokuu toukokuuta geguzes geguze svibanj svibnja "
	"maijs maiatza маи мая травень травня мај μαιος μαιου مايو מאי พฤษภาคม",
	"june juni juin junio giugno junho iunie juny junius czerwiec czerwca cerven cervna cvn haziran kesakuu kesakuuta "
	"birzelio birzelis lipanj lipnja juuni junijs ekaina "
	"июнь июня юни червень червня јун чэрвень ιουνιος ιουνιου ιον يونيو יוני มิถุนายน",
	"july juli juillet julio luglio julho iulie juliol julius lip lipiec lipca cervenec cervence cvc temmuz heinakuu "
	"heinakuuta liepos liepa srpanj srpnja juuli julijs uztaila "
	"июль июля юли липень липня јул ιουλιος ιουλιου ιολ يوليو יולי กรกฎาคม",
	"august aout agosto augustus agost augusztus sierpien sierpnia srp srpen srpna agustos agustus agt elokuu elokuuta "
	"rugpjucio rugpjutis rgp kolovoz kolovoza augusts abuztua "
	"август августа серпень серпня жнивень αυγουστος αυγουστου اغسطس אוגוסט สิงหาคม",
	"september sept septembre septiembre setiembre settembre setembro septembrie setembre szeptember wrzesien wrzesnia zari "
	"eylul syyskuu syyskuuta rugsejo rugsejis rgs rujan rujna septembris iraila "
	"сентябрь сентября септември вересень вересня септембар верасень σεπτεμβριος σεπτεμβριου σετ سبتمبر ספטמבר กันยายน",
	"october oktober octobre octubre ottobre outubro octombrie paz pazdziernik pazdziernika rijen rijna ekim "
	"lokakuu lokakuuta spalio spalis oktoober oktobris urria "
	"октябрь октября октомври жовтень жовтня октобар кастрычник οκτωβριος οκτωβριου اكتوبر אוקטובר ตุลาคม",
	"november novembre noviembre novembro noiembrie listopad listopada listopadu kasim marraskuu marraskuuta lapkricio "
	"lapkritis studeni studenoga novembris azaroa "
	"ноябрь ноября ноември листопад листопада новембар листапад νοεμβριος νοεμβριου نوفمبر נובמבר พฤศจิกายน",
	"december dezember decembre diciembre dicembre dezembro decembrie desember desembre desembris grudzien grudnia prosinec "
	"prosince aralik joulukuu joulukuuta gruodzio gruodis grd prosinac prosinca detsember decembris abendua dic "
	"декабрь декабря декември грудень грудня децембар снежань δεκεμβριος δεκεμβριου ديسمبر דצמבר ธันวาคม",
};

static const struct { const char *name; int16_t min; } ZONES[] = {
	{"gmt", 0}, {"utc", 0}, {"ut", 0}, {"z", 0}, {"zulu", 0}, {"wet", 0}, {"wez", 0}, {"etc", 0}, {"uct", 0},
	{"est", -300}, {"edt", -240}, {"et", -300}, {"cst", -360}, {"cdt", -300}, {"ct", -360}, {"mst", -420}, {"mdt", -360},
	{"mt", -420}, {"pst", -480}, {"pdt", -420}, {"pt", -480}, {"ast", -240}, {"adt", -180}, {"at", -240}, {"nst", -210},
	{"ndt", -150}, {"akst", -540}, {"akdt", -480}, {"hst", -600}, {"hast", -600}, {"brt", -180}, {"brst", -120}, {"art", -180},
	{"clt", -240}, {"clst", -180}, {"cot", -300}, {"pet", -300}, {"vet", -240}, {"bst", 60}, {"west", 60}, {"wesz", 60},
	{"cet", 60}, {"met", 60}, {"mez", 60}, {"cest", 120}, {"mest", 120}, {"mesz", 120}, {"met dst", 120}, {"eet", 120},
	{"eest", 180}, {"oez", 120}, {"oesz", 180}, {"sast", 120}, {"cat", 120}, {"wat", 60}, {"eat", 180}, {"msk", 180},
	{"мск", 180}, {"msd", 240}, {"trt", 180}, {"idt", 180}, {"gst", 240}, {"pkt", 300}, {"ist", 330}, {"npt", 345},
	{"ict", 420}, {"wib", 420}, {"wita", 480}, {"wit", 540}, {"hkt", 480}, {"sgt", 480}, {"myt", 480}, {"pht", 480},
	{"awst", 480}, {"jst", 540}, {"kst", 540}, {"acst", 570}, {"acdt", 630}, {"aest", 600}, {"aedt", 660}, {"nzst", 720},
	{"nzt", 720}, {"nzdt", 780},
};

/* Lower case without accent for Latin-1, Latin Extended-A, Greek and Cyrillic; others as they are. */
static uint32_t fold(uint32_t c)
{
	/* U+00C0..U+017F; '*' keeps the character */
	static const char latin[] =
		"aaaaaaaceeeeiiiidnooooo*ouuuuyts" "aaaaaaaceeeeiiiidnooooo*ouuuuyty"
		"aaaaaaccccccccddddeeeeeeeeeegggggggghhhhiiiiiiiiiiiijjkkk"
		"llllllllllnnnnnnnnnoooooooorrrrrrssssssssttttttuuuuuuuuuuuuwwyyyzzzzzzs";
	static const struct { uint16_t from, to; } greek[] = {
		{0x386, 0x3b1}, {0x388, 0x3b5}, {0x389, 0x3b7}, {0x38a, 0x3b9}, {0x38c, 0x3bf}, {0x38e, 0x3c5}, {0x38f, 0x3c9},
		{0x390, 0x3b9}, {0x3aa, 0x3b9}, {0x3ab, 0x3c5}, {0x3ac, 0x3b1}, {0x3ad, 0x3b5}, {0x3ae, 0x3b7}, {0x3af, 0x3b9},
		{0x3b0, 0x3c5}, {0x3ca, 0x3b9}, {0x3cb, 0x3c5}, {0x3cc, 0x3bf}, {0x3cd, 0x3c5}, {0x3ce, 0x3c9},
		{0x456, 0x438}, {0x406, 0x438}, {0x457, 0x438}, {0x451, 0x435}, {0x439, 0x438}, {0x419, 0x438},
		{0x623, 0x627}, {0x625, 0x627},
	};

	_Static_assert(sizeof(latin) - 1 == 0x180 - 0xc0, "one letter for each character");
	if (c < 0x80)
		return (uint32_t)fw_lower((int)c);
	if (c >= 0xc0 && c < 0xc0 + sizeof(latin) - 1)
		return latin[c - 0xc0] == '*' ? c : (uint32_t)latin[c - 0xc0];
	if (c == 0x218 || c == 0x219)
		return 's';
	if (c == 0x21a || c == 0x21b)
		return 't';
	for (size_t i = 0; i < FW_N(greek); i++) {
		if (greek[i].from == c)
			return greek[i].to;
	}
	if ((c >= 0x391 && c <= 0x3a9) || (c >= 0x410 && c <= 0x42f))
		return c + 32;
	if (c >= 0x400 && c <= 0x40f)
		return c + 80;
	return c;
}

/* 1..12, or 0. */
static int month_name(struct fw_str word)
{
	static const char *const DAYS[] = {"mon", "tue", "wed", "thu", "fri", "sat", "sun"};
	size_t n, letters = 0;
	int english = word.len >= 3 ? english_month(word.p) : 0;

	if (english && (word.len == 3 || fw_str_starts(fw_str(MONTHS[english - 1]), word))) /* English stands first */
		return english;
	for (size_t i = 0; i < FW_N(DAYS); i++) { /* only to be quick: no month begins like these */
		if (fw_str_starts(word, fw_str(DAYS[i])))
			return 0;
	}
	for (size_t i = 0; i < word.len; i += n, letters++)
		(void)fw_utf8_get(word.p + i, word.len - i, &n);
	if (letters < 3)
		return 0;
	for (int exact = 1; exact >= 0; exact--) {
		for (int m = 0; m < 12; m++) {
			struct fw_str rest = fw_str(MONTHS[m]);

			while (rest.p) {
				struct fw_str name = fw_str_split(rest, ' ', &rest);

				if (exact ? fw_str_eq(name, word) : fw_str_starts(name, word))
					return m + 1;
			}
		}
	}
	return 0;
}

static bool zone_name(struct fw_str word, int *zone_min)
{
	for (size_t i = 0; i < FW_N(ZONES); i++) {
		if (fw_str_eq(word, fw_str(ZONES[i].name))) {
			*zone_min = ZONES[i].min;
			return true;
		}
	}
	/* military, with the signs of RFC 822; but "12:30 h" means hours */
	if (word.len == 1 && word.p[0] >= 'a' && word.p[0] <= 'y' && word.p[0] != 'j' && word.p[0] != 'h') {
		int c = word.p[0];

		*zone_min = c <= 'i' ? -60 * (c - 'a' + 1) : c <= 'm' ? -60 * (c - 'a') : 60 * (c - 'n' + 1);
		return true;
	}
	return false;
}

static bool has(struct fw_str word, const char *part)
{
	return fw_str_find(word, fw_str(part)) != NULL;
}

/* 1: before noon, 2: after noon, 0: neither. */
static int half_day(struct fw_str w)
{
	if ((unsigned char)w.p[0] < 0x80)
		return fw_str_eq(w, FW_STR("am")) ? 1 : fw_str_eq(w, FW_STR("pm")) ? 2 : 0;
	if (fw_str_eq(w, FW_STR("πμ")) || has(w, "오전") || has(w, "上午") || has(w, "午前"))
		return 1;
	return fw_str_eq(w, FW_STR("μμ")) || has(w, "오후") || has(w, "下午") ||
		has(w, "午後") || has(w, "午后") ? 2 : 0;
}

/* ---- the patient reader: tokens ------------------------------------------------------------------------------------------- */

enum kind { NUMBER, WORD, SIGN, USED };

struct token {
	enum kind kind;
	bool gap;           /* white space in front */
	int value;          /* NUMBER, when it has at most nine digits; SIGN: the character */
	size_t digits;
	struct fw_str text; /* folded */
};

struct scan {
	struct token tok[MAX_TOKENS];
	size_t n;
	char folded[3 * MAX_BYTES + 4]; /* a byte that is no UTF-8 becomes U+FFFD */
	size_t folded_n;
	bool korean, thai;
};

static int digit_value(uint32_t c)
{
	static const uint32_t zero[] = {'0', 0xff10, 0x660, 0x6f0}; /* ASCII, full width, Arabic-Indic, Persian */

	for (size_t i = 0; i < FW_N(zero); i++) {
		if (c >= zero[i] && c < zero[i] + 10)
			return (int)(c - zero[i]);
	}
	return -1;
}

static bool is_gap(uint32_t c)
{
	return c <= ' ' || c == 0xa0 || c == 0x3000 || (c >= 0x2000 && c <= 0x200f) || c == 0x202f || c == 0xfeff;
}

static bool is_letter(uint32_t c)
{
	return c < 0x80 ? fw_is_alpha((int)c) : digit_value(c) < 0 && !is_gap(c) && !(c >= 0x2010 && c <= 0x206f) &&
		!(c >= 0x3001 && c <= 0x303f) && !(c >= 0xff01 && c <= 0xff0f) && c != 0xff1a && c != 0xb7 && c != 0xba;
}

/* Typographic signs as their ASCII cousins. */
static int plain_sign(uint32_t c)
{
	switch (c) {
	case 0x2010: case 0x2011: case 0x2012: case 0x2013: case 0x2212: case 0xff0d:
		return '-';
	case 0xff1a:
		return ':';
	case 0xff0f:
		return '/';
	case 0xff0e: case 0x3002:
		return '.';
	case 0xff0b:
		return '+';
	case 0x2019: case 0x2018:
		return '\'';
	default:
		return c < 0x80 ? (int)c : ',';
	}
}

static bool scan(struct scan *sc, struct fw_str s)
{
	bool gap = false, more = false; /* more: the last token may grow */
	size_t n, depth = 0;

	for (size_t i = 0; i < s.len; i += n) {
		uint32_t c = fw_utf8_get(s.p + i, s.len - i, &n);
		struct token *t = more ? &sc->tok[sc->n - 1] : NULL;
		int d = digit_value(c);

		if (c == '(' || c == ')' || depth || is_gap(c)) { /* a comment counts as white space */
			depth = c == '(' ? depth + 1 : c == ')' ? depth - (depth > 0) : depth;
			gap = true;
			more = false;
			continue;
		}
		if (!t || t->kind == SIGN || (t->kind == NUMBER) != (d >= 0) || !(d >= 0 || is_letter(c))) {
			if (sc->n == MAX_TOKENS)
				return false;
			t = &sc->tok[sc->n++];
			*t = (struct token){.kind = d >= 0 ? NUMBER : is_letter(c) ? WORD : SIGN, .gap = gap,
				.text = {sc->folded + sc->folded_n, 0}};
			gap = false;
			more = true;
		}
		if (d >= 0) {
			t->value = t->digits < 9 ? t->value * 10 + d : t->value;
			t->digits++;
		} else if (t->kind == SIGN) {
			t->value = plain_sign(c);
			continue;
		}
		t->text.len += fw_utf8_put(sc->folded + sc->folded_n, d >= 0 ? (uint32_t)('0' + d) : fold(c));
		sc->folded_n = (size_t)(t->text.p - sc->folded) + t->text.len;
		if (c >= 0xac00 && c <= 0xd7a3)
			sc->korean = true;
		if (c >= 0xe01 && c <= 0xe4e)
			sc->thai = true;
	}
	return sc->n > 0;
}

static const struct token *at(const struct scan *sc, size_t i)
{
	static const struct token end = {.kind = USED};

	return i < sc->n ? &sc->tok[i] : &end;
}

static bool is_number(const struct scan *sc, size_t i, size_t min_digits, size_t max_digits)
{
	const struct token *t = at(sc, i);

	return t->kind == NUMBER && t->digits >= min_digits && t->digits <= max_digits;
}

static bool is_sign(const struct scan *sc, size_t i, int c)
{
	return at(sc, i)->kind == SIGN && at(sc, i)->value == c;
}

static bool is_word(const struct scan *sc, size_t i, const char *w)
{
	return at(sc, i)->kind == WORD && fw_str_eq(at(sc, i)->text, fw_str(w));
}

static void use(struct scan *sc, size_t from, size_t to)
{
	for (size_t i = from; i < to && i < sc->n; i++)
		sc->tok[i].kind = USED;
}

/* ---- the patient reader: understanding ------------------------------------------------------------------------------------ */

/* Numbers followed by what they count: 2004年5月28日 11時23分17秒, 2004년 05월 28일. */
static void read_units(struct scan *sc, struct parts *p)
{
	static const struct { const char *unit; size_t member; } UNITS[] = {
		{"年", 0}, {"년", 0}, {"月", 1}, {"월", 1}, {"日", 2}, {"일", 2}, {"号", 2}, {"时", 3}, {"時", 3}, {"点", 3}, {"시", 3},
		{"分", 4}, {"분", 4}, {"秒", 5}, {"초", 5},
	};
	int *const member[] = {&p->year, &p->month, &p->day, &p->hour, &p->minute, &p->second};

	for (size_t i = 0; i + 1 < sc->n; i++) {
		if (!is_number(sc, i, 1, 4) || sc->tok[i + 1].kind != WORD)
			continue;
		for (size_t u = 0; u < FW_N(UNITS); u++) {
			if (!fw_str_starts(sc->tok[i + 1].text, fw_str(UNITS[u].unit)))
				continue;
			*member[UNITS[u].member] = UNITS[u].member ? sc->tok[i].value : full_year(sc->tok[i].value, sc->tok[i].digits);
			use(sc, i, i + 1);
			break;
		}
	}
}

static void read_fraction(const struct token *t, struct parts *p)
{
	int scale = 100;

	for (size_t i = 0; i < t->text.len && i < 3; i++, scale /= 10)
		p->ms += scale * (t->text.p[i] - '0');
}

/* The month at token i: a name, or Thai initials (two words with full stops). 0: none. */
static int read_month(const struct scan *sc, size_t i)
{
	static const char *const THAI[12][2] = {{"ม", "ค"}, {"ก", "พ"}, {"มี", "ค"}, {"เม", "ย"}, {"พ", "ค"}, {"มิ", "ย"}, {"ก", "ค"},
		{"ส", "ค"}, {"ก", "ย"}, {"ต", "ค"}, {"พ", "ย"}, {"ธ", "ค"}};

	if (at(sc, i)->kind != WORD)
		return 0;
	for (int m = 0; sc->thai && m < 12; m++) {
		if (is_word(sc, i, THAI[m][0]) && is_sign(sc, i + 1, '.') && is_word(sc, i + 2, THAI[m][1]))
			return m + 1;
	}
	return month_name(sc->tok[i].text);
}

/* Where a clock time begins, sc->n when there is none; *sep is what stands between hour and minute. */
static size_t find_time(const struct scan *sc, int *sep)
{
	for (size_t i = 0; i + 2 < sc->n; i++) {
		if (is_number(sc, i, 1, 2) && is_sign(sc, i + 1, ':') && is_number(sc, i + 2, 1, 2)) {
			*sep = ':';
			return i;
		}
	}
	for (size_t i = 1; i + 2 < sc->n; i++) { /* 19h48 */
		if (is_number(sc, i, 1, 2) && is_word(sc, i + 1, "h") && is_number(sc, i + 2, 2, 2) && !sc->tok[i + 2].gap) {
			*sep = 'h';
			return i;
		}
	}
	for (size_t i = 1; i + 4 < sc->n; i++) { /* 19.48.21 behind a date */
		if (sc->tok[i].gap && is_number(sc, i, 1, 2) && is_sign(sc, i + 1, '.') && is_number(sc, i + 2, 2, 2) &&
		    is_sign(sc, i + 3, '.') && is_number(sc, i + 4, 2, 2) && !sc->tok[i + 1].gap && !sc->tok[i + 2].gap) {
			*sep = '.';
			return i;
		}
	}
	return sc->n;
}

/* Reads the clock time; returns the token behind it, sc->n when there was none. */
static size_t read_time(struct scan *sc, struct parts *p)
{
	int sep = 0;
	size_t from = find_time(sc, &sep), i = from + 3;

	if (from == sc->n)
		return sc->n;
	p->hour = sc->tok[from].value;
	p->minute = sc->tok[from + 2].value;
	p->second = 0;
	if (at(sc, i)->kind == SIGN && (at(sc, i)->value == sep || (sep == ':' && at(sc, i)->value == '.')) &&
	    is_number(sc, i + 1, 1, 2) && !sc->tok[i + 1].gap) {
		p->second = sc->tok[i + 1].value;
		i += 2;
		if ((is_sign(sc, i, '.') || is_sign(sc, i, ',') || is_sign(sc, i, ':')) && is_number(sc, i + 1, 1, 200) &&
		    !sc->tok[i].gap && !sc->tok[i + 1].gap) {
			read_fraction(&sc->tok[i + 1], p);
			i += 2;
		}
	}
	if (from > 0 && is_word(sc, from - 1, "t"))
		from--;
	use(sc, from, i);
	return i;
}

/* "20040101T194821": a time without colons behind a T; "T19" too. Returns the token behind it or sc->n. */
static size_t read_compact_time(struct scan *sc, struct parts *p)
{
	size_t from;

	for (size_t i = 1; i + 1 < sc->n; i++) {
		const struct token *t = &sc->tok[i + 1];

		if (!is_word(sc, i, "t") || sc->tok[i].gap || t->gap || !is_number(sc, i + 1, 2, 6) || t->digits % 2)
			continue;
		from = i;
		p->hour = digits(t->text.p, 2);
		p->minute = t->digits > 2 ? digits(t->text.p + 2, 2) : 0;
		p->second = t->digits > 4 ? digits(t->text.p + 4, 2) : 0;
		i += 2;
		if ((is_sign(sc, i, '.') || is_sign(sc, i, ',')) && is_number(sc, i + 1, 1, 200)) {
			read_fraction(&sc->tok[i + 1], p);
			i += 2;
		}
		use(sc, from, i);
		return i;
	}
	return sc->n;
}

/* "am", "p.m." right behind the time, or a word like 오후 anywhere. Returns the token behind it. */
static size_t read_half_day(struct scan *sc, size_t i, struct parts *p)
{
	int half = 0;

	if (at(sc, i)->kind == WORD)
		half = half_day(sc->tok[i].text);
	if (half) {
		use(sc, i, i + 1);
		i++;
		if (is_sign(sc, i, '.'))
			i++;
	} else if ((is_word(sc, i, "a") || is_word(sc, i, "p")) && is_sign(sc, i + 1, '.') && is_word(sc, i + 2, "m")) {
		half = sc->tok[i].text.p[0] == 'p' ? 2 : 1;
		use(sc, i, i + 3);
		i += is_sign(sc, i + 3, '.') ? 4 : 3;
	} else {
		for (size_t k = 0; k < sc->n && !half; k++)
			half = sc->tok[k].kind == WORD ? half_day(sc->tok[k].text) : 0;
	}
	if (half && p->hour <= 12) /* "23:00 PM" means 23:00 */
		p->hour = p->hour % 12 + (half == 2 ? 12 : 0);
	return i;
}

/* "+02:00", "-5", "+0530" at token i, glued together; "+3000" is no offset anybody has: UTC. Returns the token behind it, or i. */
static size_t read_offset(struct scan *sc, size_t i, int *zone_min)
{
	const struct token *t = at(sc, i + 1);
	int h, m = 0, sign = is_sign(sc, i, '-') ? -1 : 1;
	size_t end = i + 2;

	if ((!is_sign(sc, i, '+') && !is_sign(sc, i, '-')) || !is_number(sc, i + 1, 1, 6) || (t->gap && t->digits != 4))
		return i;
	h = t->value;
	if (t->digits >= 3) {
		m = digits(t->text.p + (t->digits == 3 ? 1 : 2), 2);
		h = digits(t->text.p, t->digits == 3 ? 1 : 2);
	} else if ((is_sign(sc, end, ':') || is_sign(sc, end, '.')) && is_number(sc, end + 1, 2, 2) && !at(sc, end)->gap) {
		m = at(sc, end + 1)->value;
		end += 2;
	}
	*zone_min = h > 23 || m > 59 ? 0 : sign * (h * 60 + m);
	use(sc, i, end);
	return end;
}

/* What may follow a time: "GMT", "GMT+2", "+0200", "+02:00 CEST", "EST5EDT", "Etc/GMT". */
static void read_zone(struct scan *sc, size_t i, struct parts *p)
{
	int named, offset;

	while (at(sc, i)->kind == SIGN && (at(sc, i)->value == ',' || at(sc, i)->value == '/' || at(sc, i)->value == '['))
		i++;
	if (at(sc, i)->kind == WORD && zone_name(sc->tok[i].text, &named)) {
		bool greenwich = named == 0;

		if (is_word(sc, i, "etc") && is_sign(sc, i + 1, '/'))
			i += 2;
		if (is_word(sc, i + 1, "dst"))
			named += 60;
		p->zone_min = named;
		use(sc, i, i + 1);
		i++;
		if (is_number(sc, i, 1, 2) && !sc->tok[i].gap) { /* EST5EDT */
			use(sc, i, i + 1);
			return;
		}
		if (!greenwich)
			return;
	}
	if (read_offset(sc, i, &offset) > i)
		p->zone_min = offset;
}

/* Ordinal day: 2003-335. */
static bool set_yearday(struct parts *p, int yearday)
{
	if (yearday < 1 || yearday > (fw_leap_year(p->year) ? 366 : 365))
		return false;
	for (p->month = 1; yearday > fw_month_days(p->year, p->month); p->month++)
		yearday -= fw_month_days(p->year, p->month);
	p->day = yearday;
	return true;
}

/* ISO 8601 week date: week 1 holds 4 January; weeks begin on Monday. */
static bool set_week(struct parts *p, int week, int weekday)
{
	int64_t jan4 = fw_days_from_civil(p->year, 1, 4), monday = jan4 - ((jan4 + 3) % 7 + 7) % 7, day;
	int64_t next4 = fw_days_from_civil(p->year + 1, 1, 4), next = next4 - ((next4 + 3) % 7 + 7) % 7;
	struct fw_civil c;

	day = monday + (week - 1) * 7 + weekday - 1;
	if (week < 1 || weekday < 1 || weekday > 7 || day >= next)
		return false;
	fw_civil_from_ms(day * FW_DAY_MS, &c);
	p->year = c.year;
	p->month = c.month;
	p->day = c.day;
	return true;
}

/* Digits without separators: 20031231, 031231, 2003335, 03335, 2003. */
static bool set_compact(struct parts *p, const struct token *t)
{
	const char *d = t->text.p;
	size_t y = t->digits >= 7 || t->digits == 4 ? 4 : 2;

	if (t->digits < 4 || t->digits > 8)
		return false;
	p->year = full_year(digits(d, (int)y), y);
	if (p->year == NONE)
		return false;
	if (t->digits == 4) {
		p->month = p->day = 1;
		return true;
	}
	if (t->digits == 5 || t->digits == 7)
		return set_yearday(p, digits(d + y, 3));
	p->month = digits(d + y, 2);
	p->day = digits(d + y + 2, 2);
	return true;
}

/* A month's name and up to two numbers, or three when the third is a time like 0930. */
static bool set_named(struct parts *p, const struct token *const *num, size_t n, bool have_time)
{
	const struct token *day, *year;

	if (n == 3 && !have_time && num[2]->digits == 4) {
		p->hour = digits(num[2]->text.p, 2);
		p->minute = digits(num[2]->text.p + 2, 2);
		n = 2;
	}
	if (n == 1 && p->year != NONE) { /* 2004年 May 5 */
		p->day = num[0]->value;
		return true;
	}
	if (n == 0 || n == 1) {
		if (p->day == NONE)
			p->day = 1;
		if (n == 0)
			return p->year != NONE;
		p->year = num[0]->digits == 4 ? full_year(num[0]->value, 4) : NONE;
		return p->year != NONE;
	}
	if (n != 2)
		return false;
	day = num[0];
	year = num[1];
	if (day->digits > 2 || day->value > 31) {
		day = num[1];
		year = num[0];
	}
	if (day->digits > 2)
		return false;
	p->day = day->value;
	p->year = full_year(year->value, year->digits == 1 ? 2 : year->digits);
	return p->year != NONE;
}

/* Three bare numbers: the year is the one with four digits; else the sign between them tells the custom. */
static bool set_three(struct parts *p, const struct token *const *num, int sign)
{
	const struct token *year = num[0];

	if (num[1]->digits > 2 || (num[0]->digits > 2 && num[2]->digits > 2))
		return false;
	if (num[0]->digits > 2 || (num[2]->digits <= 2 && sign == '-')) { /* 2003-12-31, 03-12-31, 2003/12/31 */
		p->month = num[1]->value;
		p->day = num[2]->value;
	} else { /* 31.12.2003, 31-12-2003, 12/31/2003 */
		bool month_first = sign == '/';

		year = num[2];
		p->month = num[month_first ? 0 : 1]->value;
		p->day = num[month_first ? 1 : 0]->value;
		if (p->month > 12 && p->day <= 12) {
			int swap = p->month;

			p->month = p->day;
			p->day = swap;
		}
	}
	p->year = full_year(year->value, year->digits);
	return p->year != NONE;
}

static bool set_two(struct parts *p, const struct token *const *num)
{
	if (num[0]->digits <= 2 && num[1]->digits == 4) { /* 12/2003 */
		p->month = num[0]->value;
		p->year = full_year(num[1]->value, 4);
		p->day = 1;
		return p->year != NONE;
	}
	p->year = full_year(num[0]->value, num[0]->digits);
	if (p->year == NONE)
		return false;
	if (num[1]->digits == 3)
		return set_yearday(p, num[1]->value);
	p->month = num[1]->value;
	p->day = 1;
	return num[1]->digits <= 2;
}

/* 2003-W01-3, 2003W013, 2003-W01. *ok tells whether there is such a week; returns whether it was a week at all. */
static bool read_week(struct scan *sc, struct parts *p, bool *ok)
{
	for (size_t i = 0; i + 2 < sc->n; i++) {
		size_t w = i + 1 + is_sign(sc, i + 1, '-'), d = w + 2;
		const struct token *t = at(sc, w + 1);
		int weekday = 1;

		if (!is_number(sc, i, 4, 4) || !is_word(sc, w, "w") || !is_number(sc, w + 1, 2, 3))
			continue;
		if (t->digits == 3)
			weekday = t->text.p[2] - '0';
		else if (is_sign(sc, d, '-') && is_number(sc, d + 1, 1, 1))
			weekday = at(sc, d + 1)->value;
		p->year = full_year(sc->tok[i].value, 4);
		*ok = p->year != NONE && set_week(p, digits(t->text.p, 2), weekday);
		return true;
	}
	return false;
}

static bool read_date(struct scan *sc, struct parts *p, bool have_time)
{
	const struct token *num[4];
	bool ok, words = false;
	size_t n = 0;
	int sign = 0;

	if (read_week(sc, p, &ok))
		return ok;
	for (size_t i = 0; i < sc->n; i++) {
		const struct token *t = &sc->tok[i];
		int month = read_month(sc, i);

		words = words || t->kind == WORD;
		if (month) /* the last one: "mar. 5 janv." has Tuesday in front */
			p->month = month;
		if (t->kind == NUMBER) {
			if (n == 1 && i > 0 && sc->tok[i - 1].kind == SIGN)
				sign = sc->tok[i - 1].value;
			if (n == FW_N(num))
				return false;
			num[n++] = t;
		}
	}
	if (p->month != NONE)
		return set_named(p, num, n, have_time);
	if (words && n < 3 && !(n == 1 && num[0]->digits == 8)) /* "page 2003", "1.5 rc" */
		return false;
	switch (n) {
	case 1:
		if (num[0]->digits == 4 && is_sign(sc, 0, '-')) { /* -0312 */
			p->year = full_year(digits(num[0]->text.p, 2), 2);
			p->month = digits(num[0]->text.p + 2, 2);
			p->day = 1;
			return true;
		}
		return set_compact(p, num[0]);
	case 2:
		return set_two(p, num);
	case 3:
		return set_three(p, num, sign);
	default:
		return false;
	}
}

static bool patient(struct fw_str s, int64_t *out)
{
	struct parts p = {NONE, NONE, NONE, NONE, NONE, NONE, 0, NONE};
	bool have_time;
	struct scan sc;
	size_t i;

	sc.n = sc.folded_n = 0;
	sc.korean = sc.thai = false;
	if (!scan(&sc, s))
		return false;
	read_units(&sc, &p);
	i = read_time(&sc, &p);
	if (i == sc.n && p.hour == NONE)
		i = read_compact_time(&sc, &p);
	have_time = p.hour != NONE;
	if (have_time) {
		i = read_half_day(&sc, i, &p);
		read_zone(&sc, i, &p);
	}
	if (!read_date(&sc, &p, have_time))
		return false;
	if (sc.thai && p.year > 2400) /* years of the Buddhist era */
		p.year -= 543;
	p.hour = p.hour == NONE ? 0 : p.hour;
	p.minute = p.minute == NONE ? 0 : p.minute;
	p.second = p.second == NONE ? 0 : p.second;
	if (sc.korean && p.zone_min == NONE) /* Korean dates without a zone are local (feedparser's finding) */
		p.zone_min = 9 * 60;
	return to_ms(&p, out);
}

/* ---- numbers alone --------------------------------------------------------------------------------------------------------- */

/* Unix time: seconds from 1973 to 2100, or the same in ms and us. */
static bool epoch(const char *p, size_t n, int64_t *out)
{
	int64_t v;

	if (n < 9 || n > 16 || !fw_str_int((struct fw_str){p, n}, &v))
		return false;
	if (n >= 15)
		v /= 1000;
	else if (n <= 10)
		v *= 1000;
	if (v < INT64_C(100000000000) || v > INT64_C(4102444800000))
		return false;
	*out = v;
	return true;
}

/* Only digits (and a fraction of a second): 20031231101455, 1072865695, 1072865695.25, 1072865695000. */
static bool bare_number(struct fw_str s, int64_t *out)
{
	struct parts p = {0, 0, 0, 0, 0, 0, 0, NONE};
	size_t n = 0;

	while (n < s.len && fw_is_digit(s.p[n]))
		n++;
	if (n < s.len && s.p[n] != '.')
		return false;
	for (size_t i = n + 1; i < s.len; i++) {
		if (!fw_is_digit(s.p[i]))
			return false;
	}
	if ((n == 12 || n == 14) && (memcmp(s.p, "20", 2) == 0 || memcmp(s.p, "19", 2) == 0)) {
		p.year = digits(s.p, 4);
		p.month = digits(s.p + 4, 2);
		p.day = digits(s.p + 6, 2);
		p.hour = digits(s.p + 8, 2);
		p.minute = digits(s.p + 10, 2);
		p.second = n > 12 ? digits(s.p + 12, 2) : 0;
		if (to_ms(&p, out))
			return true;
	}
	return epoch(s.p, n, out);
}

bool fw_date_parse(struct fw_str s, int64_t *out)
{
	struct parts p = {0, 0, 0, 0, 0, 0, 0, NONE};

	s = fw_str_trim(s);
	if (s.len < 4)
		return false;
	if (fw_is_digit(s.p[0]) ? fast_rfc3339(s, &p) : fast_rfc822(s, &p))
		return to_ms(&p, out);
	if (s.len > MAX_BYTES)
		s.len = fw_utf8_cut(s.p, s.len, MAX_BYTES);
	if (fw_str_istarts(s, FW_STR("/Date("))) { /* Microsoft's JSON */
		size_t n = 6;

		while (n < s.len && fw_is_digit(s.p[n]))
			n++;
		return n > 15 && epoch(s.p + 6, n - 6, out);
	}
	return (fw_is_digit(s.p[0]) && bare_number(s, out)) || patient(s, out);
}
