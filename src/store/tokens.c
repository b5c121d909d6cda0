/* SPDX-License-Identifier: ISC */
/*
 * Words for an index that is ours: letters and digits of any script in lower case, without accents; whatever is neither ends a word.
 *
 * The tables hold, for each character of their range, the first character of its canonical decomposition in lower case, or a space
 * for what is no letter or digit. A text is found by the very words that come out here, so what they are must not change without a
 * migration that builds the index anew.
 */
#include "store/tokens.h"

#include <uchar.h>

#include "base/utf8.h"

static const char16_t latin[] = /* U+00C0 to U+024F */
	u"aaaaaaæceeeeiiiiðnooooo øuuuuyþßaaaaaaæceeeeiiiiðnooooo øuuuuyþy"
	u"aaaaaaccccccccddđđeeeeeeeeeegggggggghhħħiiiiiiiiiıĳĳjjkkĸllllllŀ"
	u"ŀłłnnnnnnŉŋŋooooooœœrrrrrrssssssssttttŧŧuuuuuuuuuuuuwwyyyzzzzzzſ"
	u"ƀɓƃƃƅƅɔƈƈɖɗƌƌƍǝəɛƒƒɠɣƕɩɨƙƙƚƛɯɲƞɵooƣƣƥƥʀƨƨʃƪƫƭƭʈuuʊʋƴƴƶƶʒƹƹƺƻƽƽƾƿ"
	u"ǀǁǂǃǆǆǆǉǉǉǌǌǌaaiioouuuuuuuuuuǝaaaaææǥǥggkkooooʒʒjǳǳǳggƕƿnnaaææøø"
	u"aaaaeeeeiiiioooorrrruuuussttȝȝhhƞȡȣȣȥȥaaeeooooooooyyȴȵȶȷȸȹⱥȼȼƚⱦȿ"
	u"ɀɂɂƀʉʌɇɇɉɉɋɋɍɍɏɏ";
static const char16_t greek_cyrillic[] = /* U+0370 to U+052F */
	u"ͱͱͳͳʹ ͷͷ  ͺͻͼͽ ϳ      α εηι ο υωιαβγδεζηθικλμνξοπρ στυφχψωιυαεηι"
	u"υαβγδεζηθικλμνξοπρσστυφχψωιυουωϗϐϑϒϒϒϕϖϗϙϙϛϛϝϝϟϟϡϡϣϣϥϥϧϧϩϩϫϫϭϭϯϯ"
	u"ϰϱϲϳθϵ ϸϸϲϻϻϼͻͼͽееђгєѕііјљњћкиуџабвгдежзииклмнопрстуфхцчшщъыьэюя"
	u"абвгдежзииклмнопрстуфхцчшщъыьэюяееђгєѕііјљњћкиуџѡѡѣѣѥѥѧѧѩѩѫѫѭѭѯѯ"
	u"ѱѱѳѳѵѵѵѵѹѹѻѻѽѽѿѿҁҁ        ҋҋҍҍҏҏґґғғҕҕҗҗҙҙққҝҝҟҟҡҡңңҥҥҧҧҩҩҫҫҭҭүү"
	u"ұұҳҳҵҵҷҷҹҹһһҽҽҿҿӏжжӄӄӆӆӈӈӊӊӌӌӎӎӏааааӕӕееәәәәжжззӡӡииииооөөөөээуу"
	u"ууууччӷӷыыӻӻӽӽӿӿԁԁԃԃԅԅԇԇԉԉԋԋԍԍԏԏԑԑԓԓԕԕԗԗԙԙԛԛԝԝԟԟԡԡԣԣԥԥԧԧԩԩԫԫԭԭԯԯ";
static const char16_t latin_greek_more[] = /* U+1E00 to U+1FFF */
	u"aabbbbbbccddddddddddeeeeeeeeeeffgghhhhhhhhhhiiiikkkkkkllllllllmm"
	u"mmmmnnnnnnnnoooooooopppprrrrrrrrssssssssssttttttttuuuuuuuuuuvvvv"
	u"wwwwwwwwwwxxxxyyzzzzzzhtwyẚſẜẝßẟaaaaaaaaaaaaaaaaaaaaaaaaeeeeeeee"
	u"eeeeeeeeiiiioooooooooooooooooooooooouuuuuuuuuuuuuuyyyyyyyyỻỻỽỽỿỿ"
	u"ααααααααααααααααεεεεεε  εεεεεε  ηηηηηηηηηηηηηηηηιιιιιιιιιιιιιιιι"
	u"οοοοοο  οοοοοο  υυυυυυυυ υ υ υ υωωωωωωωωωωωωωωωωααεεηηιιοουυωω  "
	u"ααααααααααααααααηηηηηηηηηηηηηηηηωωωωωωωωωωωωωωωωααααα ααααααα ι "
	u"  ηηη ηηεεηηη   ιιιι  ιιιιιι    υυυυρρυυυυυυρ     ωωω ωωοοωωω   ";

struct range {
	uint32_t first, last;
};

static bool is_in(uint32_t c, const struct range *r, size_t n)
{
	size_t lo = 0, hi = n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (c > r[mid].last)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < n && c >= r[lo].first;
}

/* Accents and points that are characters of their own, and what is not seen: no part of a word, and no end of it. */
static bool is_mark(uint32_t c)
{
	static const struct range marks[] = {
		{0xad, 0xad}, {0x300, 0x36f}, {0x483, 0x489}, {0x591, 0x5bd}, {0x5bf, 0x5bf}, {0x5c1, 0x5c2}, {0x5c4, 0x5c5}, {0x5c7, 0x5c7},
		{0x610, 0x61a}, {0x640, 0x640}, {0x64b, 0x65f}, {0x670, 0x670}, {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x200b, 0x200f},
		{0x2060, 0x2064}, {0x20d0, 0x20ff}, {0x3099, 0x309a}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xfeff, 0xfeff},
		{0xe0100, 0xe01ef},
	};

	return is_in(c, marks, FW_N(marks));
}

/* Punctuation, symbols and spaces beyond the tables. */
static bool is_gap(uint32_t c)
{
	static const struct range gaps[] = {
		{0x80, 0xa9}, {0xab, 0xac}, {0xae, 0xb1}, {0xb4, 0xb4}, {0xb6, 0xb8}, {0xbb, 0xbb}, {0xbf, 0xbf}, {0x2c2, 0x2c5}, {0x2d2, 0x2df},
		{0x55a, 0x55f}, {0x589, 0x58a}, {0x5be, 0x5be}, {0x5c0, 0x5c0}, {0x5c3, 0x5c3}, {0x5c6, 0x5c6}, {0x5f3, 0x5f4}, {0x600, 0x60f},
		{0x61b, 0x61f}, {0x66a, 0x66d}, {0x6d4, 0x6d4}, {0x700, 0x70f}, {0x964, 0x965}, {0x970, 0x970}, {0xe2f, 0xe2f},
		{0xe3f, 0xe3f}, {0xe4f, 0xe4f}, {0xe5a, 0xe5b}, {0x104a, 0x104f}, {0x10fb, 0x10fb}, {0x1361, 0x1368}, {0x166d, 0x166e},
		{0x1680, 0x1680}, {0x17d4, 0x17d6}, {0x17d8, 0x17da}, {0x1800, 0x180e}, {0x2000, 0x206f}, {0x207a, 0x207e}, {0x208a, 0x208e},
		{0x20a0, 0x20cf}, {0x2190, 0x245f}, {0x249c, 0x24e9}, {0x2500, 0x2775}, {0x2794, 0x2bff}, {0x2e00, 0x3004}, {0x3008, 0x3020},
		{0x3030, 0x3030}, {0x303d, 0x303f}, {0x309b, 0x309c}, {0x30a0, 0x30a0}, {0x30fb, 0x30fb}, {0x3190, 0x3191}, {0x3200, 0x321f},
		{0x322a, 0x3247}, {0xa4a0, 0xa4cf}, {0xd800, 0xf8ff}, {0xfd3e, 0xfd3f}, {0xfe10, 0xfe6f}, {0xff00, 0xff0f}, {0xff1a, 0xff20},
		{0xff3b, 0xff40}, {0xff5b, 0xff65}, {0xffe0, 0xffff}, {0x1d000, 0x1d1ff}, {0x1f000, 0x1faff}, {0xe0000, 0xe007f}, {0xf0000, 0x10ffff},
	};

	return is_in(c, gaps, FW_N(gaps));
}

/* What a character is in an index; ' ': it ends a word; 0: it is passed over. */
static uint32_t fold(uint32_t c)
{
	if (c < 0x80)
		return fw_is_alnum((int)c) ? (uint32_t)fw_lower((int)c) : ' ';
	if (is_mark(c))
		return 0;
	if (c >= 0xc0 && c < 0x250)
		return latin[c - 0xc0];
	if (c >= 0x370 && c < 0x530)
		return greek_cyrillic[c - 0x370];
	if (c >= 0x1e00 && c < 0x2000)
		return latin_greek_more[c - 0x1e00];
	if (c >= 0xff10 && c <= 0xff5a && !is_gap(c))
		return fold(c - 0xfee0); /* the wide forms of ASCII */
	return is_gap(c) ? ' ' : c;
}

bool fw_store_token_next(struct fw_str *rest, struct fw_store_token *out)
{
	const char *p = rest->p, *end = p ? p + rest->len : p;
	bool cut = false;

	out->len = 0;
	while (p < end) {
		size_t n = 1;
		uint32_t c = (unsigned char)*p < 0x80 ? (unsigned char)*p : fw_utf8_get(p, (size_t)(end - p), &n);
		uint32_t f = fold(c);

		if (f == ' ' && (out->len || cut))
			break;
		p += n;
		if (!f || f == ' ')
			continue;
		cut = cut || out->len + 4 > sizeof(out->text);
		if (!cut)
			out->len += fw_utf8_put(out->text + out->len, f);
	}
	*rest = (struct fw_str){p, (size_t)(end - p)};
	return out->len > 0;
}
