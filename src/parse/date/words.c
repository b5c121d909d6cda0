/* SPDX-License-Identifier: ISC */
/*
 * The words in dates: months in many languages, zones, am and pm. They are compared folded, in
 * lower case and without accents (Latin, Greek, Cyrillic): "Févr.", "fevr" and "FÉVR" are equal.
 */
#include "base/suggest.h"
#include "base/utf8.h"
#include "parse/date/parts.h"

int fw_date_english_month(const char *p)
{
	static const char names[] = "janfebmaraprmayjunjulaugsepoctnovdec";
	char a = (char)(p[0] | 32), b = (char)(p[1] | 32), c = (char)(p[2] | 32);

	for (int i = 0; i < 36; i += 3) {
		if (names[i] == a && names[i + 1] == b && names[i + 2] == c)
			return i / 3 + 1;
	}
	return 0;
}

/*
 * Full names, and abbreviations that are not prefixes of them, folded. A word matches a month if it
 * equals an entry or is a prefix of one (three letters or more). Equality wins, then the earlier
 * month. So some abbreviations are listed although they are prefixes: "lip" is Polish July, not
 * Croatian June.
 */
static const char *const MONTH_WORDS[12] = {
	"january januar januari janvier enero januarie ianuarie gennaio gener janeiro jaenner janner januarja januar "
	"januarium "
	"styczen stycznia leden ledna ocak tammikuu tammikuuta sausio sausis sijecanj sijecnja jaanuar janvaris "
	"urtarrila "
	"январь января януари сичень сичня јануар студзень студзеня ιανουαριος ιανουαριου يناير ינואר جنوری มกราคม",
	"february februar februari fevrier febrero februarie febbraio febrer fevereiro feber luty lutego unor unora "
	"subat helmikuu helmikuuta vasario vasaris veljaca veljace veebruar februaris otsaila "
	"февраль февраля февруари лютии лютого фебруар люты φεβρουαριος φεβρουαριου فبراير פברואר กุมภาพันธ์",
	"march marz maerz mars marzo maart mrt mrz martie marco marc marcius marzec marca brezen brezna mart maret "
	"maaliskuu maaliskuuta kovo kovas ozujak ozujka marts martxoa "
	"март марта березень березня сакавик μαρτιος μαρτιου μαωτιος مارس מרץ มีนาคม",
	"april avril abril aprile aprilie aprilis kwiecien kwietnia duben dubna nisan huhtikuu huhtikuuta balandzio "
	"balandis "
	"travanj travnja aprill apirila апрель апреля април квитень квитня красавик απριλιος απριλιου ابريل אפריל "
	"เมษายน",
	"may mai mayo maggio mei maj maja maio maig majus kveten kvetna mayis toukokuu toukokuuta geguzes geguze "
	"svibanj svibnja maijs maiatza маи мая травень травня мај μαιος μαιου مايو מאי พฤษภาคม",
	"june juni juin junio giugno junho iunie juny junius czerwiec czerwca cerven cervna cvn haziran kesakuu "
	"kesakuuta birzelio birzelis lipanj lipnja juuni junijs ekaina "
	"июнь июня юни червень червня јун чэрвень ιουνιος ιουνιου ιον يونيو יוני มิถุนายน",
	"july juli juillet julio luglio julho iulie juliol julius lip lipiec lipca cervenec cervence cvc temmuz "
	"heinakuu heinakuuta liepos liepa srpanj srpnja juuli julijs uztaila "
	"июль июля юли липень липня јул ιουλιος ιουλιου ιολ يوليو יולי กรกฎาคม",
	"august aout agosto augustus agost augusztus sierpien sierpnia srp srpen srpna agustos agustus agt elokuu "
	"elokuuta rugpjucio rugpjutis rgp kolovoz kolovoza augusts abuztua "
	"август августа серпень серпня жнивень αυγουστος αυγουστου اغسطس אוגוסט สิงหาคม",
	"september sept septembre septiembre setiembre settembre setembro septembrie setembre szeptember wrzesien "
	"wrzesnia zari eylul syyskuu syyskuuta rugsejo rugsejis rgs rujan rujna septembris iraila "
	"сентябрь сентября септември вересень вересня септембар верасень σεπτεμβριος σεπτεμβριου σετ سبتمبر ספטמבר "
	"กันยายน",
	"october oktober octobre octubre ottobre outubro octombrie paz pazdziernik pazdziernika rijen rijna ekim "
	"lokakuu lokakuuta spalio spalis oktoober oktobris urria "
	"октябрь октября октомври жовтень жовтня октобар кастрычник οκτωβριος οκτωβριου اكتوبر אוקטובר ตุลาคม",
	"november novembre noviembre novembro noiembrie listopad listopada listopadu kasim marraskuu marraskuuta "
	"lapkricio lapkritis studeni studenoga novembris azaroa "
	"ноябрь ноября ноември листопад листопада новембар листапад νοεμβριος νοεμβριου نوفمبر נובמבר พฤศจิกายน",
	"december dezember decembre diciembre dicembre dezembro decembrie desember desembre desembris grudzien grudnia "
	"prosinec "
	"prosince aralik joulukuu joulukuuta gruodzio gruodis grd prosinac prosinca detsember decembris abendua dic "
	"декабрь декабря декември грудень грудня децембар снежань δεκεμβριος δεκεμβριου ديسمبر דצמבר ธันวาคม",
};

static const struct {
	const char *name;
	int16_t min;
} ZONES[] = {
	{"gmt", 0},
	{"utc", 0},
	{"ut", 0},
	{"z", 0},
	{"zulu", 0},
	{"wet", 0},
	{"wez", 0},
	{"etc", 0},
	{"uct", 0},
	{"est", -300},
	{"edt", -240},
	{"cst", -360},
	{"cdt", -300},
	{"mst", -420},
	{"mdt", -360},
	{"pst", -480},
	{"pdt", -420},
	{"ast", -240},
	{"adt", -180},
	{"nst", -210},
	{"ndt", -150},
	{"akst", -540},
	{"akdt", -480},
	{"hst", -600},
	{"hast", -600},
	{"brt", -180},
	{"brst", -120},
	{"art", -180},
	{"clt", -240},
	{"clst", -180},
	{"cot", -300},
	{"pet", -300},
	{"vet", -240},
	{"bst", 60},
	{"west", 60},
	{"wesz", 60},
	{"cet", 60},
	{"met", 60},
	{"mez", 60},
	{"cest", 120},
	{"mest", 120},
	{"mesz", 120},
	{"met dst", 120},
	{"eet", 120},
	{"eest", 180},
	{"oez", 120},
	{"oesz", 180},
	{"sast", 120},
	{"cat", 120},
	{"wat", 60},
	{"eat", 180},
	{"msk", 180},
	{"мск", 180},
	{"msd", 240},
	{"trt", 180},
	{"idt", 180},
	{"gst", 240},
	{"pkt", 300},
	{"ist", 330},
	{"npt", 345},
	{"ict", 420},
	{"wib", 420},
	{"wita", 480},
	{"wit", 540},
	{"hkt", 480},
	{"sgt", 480},
	{"myt", 480},
	{"pht", 480},
	{"awst", 480},
	{"jst", 540},
	{"kst", 540},
	{"acst", 570},
	{"acdt", 630},
	{"aest", 600},
	{"aedt", 660},
	{"nzst", 720},
	{"nzt", 720},
	{"nzdt", 780},
	{"hadt", -540},
	{"sst", -660},
	{"chst", 600},
	{"uyt", -180},
	{"pyt", -240},
	{"bot", -240},
	{"gft", -180},
	{"irst", 210},
	{"aft", 270},
	{"bdt", 360},
	{"mmt", 390},
	{"fjt", 720},
};

/*
 * Lower case without accents for Latin-1, Latin Extended-A, Greek and Cyrillic; other characters
 * are unchanged.
 */
uint32_t fw_date_fold(uint32_t c)
{
	/* U+00C0..U+017F; '*' keeps the character */
	static const char latin[] = "aaaaaaaceeeeiiiidnooooo*ouuuuytsaaaaaaaceeeeiiiidnooooo*ouuuuyty"
				    "aaaaaaccccccccddddeeeeeeeeeegggggggghhhhiiiiiiiiiiiijjkkk"
				    "llllllllllnnnnnnnnnoooooooorrrrrrssssssssttttttuuuuuuuuuuuuwwyyyzzzzzzs";
	static const struct {
		uint16_t from, to;
	} greek[] = {
		{0x386, 0x3b1},
		{0x388, 0x3b5},
		{0x389, 0x3b7},
		{0x38a, 0x3b9},
		{0x38c, 0x3bf},
		{0x38e, 0x3c5},
		{0x38f, 0x3c9},
		{0x390, 0x3b9},
		{0x3aa, 0x3b9},
		{0x3ab, 0x3c5},
		{0x3ac, 0x3b1},
		{0x3ad, 0x3b5},
		{0x3ae, 0x3b7},
		{0x3af, 0x3b9},
		{0x3b0, 0x3c5},
		{0x3ca, 0x3b9},
		{0x3cb, 0x3c5},
		{0x3cc, 0x3bf},
		{0x3cd, 0x3c5},
		{0x3ce, 0x3c9},
		{0x456, 0x438},
		{0x406, 0x438},
		{0x457, 0x438},
		{0x451, 0x435},
		{0x439, 0x438},
		{0x419, 0x438},
		{0x623, 0x627},
		{0x625, 0x627},
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

/*
 * "Febuary", "Januray", "Sepember": one edit from a long English name with the same first letter.
 */
static int month_misspelt(struct fw_str word)
{
	static const struct {
		const char *name;
		int month;
	} LONG[] = {{"january", 1}, {"february", 2}, {"august", 8}, {"september", 9}, {"october", 10}, {"november", 11},
		{"december", 12}};

	for (size_t i = 0; word.len >= 5 && word.len <= 10 && i < FW_N(LONG); i++) {
		if (word.p[0] == LONG[i].name[0] && fw_edit_distance(word, fw_str(LONG[i].name)) == 1)
			return LONG[i].month;
	}
	return 0;
}

/* 1..12, or 0. */
int fw_date_month(struct fw_str word)
{
	static const char *const DAYS[] = {"mon", "tue", "wed", "thu", "fri", "sat", "sun"};
	int english = word.len >= 3 ? fw_date_english_month(word.p) : 0, begun = 0;
	size_t n, letters = 0;

	/* English first */
	if (english && (word.len == 3 || fw_str_starts(fw_str(MONTH_WORDS[english - 1]), word)))
		return english;
	for (size_t i = 0; i < FW_N(DAYS); i++) { /* for speed: no month starts like these */
		if (fw_str_starts(word, fw_str(DAYS[i])))
			return 0;
	}
	for (size_t i = 0; i < word.len; i += n, letters++)
		(void)fw_utf8_get(word.p + i, word.len - i, &n);
	if (letters < 3)
		return 0;
	for (int m = 0; m < 12; m++) {
		struct fw_str names = fw_str(MONTH_WORDS[m]), rest = names;
		const char *p;

		for (; (p = fw_str_find(rest, word)) != NULL;
			rest = fw_str_sub(rest, (size_t)(p - rest.p) + 1, rest.len)) {
			if (p != names.p && p[-1] != ' ')
				continue;
			if (p[word.len] == ' ' || p[word.len] == '\0')
				return m + 1;
			begun = begun ? begun : m + 1;
		}
	}
	return begun ? begun : month_misspelt(word);
}

bool fw_date_zone(struct fw_str word, int *zone_min)
{
	for (size_t i = 0; i < FW_N(ZONES); i++) {
		if (fw_str_eq(word, fw_str(ZONES[i].name))) {
			*zone_min = ZONES[i].min;
			return true;
		}
	}
	/* military zones, with the signs of RFC 822; but "12:30 h" means hours */
	if (word.len == 1 && word.p[0] >= 'a' && word.p[0] <= 'y' && word.p[0] != 'j' && word.p[0] != 'h') {
		int c = word.p[0];

		*zone_min = c <= 'i' ? -60 * (c - 'a' + 1) : c <= 'm' ? -60 * (c - 'a') : 60 * (c - 'n' + 1);
		return true;
	}
	return false;
}

static bool words_has(struct fw_str word, const char *part)
{
	return fw_str_find(word, fw_str(part)) != NULL;
}

/* 1: am, 2: pm, 0: neither. */
int fw_date_half_day(struct fw_str w)
{
	if ((unsigned char)w.p[0] < 0x80)
		return fw_str_eq(w, FW_STR("am")) ? 1 : fw_str_eq(w, FW_STR("pm")) ? 2 : 0;
	if (fw_str_eq(w, FW_STR("πμ")) || words_has(w, "오전") || words_has(w, "上午") || words_has(w, "午前"))
		return 1;
	return fw_str_eq(w, FW_STR("μμ")) || words_has(w, "오후") || words_has(w, "下午") || words_has(w, "午後") ||
			words_has(w, "午后") ?
		2 :
		0;
}
