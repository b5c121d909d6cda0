/* SPDX-License-Identifier: ISC */
/*
 * Finds namespaces by URI, including near matches, or by prefix if it is not declared.
 *
 * Feeds write the same URI with different schemes, case, "www." or endings. All of these are folded
 * before one exact comparison; the table holds folded forms only. Runs once per declaration, never
 * per element.
 */
#include "base/str.h"
#include "parse/xml/ns.h"

#define FOLDED_MAX 80 /* longer than any row */

struct ns_row {
	const char *text;
	enum fw_ns ns;
};

/* no scheme, no "www.", lower case, no trailing '/' or '#' */
static const struct ns_row URIS[] = {
	{"w3.org/2005/atom", FW_NS_ATOM10},
	{"purl.org/atom/ns", FW_NS_ATOM03},
	{"purl.org/echo", FW_NS_ATOM03}, /* Atom's names before it was called Atom */
	{"purl.org/pie", FW_NS_ATOM03},
	{"example.com/necho", FW_NS_ATOM03},
	{"example.com/newformat", FW_NS_ATOM03},
	{"uri/of/echo/namespace", FW_NS_ATOM03},
	{"w3.org/1999/02/22-rdf-syntax-ns", FW_NS_RDF},
	{"purl.org/rss/1.0", FW_NS_RSS10},
	{"my.netscape.com/rdf/simple/0.9", FW_NS_RSS090},
	{"channel.netscape.com/rdf/simple/0.9", FW_NS_RSS090},
	{"purl.org/net/rss1.1", FW_NS_RSS11},
	{"backend.userland.com/rss2", FW_NS_RSS20},
	{"backend.userland.com/rss20", FW_NS_RSS20},
	{"backend.userland.com/rss", FW_NS_RSS20},
	{"backend.userland.com/rss091", FW_NS_RSS20},
	{"backend.userland.com/rss092", FW_NS_RSS20},
	{"blogs.law.harvard.edu/tech/rss", FW_NS_RSS20},
	{"cyber.law.harvard.edu/rss", FW_NS_RSS20},
	{"cyber.law.harvard.edu/rss/rss.html", FW_NS_RSS20},
	{"microsoft.com/standards/channels.dtd", FW_NS_CDF},
	{"w3.org/tr/note-cdfsubmit.html", FW_NS_CDF},
	{"w3.org/1999/xhtml", FW_NS_XHTML},
	{"purl.org/rss/1.0/modules/content", FW_NS_CONTENT},
	{"purl.org/dc/elements/1.1", FW_NS_DC},
	{"purl.org/dc/elements/1.0", FW_NS_DC},
	{"purl.org/dc/terms", FW_NS_DCTERMS},
	{"purl.org/rss/1.0/modules/syndication", FW_NS_SY},
	{"purl.org/rss/1.0/modules/slash", FW_NS_SLASH},
	{"wellformedweb.org/commentapi", FW_NS_WFW},
	{"purl.org/syndication/thread/1.0", FW_NS_THR},
	{"search.yahoo.com/mrss", FW_NS_MEDIA},
	{"video.search.yahoo.com/mrss", FW_NS_MEDIA},
	{"itunes.com/dtds/podcast-1.0.dtd", FW_NS_ITUNES},
	{"example.com/dtds/podcast-1.0.dtd", FW_NS_ITUNES},
	{"podcastindex.org/namespace/1.0", FW_NS_PODCAST},
	{"github.com/podcastindex-org/podcast-namespace/blob/main/docs/1.0.md", FW_NS_PODCAST},
	{"georss.org/georss", FW_NS_GEORSS},
	{"georss.org/georss/10", FW_NS_GEORSS},
	{"georss.org", FW_NS_GEORSS},
	{"opengis.net/gml", FW_NS_GML},
	{"opengis.net/gml/3.2", FW_NS_GML},
	{"w3.org/2003/01/geo/wgs84_pos", FW_NS_GEO},
	{"w3.org/2003/01/geo", FW_NS_GEO},
	{"podlove.org/simple-chapters", FW_NS_PSC},
	{"rssnamespace.org/feedburner/ext/1.0", FW_NS_FEEDBURNER},
	{"purl.org/syndication/history/1.0", FW_NS_FH},
	{"web.resource.org/cc", FW_NS_CC},
	{"creativecommons.org/ns", FW_NS_CC},
	{"backend.userland.com/creativecommonsrssmodule", FW_NS_CREATIVECOMMONS},
	{"cyber.law.harvard.edu/rss/creativecommonsrssmodule.html", FW_NS_CREATIVECOMMONS},
	{"postneo.com/icbm", FW_NS_ICBM},
	{"webns.net/mvcb", FW_NS_ADMIN},
	{"google.com/schemas/play-podcasts/1.0", FW_NS_GOOGLEPLAY},
	{"google.com/schemas/play-podcasts/1.0/play-podcasts.xsd", FW_NS_GOOGLEPLAY},
	{"source.scripting.com", FW_NS_SOURCE},
	{"source.smallpict.com/2014/07/12/thesourcenamespace.html", FW_NS_SOURCE},
	{"a9.com/-/spec/opensearch/1.1", FW_NS_OPENSEARCH},
	{"a9.com/-/spec/opensearchrss/1.0", FW_NS_OPENSEARCH},
	{"w3.org/2007/app", FW_NS_APP},
	{"purl.org/atom/app", FW_NS_APP},
	{"w3.org/2000/svg", FW_NS_SVG},
	{"w3.org/1998/math/mathml", FW_NS_MATHML},
	{"purl.org/rss/modules/aggregation", FW_NS_AG},
	{"purl.org/rss/1.0/modules/aggregation", FW_NS_AG},
	{"purl.org/rss/1.0/modules/annotate", FW_NS_ANNOTATE},
	{"w3.org/1999/xlink", FW_NS_XLINK},
	{"madskills.com/public/xml/rss/module/pingback", FW_NS_PINGBACK},
	{"madskills.com/public/xml/rss/module/trackback", FW_NS_TRACKBACK},
	{"backend.userland.com/blogchannelmodule", FW_NS_BLOGCHANNEL},
	{"purl.org/rss/1.0/modules/taxonomy", FW_NS_TAXO},
	{"xmlns.com/foaf/0.1", FW_NS_FOAF},
	{"purl.oclc.org/net/rss_2.0/enc", FW_NS_ENC},
	{"prismstandard.org/namespaces/basic/2.0", FW_NS_PRISM},
	{"prismstandard.org/namespaces/basic/2.1", FW_NS_PRISM},
	{"prismstandard.org/namespaces/basic/3.0", FW_NS_PRISM},
	{"prismstandard.org/namespaces/1.2/basic", FW_NS_PRISM},
	{"prismstandard.org/namespaces/prism/1.2", FW_NS_PRISM},
	{"purl.org/atompub/tombstones/1.0", FW_NS_TOMBSTONES},
};

static const struct ns_row PREFIXES[] = {
	{"a10", FW_NS_ATOM10},
	{"admin", FW_NS_ADMIN},
	{"ag", FW_NS_AG},
	{"annotate", FW_NS_ANNOTATE},
	{"app", FW_NS_APP},
	{"at", FW_NS_TOMBSTONES},
	{"atom", FW_NS_ATOM10},
	{"atom10", FW_NS_ATOM10},
	{"atom03", FW_NS_ATOM03},
	{"blogchannel", FW_NS_BLOGCHANNEL},
	{"cc", FW_NS_CC},
	{"content", FW_NS_CONTENT},
	{"creativecommons", FW_NS_CREATIVECOMMONS},
	{"dc", FW_NS_DC},
	{"dct", FW_NS_DCTERMS},
	{"dcterms", FW_NS_DCTERMS},
	{"feedburner", FW_NS_FEEDBURNER},
	{"fh", FW_NS_FH},
	{"foaf", FW_NS_FOAF},
	{"geo", FW_NS_GEO},
	{"georss", FW_NS_GEORSS},
	{"gml", FW_NS_GML},
	{"googleplay", FW_NS_GOOGLEPLAY},
	{"html", FW_NS_XHTML},
	{"icbm", FW_NS_ICBM},
	{"itunes", FW_NS_ITUNES},
	{"math", FW_NS_MATHML},
	{"mathml", FW_NS_MATHML},
	{"media", FW_NS_MEDIA},
	{"opensearch", FW_NS_OPENSEARCH},
	{"pingback", FW_NS_PINGBACK},
	{"podcast", FW_NS_PODCAST},
	{"prism", FW_NS_PRISM},
	{"psc", FW_NS_PSC},
	{"rdf", FW_NS_RDF},
	{"slash", FW_NS_SLASH},
	{"source", FW_NS_SOURCE},
	{"svg", FW_NS_SVG},
	{"sy", FW_NS_SY},
	{"syn", FW_NS_SY},
	{"taxo", FW_NS_TAXO},
	{"thr", FW_NS_THR},
	{"trackback", FW_NS_TRACKBACK},
	{"wfw", FW_NS_WFW},
	{"xhtml", FW_NS_XHTML},
	{"xlink", FW_NS_XLINK},
};

static enum fw_ns ns_row_find(const struct ns_row *rows, size_t n, const char *folded)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(rows[i].text, folded) == 0)
			return rows[i].ns;
	}
	return FW_NS_UNKNOWN;
}

/* Lower case into dst. False if it does not fit, so it cannot be in a table. */
static bool ns_fold(char dst[FOLDED_MAX], struct fw_str s)
{
	if (s.len >= FOLDED_MAX)
		return false;
	for (size_t i = 0; i < s.len; i++)
		dst[i] = (char)fw_lower((unsigned char)s.p[i]);
	dst[s.len] = '\0';
	return true;
}

enum fw_ns fw_ns_find(struct fw_str uri)
{
	char folded[FOLDED_MAX];

	uri = fw_str_trim(uri);
	if (uri.len == 0)
		return FW_NS_NONE;
	if (fw_str_istarts(uri, FW_STR("http://")))
		uri = fw_str_sub(uri, 7, uri.len);
	else if (fw_str_istarts(uri, FW_STR("https://")))
		uri = fw_str_sub(uri, 8, uri.len);
	if (fw_str_istarts(uri, FW_STR("www.")))
		uri = fw_str_sub(uri, 4, uri.len);
	while (uri.len && (uri.p[uri.len - 1] == '/' || uri.p[uri.len - 1] == '#'))
		uri.len--;
	return ns_fold(folded, uri) ? ns_row_find(URIS, FW_N(URIS), folded) : FW_NS_UNKNOWN;
}

enum fw_ns fw_ns_guess(struct fw_str prefix)
{
	char folded[FOLDED_MAX];

	return ns_fold(folded, prefix) ? ns_row_find(PREFIXES, FW_N(PREFIXES), folded) : FW_NS_UNKNOWN;
}
