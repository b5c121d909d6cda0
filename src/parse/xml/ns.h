/* SPDX-License-Identifier: ISC */
/* Finds namespaces by URI, or by prefix if the document does not declare it. */
#ifndef FW_PARSE_XML_NS_H
#define FW_PARSE_XML_NS_H

#include "feedwheel/types.h"

/*
 * Namespaces as small numbers. 0: none; unknown ones are identified by their URI. See fw_ns_find().
 */
enum fw_ns {
	FW_NS_NONE,
	FW_NS_XML,
	FW_NS_XMLNS,
	FW_NS_UNKNOWN,
	FW_NS_ATOM10,
	FW_NS_ATOM03,
	FW_NS_RDF,
	FW_NS_RSS10,
	FW_NS_RSS090,
	FW_NS_RSS11,
	FW_NS_RSS20,
	FW_NS_CDF,
	FW_NS_XHTML,
	FW_NS_CONTENT,
	FW_NS_DC,
	FW_NS_DCTERMS,
	FW_NS_SY,
	FW_NS_SLASH,
	FW_NS_WFW,
	FW_NS_THR,
	FW_NS_MEDIA,
	FW_NS_ITUNES,
	FW_NS_PODCAST,
	FW_NS_GEORSS,
	FW_NS_GML,
	FW_NS_GEO,
	FW_NS_PSC,
	FW_NS_FEEDBURNER,
	FW_NS_FH,
	FW_NS_CC,
	FW_NS_CREATIVECOMMONS,
	FW_NS_ICBM,
	FW_NS_ADMIN,
	FW_NS_GOOGLEPLAY,
	FW_NS_SOURCE,
	FW_NS_OPENSEARCH,
	FW_NS_APP,
	FW_NS_SVG,
	FW_NS_MATHML,
	FW_NS_AG,
	FW_NS_ANNOTATE,
	FW_NS_XLINK,
	FW_NS_PINGBACK,
	FW_NS_TRACKBACK,
	FW_NS_BLOGCHANNEL,
	FW_NS_TAXO,
	FW_NS_FOAF,
	FW_NS_ENC,
	FW_NS_PRISM,
	FW_NS_TOMBSTONES,
	FW_NS_COUNT
};

/* Exact match first, then near matches: case, trailing slash or #, http or https, www. */
enum fw_ns fw_ns_find(struct fw_str uri);
/*
 * The likely namespace of an undeclared prefix ("dc", "media", "itunes" ...); FW_NS_UNKNOWN: no
 * guess.
 */
enum fw_ns fw_ns_guess(struct fw_str prefix);

#endif
