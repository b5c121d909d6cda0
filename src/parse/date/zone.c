/* SPDX-License-Identifier: ISC */
/*
 * Zones named by a place ("Europe/Berlin", "US/Eastern", "EST5EDT", "ET"), or in Windows' words
 * ("W. Europe Standard Time"). Their UTC offset depends on the date.
 *
 * The table has the places that feeds name, with current rules: European Union since 1996, North
 * America since 1987 (as changed in 2007), Australia and New Zealand since 2008. Places that
 * abolished summer time have none here, even for earlier years. Unknown places are read as UTC,
 * like any unknown zone.
 */
#include "base/clock.h"
#include "parse/date/parts.h"

/* Folded, without the part before the '/'; words are joined by '_'. */
static const struct {
	int16_t min;
	uint8_t rule;
	const char *places;
} ZONES[] = {
	{-600, ZONE_FIXED, "honolulu hawaii tahiti hawaiian"},
	{-540, ZONE_AMERICA, "anchorage juneau alaska alaskan"},
	{-480, ZONE_AMERICA, "los_angeles vancouver tijuana pacific pst8pdt pt"},
	{-420, ZONE_AMERICA, "denver boise edmonton mountain mst7mdt mt"},
	{-420, ZONE_FIXED, "phoenix arizona hermosillo whitehorse us_mountain"},
	{-360, ZONE_AMERICA, "chicago winnipeg central cst6cdt ct"},
	{-360, ZONE_FIXED,
		"mexico_city guatemala costa_rica el_salvador managua tegucigalpa regina monterrey "
		"central_america canada_central"},
	{-300, ZONE_AMERICA, "new_york detroit toronto montreal indianapolis nassau eastern est5edt et us_eastern"},
	{-300, ZONE_FIXED, "bogota lima panama jamaica guayaquil cancun sa_pacific"},
	{-240, ZONE_AMERICA, "halifax bermuda moncton atlantic at"},
	{-240, ZONE_FIXED, "puerto_rico caracas la_paz manaus santo_domingo martinique guadeloupe sa_western"},
	{-210, ZONE_AMERICA, "st_johns newfoundland"},
	{-180, ZONE_FIXED,
		"sao_paulo buenos_aires montevideo bahia fortaleza recife e_south_america sa_eastern "
		"argentina brasilia"},
	{-60, ZONE_EUROPE, "azores"},
	{0, ZONE_EUROPE,
		"london lisbon dublin belfast jersey guernsey isle_of_man canary madeira faroe british "
		"western_european"},
	{0, ZONE_FIXED, "reykjavik abidjan accra dakar greenwich universal coordinated_universal greenwich_mean"},
	{60, ZONE_EUROPE,
		"berlin paris madrid rome vienna amsterdam brussels copenhagen oslo stockholm zurich prague "
		"warsaw budapest "
		"belgrade zagreb ljubljana sarajevo skopje bratislava luxembourg monaco malta andorra vaduz tirane "
		"gibraltar podgorica central_european middle_european w_europe central_europe romance"},
	{60, ZONE_FIXED, "lagos algiers tunis casablanca kinshasa luanda w_central_africa"},
	{120, ZONE_EUROPE,
		"athens helsinki sofia bucharest tallinn riga vilnius kiev kyiv nicosia chisinau beirut "
		"eastern_european e_europe fle gtb"},
	{120, ZONE_FIXED, "johannesburg kaliningrad tripoli harare lusaka maputo windhoek south_africa"},
	{180, ZONE_FIXED,
		"moscow istanbul minsk riyadh baghdad kuwait qatar nairobi addis_ababa kampala russian "
		"turkey arab arabic e_africa"},
	{210, ZONE_FIXED, "tehran"},
	{240, ZONE_FIXED, "dubai baku tbilisi yerevan samara muscat mauritius reunion arabian"},
	{300, ZONE_FIXED, "karachi tashkent yekaterinburg almaty maldives"},
	{330, ZONE_FIXED, "kolkata calcutta colombo india"},
	{345, ZONE_FIXED, "kathmandu katmandu"},
	{360, ZONE_FIXED, "dhaka omsk"},
	{390, ZONE_FIXED, "yangon rangoon"},
	{420, ZONE_FIXED, "bangkok jakarta ho_chi_minh saigon novosibirsk krasnoyarsk se_asia"},
	{480, ZONE_FIXED,
		"shanghai hong_kong singapore taipei manila kuala_lumpur perth irkutsk macau urumqi china "
		"w_australia philippine"},
	{540, ZONE_FIXED, "tokyo seoul pyongyang yakutsk japan korea"},
	{570, ZONE_FIXED, "darwin aus_central"},
	{570, ZONE_AUSTRALIA, "adelaide cen_australia"},
	{600, ZONE_FIXED, "brisbane vladivostok guam port_moresby e_australia"},
	{600, ZONE_AUSTRALIA, "sydney melbourne hobart canberra aus_eastern tasmania"},
	{720, ZONE_FIXED, "fiji kamchatka"},
	{720, ZONE_NEW_ZEALAND, "auckland new_zealand"},
};

bool fw_date_place(struct fw_str place, int *zone_min, enum zone_rule *rule)
{
	struct fw_str name, rest;
	size_t i;

	for (i = 0; i < FW_N(ZONES); i++) {
		for (rest = fw_str(ZONES[i].places); rest.p;) {
			name = fw_str_split(rest, ' ', &rest);
			if (!fw_str_eq(name, place))
				continue;
			*zone_min = ZONES[i].min;
			*rule = (enum zone_rule)ZONES[i].rule;
			return true;
		}
	}
	return false;
}

/* The nth Sunday of a month (n from 1; 0: the last) at that minute of the day. */
static int64_t zone_sunday(int year, int month, int nth, int minute)
{
	struct fw_civil c;
	int day;

	fw_civil_from_ms(fw_time_ms(year, month, nth ? 1 : fw_month_days(year, month), 0, 0, 0, 0), &c);
	day = nth ? 1 + (7 - c.weekday) % 7 + 7 * (nth - 1) : fw_month_days(year, month) - c.weekday;
	return fw_time_ms(year, month, day, 0, minute, 0, 0);
}

/* Is the clock time local_ms in summer time? A time that occurs twice in autumn means the first. */
bool fw_date_summer(enum zone_rule rule, int zone_min, int year, int64_t local_ms)
{
	int64_t from, to;

	switch (rule) {
	case ZONE_EUROPE: /* everywhere at 1:00 UTC */
		from = zone_sunday(year, 3, 0, 60 + zone_min);
		to = zone_sunday(year, 10, 0, 120 + zone_min);
		break;
	case ZONE_AMERICA:
		from = year < 2007 ? zone_sunday(year, 4, 1, 120) : zone_sunday(year, 3, 2, 120);
		to = year < 2007 ? zone_sunday(year, 10, 0, 120) : zone_sunday(year, 11, 1, 120);
		break;
	case ZONE_AUSTRALIA:
		from = zone_sunday(year, 10, 1, 120);
		to = zone_sunday(year, 4, 1, 180);
		break;
	case ZONE_NEW_ZEALAND:
		from = zone_sunday(year, 9, 0, 120);
		to = zone_sunday(year, 4, 1, 180);
		break;
	default:
		return false;
	}
	return from < to ? local_ms >= from && local_ms < to : local_ms >= from || local_ms < to;
}
