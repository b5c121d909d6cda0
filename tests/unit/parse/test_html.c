/* SPDX-License-Identifier: ISC */
/*
 * HTML: detecting markup, plain text, sanitising (WEB-01, WEB-02, WEB-03), the feeds of a page,
 * Link headers.
 */
#include <check.h>
#include <gumbo.h>
#include <stdlib.h>
#include <time.h>

#include "base/str.h"
#include "base/utf8.h"
#include "parse/charset/entity.h"
#include "parse/discover.h"
#include "parse/html/embed.h"
#include "parse/html/link_header.h"
#include "parse/html/sanitize.h"
#include "parse/html/text.h"
#include "../../suite.h"

#define BASE FW_STR("http://example.org/dir/page")

static char *sanitize(struct fw_str html, unsigned flags)
{
	struct fw_buf out = FW_BUF_INIT(0);
	struct fw_err err;

	ck_assert_msg(fw_html_sanitize(html, BASE, flags, &out, &err) == 0, "%s", err.text);
	fw_buf_add(&out, "", 0);
	return fw_buf_take(&out, NULL);
}

/* Sanitises the input, compares the result, and sanitises that again: it must not change. */
static void check_sanitized(const char *in, const char *want, unsigned flags)
{
	char *once = sanitize(fw_str(in), flags), *twice = sanitize(fw_str(once), flags);

	ck_assert_msg(strcmp(once, want) == 0, "%s\n  gave %s\n  want %s", in, once, want);
	ck_assert_msg(strcmp(once, twice) == 0, "%s\n  once  %s\n  twice %s", in, once, twice);
	free(once);
	free(twice);
}

START_TEST(elements_sorted_and_found)
{
	for (int i = 1; i < FW_EL_COUNT; i++) {
		ck_assert_int_eq(fw_el_find(fw_str(fw_el_name((enum fw_el)i))), i);
		ck_assert_msg(i == 1 || strcmp(fw_el_name((enum fw_el)(i - 1)), fw_el_name((enum fw_el)i)) < 0, "%s",
			fw_el_name((enum fw_el)i));
	}
	ck_assert_int_eq(fw_el_find(FW_STR("BlockQuote")), FW_E_BLOCKQUOTE);
	ck_assert_int_eq(fw_el_find(FW_STR("blockquotes")), FW_EL_NONE);
	ck_assert_int_eq(fw_el_find(FW_STR("")), FW_EL_NONE);
	ck_assert_int_eq(fw_el_find(FW_STR("averylongelementname")), FW_EL_NONE);
}
END_TEST

START_TEST(markup_or_not)
{
	static const char *const YES[] = {"<b>x</b>", "a<br>b", "x</p>", "a &amp; b", "&#8217;", "&#x2019;",
		"<!-- c -->x", "<IMG SRC=x>", "a <em\nclass=x>", "&hellip;", "<a href='x'>y"};
	static const char *const NO[] = {"", "plain", "a < b", "a<b", "x << y >> z", "AT&T", "a & b", "&nosuchthing;",
		"vector<int>", "<3", "&;", "&#;", "&#x;", "5 <", "<", "&", "a <unknown> b", "<b unfinished"};

	for (size_t i = 0; i < FW_N(YES); i++)
		ck_assert_msg(fw_html_has_markup(fw_str(YES[i])), "%s", YES[i]);
	for (size_t i = 0; i < FW_N(NO); i++)
		ck_assert_msg(!fw_html_has_markup(fw_str(NO[i])), "%s", NO[i]);
	ck_assert(!fw_html_has_markup(FW_STR_NONE));
}
END_TEST

START_TEST(as_plain_text)
{
	static const struct {
		const char *in, *want;
	} T[] = {
		{"plain", "plain"},
		{"  two  words\n", "two words"},
		{"<b>bold</b> and <i>it</i>alic", "bold and italic"},
		{"a<br>b", "a b"},
		{"<p>one</p><p>two</p>", "one two"},
		{"one<div>two</div>three", "one two three"},
		{"a &amp; b &lt;c&gt; &#8217;", "a & b <c> ’"},
		{"&amp;amp;", "&amp;"},
		{"a < b", "a < b"},
		{"x<script>alert('<b>')</script>y", "xy"},
		{"x<style>p {}</style>y", "xy"},
		{"x<!-- <b> -- >c -->y", "xy"},
		{"sa<!-- -- nonwhitespace >fe<script>alert(1);</script>", "sa"},
		{"safe<!--", "safe"},
		{"a<!-->b", "ab"},
		{"a<!--->b", "ab"},
		{"<a title='>'>x</a>", "x"},
		{"<a title=\"a > b\" href=x>x</a>", "x"},
		{"<svg><text>t</text></svg>x", "x"},
		{"<svg/>x", "x"},
		{"<textarea>a &amp; <b></textarea>", "a & <b>"},
		{"x<br", "x"},
		{"<b", ""},
		{"</", "</"},
		{"<table><tr><td>1</td><td>2</td></tr></table>", "1 2"},
		{"<li>1<li>2", "1 2"},
		{"&nbsp;x", "\xc2\xa0x"},
		{"<select><option>1<option>2</select>x", "x"},
		{"<?php echo 1 ?>x", "x"},
		{"", ""},
		{"<xmp><b>&amp;</xmp>", "<b>&amp;"},
		{"a<iframe>x</iframe>b", "a b"},
		{"<title>t</title>x", "x"},
		{"&nGt;&nGt;&nGt;", "≫⃒≫⃒≫⃒"},
	};
	struct fw_arena a;

	fw_arena_init(&a, 0);
	for (size_t i = 0; i < FW_N(T); i++) {
		struct fw_str got = fw_html_text(&a, fw_str(T[i].in));

		ck_assert_msg(fw_str_eq(got, fw_str(T[i].want)), "%s: \"%.*s\", want \"%s\"", T[i].in, FW_STR_ARG(got),
			T[i].want);
	}
	ck_assert_ptr_null(fw_html_text(&a, FW_STR_NONE).p);
	fw_arena_finish(&a);
}
END_TEST

START_TEST(kept_html) /* WEB-01 */
{
	static const struct {
		const char *in, *want;
	} T[] = {
		{"", ""},
		{"text", "text"},
		{"a < b & c > d", "a &lt; b &amp; c &gt; d"},
		{"&nbsp;&eacute;&#8217;", "\xc2\xa0\xc3\xa9\xe2\x80\x99"},
		{"<P>One<p>Two", "<p>One</p><p>Two</p>"},
		{"<ul><li>1<li>2</ul>", "<ul><li>1</li><li>2</li></ul>"},
		{"<dl><dt>a<dd>b<dt>c</dl>", "<dl><dt>a</dt><dd>b</dd><dt>c</dt></dl>"},
		{"<table><tr><td>1<td>2<tr><th>3</table>",
			"<table><tbody><tr><td>1</td><td>2</td></tr><tr><th>3</th></tr></tbody></table>"},
		{"<table><col width=5><tr><td>x</table>",
			"<table><colgroup><col width=\"5\"></colgroup><tbody><tr><td>x</td></tr></tbody></table>"},
		{"<b>x", "<b>x</b>"},
		{"<b><i>x</b>y</i>", "<b><i>x</i></b><i>y</i>"},
		{"<p><b>x<p>y", "<p><b>x</b></p><p><b>y</b></p>"},
		{"<b><p>x</b></p>", "<b></b><p><b>x</b></p>"},
		{"<div><span>x</div>y", "<div><span>x</span></div>y"},
		{"x<br/>y</br>z", "x<br>y<br>z"},
		{"</p></div>x", "x"},
		{"<td>x</td>", "x"},
		{"<h1>a<h2>b", "<h1>a</h1><h2>b</h2>"},
		{"<table>text<tr><td>x</table>", "text<table><tbody><tr><td>x</td></tr></tbody></table>"},
		{"<a href=x>1<a href=y>2</a>",
			"<a href=\"http://example.org/dir/x\" rel=\"noopener noreferrer\">1</a>"
			"<a href=\"http://example.org/dir/y\" rel=\"noopener noreferrer\">2</a>"},
		{"<a href='/a?b=1&copy=2&amp;c=3'>x</a>",
			"<a href=\"http://example.org/a?b=1&amp;copy=2&amp;c=3\" rel=\"noopener noreferrer\">x</a>"},
		{"<img src=i.png alt=\"a &quot;b&quot; <c>\" width=5 height=10%>",
			"<img src=\"http://example.org/dir/i.png\" alt=\"a &quot;b&quot; &lt;c&gt;\""
			" width=\"5\" height=\"10%\">"},
		{"<img alt='&#146;&#x2019;&#0;&#x110000;&amp&copy&notit;&lt=&gt'>",
			"<img alt=\"\xe2\x80\x99\xe2\x80\x99\xef\xbf\xbd\xef\xbf\xbd&amp;&amp;copy&amp;notit;&"
			"amp;lt=&gt;\">"},
		{"<img srcset='a.png 1x, //x.org/b.png 2x, javascript:1 3x'>",
			"<img srcset=\"http://example.org/dir/a.png 1x, http://x.org/b.png 2x\">"},
		{"<img data-src=lazy.png src='data:image/gif;base64,R0lGOD'>",
			"<img src=\"http://example.org/dir/lazy.png\">"},
		{"<pre>\n\nx</pre>", "<pre>\n\nx</pre>"},
		{"<pre>\nx</pre>", "<pre>x</pre>"},
		{"<pre>\r\n\r\nx</pre>", "<pre>\n\nx</pre>"},
		{"<code class='hljs language-c'>x</code>", "<code class=\"language-c\">x</code>"},
		{"<p style='color: RED; position:fixed; background:url(x)'>x</p>", "<p style=\"color: RED\">x</p>"},
		{"<ol start=3 reversed><li value=7>x</ol>",
			"<ol start=\"3\" reversed=\"\"><li value=\"7\">x</li></ol>"},
		{"<video src=v.mp4 autoplay onplay=x></video>",
			"<video src=\"http://example.org/dir/v.mp4\" controls></video>"},
		{"<ruby>a<rt>b<rt>c</ruby>", "<ruby>a<rt>b</rt><rt>c</rt></ruby>"},
		{"<blockquote cite=/q>x</blockquote>", "<blockquote cite=\"http://example.org/q\">x</blockquote>"},
		{"<a href=mailto:a@b.c>x</a>", "<a href=\"mailto:a@b.c\" rel=\"noopener noreferrer\">x</a>"},
		{"<li>a<ul><li>b</ul><li>c", "<li>a<ul><li>b</li></ul></li><li>c</li>"},
		{"a\r\nb\rc&#13;d", "a\nb\nc\nd"},
		{"<image src=x>", "<img src=\"http://example.org/dir/x\">"},
		{"<textarea><b>x</textarea>", "&lt;b&gt;x"},
		{"<p title=a title=b>x", "<p title=\"a\">x</p>"},
		{"<p>a<table><tr><td>b</table>c", "<p>a</p><table><tbody><tr><td>b</td></tr></tbody></table>c"},
		{"<noscript><img src=x></noscript>", "<img src=\"http://example.org/dir/x\">"},
		{"<caption>x</caption>", "x"},
		{"x<![endif]-->y", "xy"},
		{"&lt;script&gt;", "&lt;script&gt;"},
		{"a\x01\x02 b\x7f", "a b"},
		{"<pre>\x16\r=</pre>", "<pre>\n\n=</pre>"},
	};

	for (size_t i = 0; i < FW_N(T); i++)
		check_sanitized(T[i].in, T[i].want, 0);
}
END_TEST

START_TEST(removed_html) /* WEB-02, WEB-03 */
{
	static const struct {
		const char *in, *want;
	} T[] = {
		{"a<script>alert(1)</script>b", "ab"},
		{"a<SCRIPT SRC=x></SCRIPT >b", "ab"},
		{"a<script", "a"},
		{"a<script>x", "a"},
		{"a<style>*{x:y}</style>b", "ab"},
		{"a<iframe><b>f</b></iframe>b", "ab"},
		{"a<object>f</object>b", "afb"},
		{"a<embed>b", "ab"},
		{"a<applet code=x></applet>b", "ab"},
		{"a<form action=x><input name=y><button formaction=z>c</button></form>b", "acb"},
		{"a<meta http-equiv=refresh content=x>b", "ab"},
		{"a<base href=x>b", "ab"},
		{"a<link rel=stylesheet href=x>b", "ab"},
		{"a<svg onload=x><script>y</script><a xlink:href=z>t</a></svg>b", "ab"},
		{"a<math><mtext>x</mtext></math>b", "axb"},
		{"a<frameset><frame src=x></frameset>b", "ab"},
		{"a<template><b>x</b></template>b", "ab"},
		{"a<select><option>x</select>b", "ab"},
		{"<img src=x onerror=alert(1)>", "<img src=\"http://example.org/dir/x\">"},
		{"<img src=x ONERROR=alert(1) onLoad='x'>", "<img src=\"http://example.org/dir/x\">"},
		{"<img src=x/onerror=alert(1)>", "<img src=\"http://example.org/dir/x/onerror=alert(1)\">"},
		{"<img/src=x/ onerror=alert(1)>", "<img src=\"http://example.org/dir/x/\">"},
		{"<p id=x name=y class=z srcdoc=a formaction=b ping=c>t</p>", "<p>t</p>"},
		{"<a href=javascript:alert(1)>x</a>", "<a>x</a>"},
		{"<a href=' JaVaScRiPt:alert(1)'>x</a>", "<a>x</a>"},
		{"<a href='java\nscript:alert(1)'>x</a>", "<a>x</a>"},
		{"<a href='java&#10;script:alert(1)'>x</a>", "<a>x</a>"},
		{"<a href='&#1;javascript:alert(1)'>x</a>", "<a>x</a>"},
		{"<a href='javascript&colon;alert(1)'>x</a>", "<a>x</a>"},
		{"<a href='&#106avascript:alert(1)'>x</a>", "<a>x</a>"},
		{"<a href='java\xe2\x80\x8bscript:x'>x</a>", "<a>x</a>"},
		{"<a href=vbscript:x>x</a>", "<a>x</a>"},
		{"<a href='data:text/html,x'>x</a>", "<a>x</a>"},
		{"<a href=file:///etc/passwd>x</a>", "<a>x</a>"},
		{"<img src='data:image/svg+xml;base64,AA'>", "<img>"},
		{"<img src='data:image/png;base64,AA'>", "<img>"},
		{"<img src=mailto:x>", "<img>"},
		{"<video poster=javascript:x></video>", ""},
		{"<video src=v poster=javascript:x></video>",
			"<video src=\"http://example.org/dir/v\" controls></video>"},
		{"<p style='width: expression(alert(1))'>x", "<p>x</p>"},
		{"<p style='color: url(javascript:x)'>x", "<p>x</p>"},
		{"<p style='background-color: \\75rl(x)'>x", "<p>x</p>"},
		{"<p style='color: rgb(1,2,3)) ; color: rgba(1, 2, 3, .5)'>x",
			"<p style=\"color: rgba(1, 2, 3, .5)\">x</p>"},
		{"<p style='-moz-binding:url(x);behavior:x'>x", "<p>x</p>"},
		{"<p/onclick=x>y</p>", "<p>y</p>"},
		{"<b\"onclick=x>y", "y"},
		{"<!--[if IE]><script>x</script><![endif]-->y", "y"},
		{"<a href=\"x\"onclick=\"y\">z</a>",
			"<a href=\"http://example.org/dir/x\" rel=\"noopener noreferrer\">z</a>"},
		{"<<script>alert(1)</script>", "&lt;"},
		{"<scr<script>ipt>alert(1)</script>", "ipt&gt;alert(1)"},
		{"<plaintext>x", "x"},
		{"<a title='\"><img src=x onerror=y>'>z</a>",
			"<a title=\"&quot;&gt;&lt;img src=x onerror=y&gt;\">z</a>"},
		{"<noscript><p title=\"</noscript><img src=x onerror=alert(1)>\">",
			"<p title=\"&lt;/noscript&gt;&lt;img src=x onerror=alert(1)&gt;\"></p>"},
		{"<math><mi><style><img src=x onerror=y></style></mi></math>", ""},
		{"<svg><style><img src=x onerror=alert(1)></style></svg>", ""},
		{"<xmp><script>x</script></xmp>", "&lt;script&gt;x&lt;/script&gt;"},
		{"<form><math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>", ""},
		{"<p><object><p>x</object>", "<p></p><p>x</p>"},
	};

	for (size_t i = 0; i < FW_N(T); i++)
		check_sanitized(T[i].in, T[i].want, 0);
	check_sanitized("<img src='data:image/png;base64,AA+/='>", "<img src=\"data:image/png;base64,AA+/=\">",
		FW_HTML_DATA_IMAGES);
	check_sanitized("<img src='data:image/png;base64,<x>'>", "<img>", FW_HTML_DATA_IMAGES);
	check_sanitized("a<img src=x width=1 height=1>b<img src=y width=0 height=0><img src=z width=1 height=90>",
		"ab<img src=\"http://example.org/dir/z\" width=\"1\" height=\"90\">", FW_PRINT_NO_PIXELS);
}
END_TEST

/* The link that replaces an embed. */
#define LINKED(url, label) "<a href=\"" url "\" rel=\"noopener noreferrer\">" label "</a> "
#define VIDEO(id) "https://www.youtube.com/watch?v=" id

START_TEST(embeds_leave_a_link)
{
	static const struct {
		const char *in, *want;
	} T[] = {
		{"<iframe src=https://www.youtube.com/embed/abc></iframe>", LINKED(VIDEO("abc"), "YouTube")},
		{"<p>see<iframe src='//www.youtube-nocookie.com/embed/a_B-9?rel=0&amp;start=5' title='A"
		 " &amp; <b>'>x</iframe>too</p>",
			"<p>see " LINKED(VIDEO("a_B-9"), "A &amp; &lt;b&gt;") "too</p>"},
		{"<iframe src=http://youtube.com/embed/videoseries?list=PL1></iframe>",
			LINKED("https://www.youtube.com/playlist?list=PL1", "YouTube")},
		{"<iframe src='http://m.youtube.com/embed/?listType=playlist&list=PL2'></iframe>",
			LINKED("https://www.youtube.com/playlist?list=PL2", "YouTube")},
		{"<iframe src=https://www.youtube.com/embed/live_stream?channel=UC1></iframe>",
			LINKED("https://www.youtube.com/channel/UC1/live", "YouTube")},
		{"<iframe src=https://youtu.be/abc?t=3></iframe>", LINKED(VIDEO("abc"), "YouTube")},
		{"<iframe src=https://www.youtube.com/shorts/abc></iframe><iframe"
		 " src=https://www.youtube.com/watch?x=1&v=def></iframe>",
			LINKED(VIDEO("abc"), "YouTube") LINKED(VIDEO("def"), "YouTube")},
		{"<iframe src=https://www.youtube.com/embed/></iframe>",
			LINKED("https://www.youtube.com/embed/", "YouTube")},
		{"<iframe src='https://player.vimeo.com/video/272053388?color=ff9933&byline=0'></iframe>",
			LINKED("https://vimeo.com/272053388", "Vimeo")},
		{"<iframe src='https://player.vimeo.com/video/27?h=8a2&x'></iframe>",
			LINKED("https://vimeo.com/27/8a2", "Vimeo")},
		{"<embed src='http://vimeo.com/moogaloop.swf?clip_id=27&server=vimeo.com'>",
			LINKED("https://vimeo.com/27", "Vimeo")},
		{"<iframe src=https://tube.example:8443/videos/embed/9c9de5e8-0a1e-484a-b099-e80766180a6"
		 "d?start=1></iframe>",
			LINKED("https://tube.example:8443/videos/watch/9c9de5e8-0a1e-484a-b099-e80766180a6d",
				"PeerTube")},
		{"<iframe src=https://tube.example/videos/embed/short></iframe>",
			LINKED("https://tube.example/videos/embed/short", "tube.example/videos/embed/short")},
		{"<iframe src='https://w.soundcloud.com/player/?url=https%3A//soundcloud.com/who/what&"
		 "color=%23ff5500'></iframe>",
			LINKED("https://soundcloud.com/who/what", "SoundCloud")},
		{"<iframe src='https://w.soundcloud.com/player/?url=https%3A//api.soundcloud.com/tracks/1'></iframe>",
			LINKED("https://w.soundcloud.com/player/?url=https%3A//api.soundcloud.com/tracks/1",
				"SoundCloud")},
		{"<iframe src=https://open.spotify.com/embed/user/u/playlist/1C?theme=0></iframe>",
			LINKED("https://open.spotify.com/user/u/playlist/1C", "Spotify")},
		{"<iframe src=https://open.spotify.com/embed-podcast/episode/7m/></iframe>",
			LINKED("https://open.spotify.com/episode/7m", "Spotify")},
		{"<iframe src=https://embed.spotify.com/?uri=spotify%3Atrack%3A4u></iframe>",
			LINKED("https://open.spotify.com/track/4u", "Spotify")},
		{"<iframe src='https://bandcamp.com/EmbeddedPlayer/album=1/size=large/' seamless><a"
		 " href='https://who.bandcamp.com/album/x'>X <i>by</i> Who</a>"
		 "</iframe>",
			LINKED("https://who.bandcamp.com/album/x", "X by Who")},
		{"<iframe src=https://bandcamp.com/EmbeddedPlayer/track=1/></iframe>",
			LINKED("https://bandcamp.com/EmbeddedPlayer/track=1/", "Bandcamp")},
		{"<iframe src=https://bandcamp.com/EmbeddedPlayer/track=1/><a"
		 " href=https://evil.example/>X</a></iframe>",
			LINKED("https://bandcamp.com/EmbeddedPlayer/track=1/", "X")},
		{"<iframe src=//www.dailymotion.com/embed/video/x8?autoplay=1></iframe>",
			LINKED("https://www.dailymotion.com/video/x8", "Dailymotion")},
		{"<iframe src='https://player.twitch.tv/?channel=who&parent=x'></iframe>",
			LINKED("https://www.twitch.tv/who", "Twitch")},
		{"<iframe src=https://archive.org/embed/some.item_1></iframe>",
			LINKED("https://archive.org/details/some.item_1", "Internet Archive")},
		{"<iframe src='https://www.facebook.com/plugins/video.php?href=https%3A%2F%2Fwww.faceboo"
		 "k.com%2Fw%2Fvideos%2F1%2F'></iframe>",
			LINKED("https://www.facebook.com/w/videos/1/", "Facebook")},
		/* an unknown service: its own URL */
		{"<iframe src='https://maps.example/embed?pb=1#z'></iframe>",
			LINKED("https://maps.example/embed?pb=1#z", "maps.example/embed")},
		{"<iframe src=map.html aria-label=Map></iframe>", LINKED("http://example.org/dir/map.html", "Map")},
		{"<object data=/doc.pdf type=application/pdf><p>No PDF here</p></object>",
			LINKED("http://example.org/doc.pdf", "example.org/doc.pdf") "<p>No PDF here</p>"},
		/* filled in by a script */
		{"<iframe src=about:blank data-src=https://www.youtube.com/embed/abc></iframe>",
			LINKED(VIDEO("abc"), "YouTube")},
		{"<iframe data-lazy-src=https://www.youtube.com/embed/abc></iframe><noscript><iframe"
		 " src=https://www.youtube.com/embed/abc></iframe></noscript>",
			LINKED(VIDEO("abc"), "YouTube")},
		{"<amp-youtube data-videoid=abc layout=fixed width=4 height=3></amp-youtube>",
			LINKED(VIDEO("abc"), "YouTube")},
		{"<lite-youtube videoid='abc' title='T'><a href='x'>Play</a></lite-youtube>",
			LINKED(VIDEO("abc"),
				"T") "<a href=\"http://example.org/dir/x\" rel=\"noopener noreferrer\">Play</a>"},
		{"<amp-iframe src=https://maps.example/e></amp-iframe>",
			LINKED("https://maps.example/e", "maps.example/e")},
		/* one player, named several times */
		{"<object width=425><param name=movie value='http://www.youtube.com/v/abc&hl=en&fs=1'>"
		 "</param><param name=wmode value=x></param>"
		 "<embed src='http://www.youtube.com/v/abc&hl=en&fs=1'"
		 " type=application/x-shockwave-flash></embed></object>",
			LINKED(VIDEO("abc"), "YouTube")},
		/* malformed: through the tree; in a table; in a link */
		{"<b><i>x</b><iframe src=https://www.youtube.com/embed/abc></iframe></i>",
			"<b><i>x</i></b><i>" LINKED(VIDEO("abc"), "YouTube") "</i>"},
		{"<table><tr><td><iframe src=https://www.youtube.com/embed/abc></iframe></table>",
			"<table><tbody><tr><td>" LINKED(VIDEO("abc"), "YouTube") "</td></tr></tbody></table>"},
		{"<a href=y><iframe src=https://www.youtube.com/embed/abc></iframe></a>",
			"<a href=\"http://example.org/dir/y\" rel=\"noopener noreferrer\"></a>" LINKED(
				VIDEO("abc"), "YouTube")},
		/* nothing to see: counters, advertisements, buttons */
		{"a<iframe src=https://t.example/ width=1 height=1></iframe>b", "ab"},
		{"a<iframe src=https://t.example/ height=0></iframe>b", "ab"},
		{"a<iframe src=https://t.example/ style='display:none'></iframe>b", "ab"},
		{"a<iframe hidden src=https://t.example/></iframe>b", "ab"},
		{"a<iframe src=https://t.example/ style='width: 1px; height: 1px'></iframe>b", "ab"},
		{"a<iframe src=http://feedads.g.doubleclick.net/~ah/f/x width=300 height=250></iframe>b", "ab"},
		{"a<iframe src=https://www.facebook.com/plugins/like.php?href=x></iframe>b", "ab"},
		{"a<object data=https://t.example/ width=1 height=1></object>b", "ab"},
		{"a<embed src=https://t.example/ width=0>b", "ab"},
		/* not a web URL */
		{"a<iframe src='javascript:alert(1)'></iframe>b", "ab"},
		{"a<iframe src='data:text/html,x'></iframe>b", "ab"},
		{"a<iframe src='jav&#9;ascript:x' data-src='vbscript:x'></iframe>b", "ab"},
		{"a<embed src='blob:https://x.example/1'>b", "ab"},
		{"a<object data='file:///etc/passwd'></object>b", "ab"},
		{"a<iframe srcdoc='<script>x</script>'></iframe>b", "ab"},
		{"a<iframe src='https://x.example/&#1;y'></iframe>b", "ab"},
		{"a<iframe src='https:///x'></iframe>b", "ab"},
		{"a<object><param name=movie value='javascript:x'></object>b", "ab"},
		{"a<amp-youtube data-videoid='\"><script>'></amp-youtube>b", "ab"},
	};
	/* a known service is recognised only by its host, and only a valid id is used */
	static const struct {
		const char *in, *want;
	} HOSTILE[] = {
		{"<iframe src='https://www.youtube.com@evil.example/embed/abc'></iframe>",
			LINKED("https://www.youtube.com@evil.example/embed/abc",
				"www.youtube.com@evil.example/embed/abc")},
		{"<iframe src='https://evil.example\\.youtube.com/embed/abc'></iframe>",
			LINKED("https://evil.example\\.youtube.com/embed/abc", "evil.example\\.youtube.com/embed/abc")},
		{"<iframe src='https://w.soundcloud.com/player/?url=https://evil.example%5c.soundcloud.com/'></iframe>",
			LINKED("https://w.soundcloud.com/player/?url=https://evil.example%5c.soundcloud.com/",
				"SoundCloud")},
		{"<iframe src='https://notyoutube.com/embed/abc'></iframe>",
			LINKED("https://notyoutube.com/embed/abc", "notyoutube.com/embed/abc")},
		{"<iframe src='https://www.youtube.com/embed/a\"onclick=x&quot;>b'></iframe>",
			LINKED(VIDEO("a"), "YouTube")},
		{"<iframe src='https://evil.example/?x=youtube.com/embed/abc'></iframe>",
			LINKED("https://evil.example/?x=youtube.com/embed/abc", "evil.example/")},
		{"<iframe src='https://w.soundcloud.com/player/?url=javascript:alert(1)'></iframe>",
			LINKED("https://w.soundcloud.com/player/?url=javascript:alert(1)", "SoundCloud")},
		{"<iframe src='https://w.soundcloud.com/player/?url=https://soundcloud.com@evil.example/'></iframe>",
			LINKED("https://w.soundcloud.com/player/?url=https://soundcloud.com@evil.example/",
				"SoundCloud")},
		{"<iframe src='https://w.soundcloud.com/player/?url=%ff%fe'></iframe>",
			LINKED("https://w.soundcloud.com/player/?url=%ff%fe", "SoundCloud")},
		{"<iframe src='https://open.spotify.com/embed?uri=spotify:..%2f..:%22%3E'></iframe>",
			LINKED("https://open.spotify.com/../..", "Spotify")},
		{"<iframe src=https://x.example/ title='\"><img src=x onerror=y>'></iframe>",
			LINKED("https://x.example/", "\"&gt;&lt;img src=x onerror=y&gt;")},
		{"<iframe src=https://x.example/><a href=javascript:x>\"><script>y</script></a></iframe>",
			LINKED("https://x.example/", "\"&gt;")},
		{"<iframe src='https://x.example/\"onmouseover=\"y'></iframe>",
			LINKED("https://x.example/&quot;onmouseover=&quot;y", "x.example/\"onmouseover=\"y")},
	};

	for (size_t i = 0; i < FW_N(T); i++)
		check_sanitized(T[i].in, T[i].want, 0);
	for (size_t i = 0; i < FW_N(HOSTILE); i++)
		check_sanitized(HOSTILE[i].in, HOSTILE[i].want, 0);
	check_sanitized("<table><iframe src=https://www.youtube.com/embed/abc></iframe>",
		"<table><tbody><tr><td>" LINKED(VIDEO("abc"), "YouTube") "</td></tr></tbody></table>", FW_HTML_NO_TREE);
}
END_TEST

START_TEST(players_without_an_address)
{
	static const struct {
		const char *in, *want;
	} T[] = {
		{"<video src=blob:x><a href=v>See it</a></video>",
			"<a href=\"http://example.org/dir/v\" rel=\"noopener noreferrer\">See it</a>"},
		{"<video poster=p.jpg><source src=javascript:x>no</video>",
			"<img src=\"http://example.org/dir/p.jpg\"><source>no"},
		{"<audio>no sound</audio>", "no sound"},
		{"<video data-src=v.mp4></video>", "<video src=\"http://example.org/dir/v.mp4\" controls></video>"},
		{"<video src=blob:x data-src=v.mp4></video>",
			"<video src=\"http://example.org/dir/v.mp4\" controls></video>"},
		{"<video>\n<!-- x --><track src=t><source data-src=v.mp4></video>",
			"<video controls>\n<source src=\"http://example.org/dir/v.mp4\"></video>"},
		{"<b><i></b><video poster=p.jpg>x</video><audio>y</audio></i>",
			"<b><i></i></b><i><img src=\"http://example.org/dir/p.jpg\">xy</i>"},
		{"a<svg aria-label='A chart'><path></svg>b", "aA chartb"},
		{"a<svg><title>A &lt;i&gt;</title><text>t</text></svg>b", "aA &lt;i&gt;b"},
		{"a<svg aria-hidden=true><title>t</title></svg>b", "ab"},
		{"a<svg/><title>t</title>b", "ab"},
		{"a<svg><g><title>t</title></g></svg>b", "ab"},
		{"<b><i></b><svg aria-label='<script>'></svg></i>", "<b><i></i></b><i>&lt;script&gt;</i>"},
	};

	for (size_t i = 0; i < FW_N(T); i++)
		check_sanitized(T[i].in, T[i].want, 0);
}
END_TEST

START_TEST(links_to_call_and_to_share)
{
	static const struct {
		const char *href, *want;
	} T[] = {
		/* want NULL: refused */
		{"tel:+1-555-0100", "tel:+1-555-0100"},
		{"TEL:(555) 0100;ext=7", "TEL:(555)%200100;ext=7"},
		{"tel:", NULL},
		{"tel:*21*5550100#", NULL},
		{"tel:%2A%2306%23", NULL},
		{"te\nl:5", "tel:5"},
		{"tel:5&#1;6", NULL},
		{"tel://5", NULL},
		{"tel:5?x", NULL},
		{"sms:5", NULL},
		{"magnet:?xt=urn:btih:c12fe1c06bba254a9dc9f519b335aa7c1367a88a&amp;dn=x",
			"magnet:?xt=urn:btih:c12fe1c06bba254a9dc9f519b335aa7c1367a88a&amp;dn=x"},
		{"magnet:x", NULL},
		{"magnet:?x=&#2;y", NULL},
		{"magnet:?x=\"onclick=y", "magnet:?x=&quot;onclick=y"},
	};
	char in[256], want[256];

	for (size_t i = 0; i < FW_N(T); i++) {
		ck_assert(fw_snprintf(in, sizeof(in), "<a href='%s'>x</a>", T[i].href));
		if (T[i].want)
			ck_assert(fw_snprintf(
				want, sizeof(want), "<a href=\"%s\" rel=\"noopener noreferrer\">x</a>", T[i].want));
		check_sanitized(in, T[i].want ? want : "<a>x</a>", 0);
	}
	check_sanitized(
		"<img src=tel:5><img src='magnet:?xt=x'><iframe src=tel:5></iframe><video poster=tel:5></video>",
		"<img><img>", 0);
}
END_TEST

#define WITHIN(name, text) "<a href=\"#user-content-" name "\" rel=\"noopener noreferrer\">" text "</a>"

START_TEST(links_within) /* footnotes work, and no id can be one of the page's own */
{
	static const struct {
		const char *in, *want;
	} T[] = {
		{"<sup id=r1><a href='#fn:1'>1</a></sup><ol><li id=\"fn:1\">Note<a href='#r1'>back</a></ol>",
			"<sup id=\"user-content-r1\">" WITHIN("fn:1",
				"1") "</sup><ol><li id=\"user-content-fn:1\">Note" WITHIN("r1", "back") "</li></ol>"},
		{"<a href=#n>x</a><a name=n>y</a>", WITHIN("n", "x") "<a id=\"user-content-n\">y</a>"},
		{"<a name=n id=m href=#m>x</a>",
			"<a id=\"user-content-m\" href=\"#user-content-m\" rel=\"noopener noreferrer\">x</a>"},
		{"<a href='http://example.org/dir/page#n'>x</a><p id=n>",
			WITHIN("n", "x") "<p id=\"user-content-n\"></p>"},
		{"<a href='#user-content-\nn'>x</a><a href='./pa&#9;ge#user-content&#1;-m'>y</a>",
			WITHIN("n", "x") WITHIN("m", "y")},
		{"<a href='#caf%C3%A9'>x</a><p id='caf\xc3\xa9'>",
			WITHIN("caf\xc3\xa9", "x") "<p id=\"user-content-caf\xc3\xa9\"></p>"},
		{"<b><i></b><a href=#n>x</a><u id=n></u></i>",
			"<b><i></i></b><i>" WITHIN("n", "x") "<u id=\"user-content-n\"></u></i>"},
		/*
		 * no such id in the content: a link to the page, as usual; an id without a link is
		 * removed
		 */
		{"<a href=#n>x</a>", "<a href=\"http://example.org/dir/page#n\" rel=\"noopener noreferrer\">x</a>"},
		{"<a href=other#n>x</a><p id=n>",
			"<a href=\"http://example.org/dir/other#n\" rel=\"noopener noreferrer\">x</a><p></p>"},
		{"<a href=#n>x</a><form id=n></form><svg><p id=n></p></svg><p id=m>",
			"<a href=\"http://example.org/dir/page#n\" rel=\"noopener noreferrer\">x</a><p></p>"},
		/* no names that scripts find elements by */
		{"<a href=#body>x</a><p id=body><img name=body><p id='a b' name=body><p id=''>",
			WITHIN("body", "x") "<p id=\"user-content-body\"><img></p><p></p><p></p>"},
		{"<a href='#a%20b'>x</a><p id='a b'>y",
			"<a href=\"http://example.org/dir/page#a%20b\" rel=\"noopener noreferrer\">x</a><p>y</p>"},
		{"<a href='#a\"onclick=b'>x</a><p id='a\"onclick=b'>",
			WITHIN("a&quot;onclick=b", "x") "<p id=\"user-content-a&quot;onclick=b\"></p>"},
		{"<a href='#user%2Dcontent-x'>x</a><p id=x>",
			"<a href=\"#user-content-x\" rel=\"noopener noreferrer\">x</a><p></p>"},
		{"<a href='#%2525'>x</a><p id='%25'><p id='%'>",
			"<a href=\"http://example.org/dir/page#%2525\" rel=\"noopener noreferrer\">x</a>"
			"<p></p><p></p>"},
	};
	struct fw_buf in = FW_BUF_INIT(0);
	char *once, *twice;

	for (size_t i = 0; i < FW_N(T); i++)
		check_sanitized(T[i].in, T[i].want, 0);
	/* more than are searched: still stable */
	for (int i = 0; i < 6000; i++)
		fw_buf_addf(&in, "<a href=#n%d>x</a><p id=n%d>", i, 5999 - i);
	once = sanitize(fw_buf_str(&in), 0);
	twice = sanitize(fw_str(once), 0);
	ck_assert(strcmp(once, twice) == 0 && strstr(once, "\"#user-content-n3000\"") &&
		strstr(once, "id=\"user-content-n3000\""));
	free(once);
	free(twice);
	fw_buf_finish(&in);
}
END_TEST

START_TEST(embeds_listed)
{
	static const char html[] =
		"<iframe src=https://www.youtube.com/embed/abc title=One></iframe><p>x<iframe src=/map?x></iframe>"
		"<iframe src=https://www.youtube.com/v/abc></iframe><iframe src=https://t.example/"
		" width=1 height=1></iframe>"
		"<svg><iframe src=https://no.example/></iframe></svg><!-- <iframe src=https://no.example/></iframe> -->"
		"<textarea><iframe src=https://no.example/></iframe></textarea>";
	struct fw_buf in = FW_BUF_INIT(0);
	struct fw_html_embed *e;
	struct fw_arena a;
	size_t n = 0;

	fw_arena_init(&a, 0);
	e = fw_html_embeds(&a, FW_STR(html), BASE);
	ck_assert(e && fw_str_eq(e->url, FW_STR(VIDEO("abc"))) &&
		fw_str_eq(e->player, FW_STR("https://www.youtube.com/embed/abc")));
	ck_assert(fw_str_eq(e->service, FW_STR("YouTube")) && fw_str_eq(e->title, FW_STR("One")));
	ck_assert(fw_str_eq(e->image, FW_STR("https://i.ytimg.com/vi/abc/hqdefault.jpg")));
	e = e->next;
	ck_assert(e && fw_str_eq(e->url, FW_STR("http://example.org/map?x")) && fw_str_eq(e->player, e->url));
	ck_assert(!e->service.len && !e->title.len && !e->image.len && !e->next);
	ck_assert_ptr_null(fw_html_embeds(&a, FW_STR("<p>an iframe, an <em>object</em> to embed<li>"), BASE));
	ck_assert_ptr_null(fw_html_embeds(&a, FW_STR_NONE, BASE));
	/* limited in number, and in the length of URLs and titles */
	fw_buf_adds(&in, "<iframe src='https://long.example/");
	for (int i = 0; i < 3000; i++)
		fw_buf_addc(&in, 'x');
	fw_buf_adds(&in, "'></iframe>");
	for (int i = 0; i < 1000; i++)
		fw_buf_addf(&in, "<iframe src='https://x.example/%d' title='%0600d'></iframe>", i, i);
	for (e = fw_html_embeds(&a, fw_buf_str(&in), BASE); e; e = e->next, n++)
		ck_assert(fw_str_starts(e->url, FW_STR("https://x.example/")) && e->title.len == 512);
	ck_assert_uint_eq(n, FW_HTML_EMBEDS_MAX);
	fw_buf_finish(&in);
	fw_arena_finish(&a);
	fw_arena_init(&a, 1);
	ck_assert(!fw_html_embeds(&a, FW_STR(html), BASE) && a.failed);
	fw_arena_finish(&a);
}
END_TEST

START_TEST(all_removed)
{
	static const char *const GONE[] = {"<script>x</script>", "<p><style>*{}</style>&nbsp;<br></p>",
		"<iframe src=https://t.example/ width=1 height=1></iframe>",
		"<form><input><select><option>x</select></form>", "<img src=javascript:x>",
		"<img src='data:image/png;base64,AA'>", "<video src=blob:x></video>", "<svg><path></svg>\xc2\xa0",
		"<canvas></canvas>", "<a href=x><object data=blob:x></object></a>",
		"<div class='a'><div><script></script></div></div>",
		"<b></b><i></i><u></u><b></b><i></i><u></u><script></script>"};
	static const char *const LEFT[] = {"", "text", "<p>text</p>", "<p></p>", "<!-- x -->",
		"<html><head></head><body> </body></html>", "<img src=x>", "<img src=javascript:x alt=words>",
		"<img srcset='x 2x'>", "<p><img data-src=x>", "<script>x</script>text",
		"<iframe src=https://x.example/></iframe>", "<video><source src=x></video>", "<video poster=x></video>",
		"<svg aria-label=x></svg>", "&lt;", "<textarea>x</textarea>", "<script></script>&#8203;.",
		"<a title='>'>x</a>", "<p class=\"a\">x", "<object>fallback</object>", "<x-y>text</x-y>",
		"<script></script>&nBsp;"};

	for (size_t i = 0; i < FW_N(GONE); i++)
		ck_assert_msg(fw_html_all_removed(fw_str(GONE[i]), BASE), "%s", GONE[i]);
	for (size_t i = 0; i < FW_N(LEFT); i++)
		ck_assert_msg(!fw_html_all_removed(fw_str(LEFT[i]), BASE), "%s", LEFT[i]);
}
END_TEST

START_TEST(discovers_in_order)
{
	static const char page[] =
		"<!DOCTYPE html><html><head><title>x</title>\n"
		"<link rel=stylesheet href=style.css><link rel='icon' href=i.png>\n"
		"<!-- <link rel=alternate type=application/rss+xml href=/commented> -->\n"
		"<script>'<link rel=alternate type=application/rss+xml href=/script>'</script>\n"
		"<template><link rel=alternate type=application/rss+xml href=/template></template>\n"
		"<LINK REL=\"Alternate home\" TYPE=\"application/atom+xml; charset=utf-8\" TITLE=\"A &"
		"amp; B\" HREF=atom.xml>\n"
		"<base target=_top><base href=\"/blog/\"><base href=/other/>\n"
		"<link rel='alternate stylesheet' type=application/rss+xml href=/style>\n"
		"<link rel=alternate type=application/json href=/wp-json/>\n"
		"<link rel=alternate hreflang=de href=/de>\n"
		"<link rel=alternate type='application/rss+xml' href='javascript:x'>\n"
		"<link rel=alternate type='application/rss+xml' href=''>\n"
		"<link rel=alternate type='application/rss+xml' href='//example.net/rss?a=1&amp;b=2'>\n"
		"<link rel=alternate type='application/rss+xml' href='atom.xml'>\n"
		"<link rel=alternate type=application/feed+json href=feed.json></head><body><link"
		" rel=feed href=last></body>";
	static const char *const WANT[] = {"http://example.org/blog/atom.xml", "http://example.net/rss?a=1&b=2",
		"http://example.org/blog/feed.json", "http://example.org/blog/last"};
	struct fw_link *l;
	struct fw_arena a;
	size_t i = 0;

	fw_arena_init(&a, 0);
	ck_assert_int_eq(fw_html_discover(&a, FW_STR(page), BASE, &l, NULL), 0);
	ck_assert(fw_str_eq(l->title, FW_STR("A & B")));
	for (; l; l = l->next, i++)
		ck_assert_msg(
			i < FW_N(WANT) && fw_str_eq(l->href, fw_str(WANT[i])), "%zu: %.*s", i, FW_STR_ARG(l->href));
	ck_assert_uint_eq(i, FW_N(WANT));
	ck_assert_int_eq(fw_html_discover(&a, FW_STR(""), BASE, &l, NULL), 0);
	ck_assert_ptr_null(l);
	/* a base that is not a web URL is ignored: the results are absolute all the same */
	ck_assert_int_eq(
		fw_html_discover(&a, FW_STR("<base href='ftp://f.example/'><link rel=feed href=f>"), BASE, &l, NULL),
		0);
	ck_assert(l && fw_str_istarts(l->href, FW_STR("http://example.org/")));
	fw_arena_finish(&a);
	fw_arena_init(&a, 1);
	ck_assert_int_eq(fw_html_discover(&a, FW_STR(page), BASE, &l, NULL), FW_ENOMEM);
	fw_arena_finish(&a);
}
END_TEST

START_TEST(link_header)
{
	struct fw_arena a;
	struct fw_link *l;

	fw_arena_init(&a, 0);
	l = fw_link_header(&a,
		FW_STR("<https://hub.example/>; rel=\"hub\", </feed>; REL=self; type=application/rss+xml,"
		       " <a,b>; title=\"x, \\\"y\\\" ; z\"; rel=\"next hub\" ; hreflang=de, <anchored>;"
		       " rel=hub; anchor=\"/x\", <>;rel=canonical"),
		BASE, FW_STR_NONE);
	ck_assert(l && fw_str_eq(l->href, FW_STR("https://hub.example/")) && fw_str_eq(l->rel, FW_STR("hub")));
	l = l->next;
	ck_assert(l && fw_str_eq(l->href, FW_STR("http://example.org/feed")) &&
		fw_str_eq(l->type, FW_STR("application/rss+xml")));
	l = l->next;
	ck_assert(l && fw_str_eq(l->href, FW_STR("http://example.org/dir/a,b")) &&
		fw_str_eq(l->title, FW_STR("x, \"y\" ; z")));
	ck_assert(fw_str_eq(l->hreflang, FW_STR("de")));
	l = l->next;
	ck_assert(l && fw_str_eq(l->href, FW_STR("http://example.org/dir/page")) && !l->next);
	l = fw_link_header(&a, FW_STR("<a>; rel=self, <b>; rel=HUB, <c>; rel=\"other hub\""), BASE, FW_STR("hub"));
	ck_assert(l && fw_str_eq(l->href, FW_STR("http://example.org/dir/b")) && l->next && !l->next->next);
	/* invalid values are skipped up to the next comma */
	l = fw_link_header(
		&a, FW_STR("rubbish; rel=hub, \"a,b\", <unfinished, <c>; rel=\"unfinished"), BASE, FW_STR_NONE);
	ck_assert(!l || fw_str_eq(l->rel, FW_STR("unfinished")));
	ck_assert_ptr_null(fw_link_header(&a, FW_STR(""), BASE, FW_STR_NONE));
	ck_assert_ptr_null(fw_link_header(&a, FW_STR_NONE, BASE, FW_STR_NONE));
	ck_assert_ptr_null(fw_link_header(&a, FW_STR(",,,;;;<"), BASE, FW_STR_NONE));
	fw_arena_finish(&a);
}
END_TEST

static void check_attrs(struct fw_html_token *t, const char *all)
{
	struct fw_str name, value;

	while (fw_html_attr(&t->attrs, &name, &value)) {
		ck_assert_msg(!fw_str_istarts(name, FW_STR("on")), "%s", all);
		ck_assert_msg(
			!fw_str_ieq(name, FW_STR("id")) || fw_str_starts(value, FW_STR("user-content-")), "%s", all);
		ck_assert_msg(!fw_str_ieq(name, FW_STR("name")), "%s", all);
		ck_assert_msg(!fw_str_istarts(value, FW_STR("javascript:")) && !fw_str_istarts(value, FW_STR("data:")),
			"%s", all);
	}
}

/* The shape of the text: tags (marked by \1) and text in order. */
static void shape_of_text(struct fw_str html, struct fw_buf *shape)
{
	struct fw_html_tokenizer z;
	struct fw_html_token t;
	struct fw_arena a;

	fw_arena_init(&a, 0);
	fw_html_start(&z, html);
	for (fw_html_next(&z, &t); t.kind != FW_HTML_END; fw_html_next(&z, &t)) {
		if (t.kind == FW_HTML_OPEN)
			fw_buf_addf(shape, "\1<%s>", fw_el_name(t.el));
		else if (t.kind == FW_HTML_CLOSE)
			fw_buf_addf(shape, "\1</%s>", fw_el_name(t.el));
		else
			fw_buf_addstr(shape, fw_entity_decode(&a, t.text));
	}
	fw_arena_finish(&a);
}

/* The shape of the tree that a browser builds from it. */
static void shape_of_tree(const GumboNode *node, struct fw_buf *shape)
{
	const GumboVector *children = &node->v.element.children;
	const char *name;

	ck_assert_msg(node->type != GUMBO_NODE_COMMENT && node->type != GUMBO_NODE_TEMPLATE, "%s", shape->p);
	if (node->type != GUMBO_NODE_ELEMENT) {
		fw_buf_adds(shape, node->v.text.text);
		return;
	}
	ck_assert_int_eq(node->v.element.tag_namespace, GUMBO_NAMESPACE_HTML);
	name = gumbo_normalized_tagname(node->v.element.tag);
	fw_buf_addf(shape, "\1<%s>", name);
	for (unsigned i = 0; i < children->length; i++)
		shape_of_tree(children->data[i], shape);
	if (!(fw_el_flags(fw_el_find(fw_str(name))) & FW_EL_VOID))
		fw_buf_addf(shape, "\1</%s>", name);
}

/* A browser reads exactly what was written: nothing is moved, implied or reinterpreted. */
static void check_tree(struct fw_str html)
{
	struct fw_buf written = FW_BUF_INIT(0), read = FW_BUF_INIT(0);
	GumboOptions options = kGumboDefaultOptions;
	GumboOutput *tree;
	char *pre;

	options.fragment_context = GUMBO_TAG_BODY;
	tree = gumbo_parse_with_options(&options, html.p, html.len);
	shape_of_text(html, &written);
	for (unsigned i = 0; i < tree->root->v.element.children.length; i++)
		shape_of_tree(tree->root->v.element.children.data[i], &read);
	gumbo_destroy_output(&options, tree);
	fw_buf_adds(&written, "");
	fw_buf_adds(&read, "");
	for (pre = written.p; (pre = strstr(pre, "\1<pre>\n")); pre += 6) /* the first newline in pre is dropped */
		memmove(pre + 6, pre + 7, strlen(pre + 7) + 1);
	ck_assert_msg(!strcmp(written.p, read.p), "%s\n  written %s\n  read    %s", html.p, written.p, read.p);
	fw_buf_finish(&written);
	fw_buf_finish(&read);
}

/*
 * Any malformed input: valid UTF-8, only allowed elements, nothing active, and sanitising again
 * changes nothing.
 */
static void check_soup_with(struct fw_str soup, unsigned flags)
{
	char *once = sanitize(soup, flags), *twice = sanitize(fw_str(once), 0);
	struct fw_html_tokenizer z;
	struct fw_html_token t;

	ck_assert_msg(strcmp(once, twice) == 0, "%.*s\n  once  %s\n  twice %s", FW_STR_ARG(soup), once, twice);
	ck_assert(fw_utf8_valid(once, strlen(once)) == strlen(once));
	fw_html_start(&z, fw_str(once));
	for (fw_html_next(&z, &t); t.kind != FW_HTML_END; fw_html_next(&z, &t)) {
		ck_assert_msg(t.kind != FW_HTML_COMMENT && t.kind != FW_HTML_RAW, "%s", once);
		if (t.kind == FW_HTML_OPEN || t.kind == FW_HTML_CLOSE)
			ck_assert_msg(fw_el_flags(t.el) & FW_EL_KEEP, "%s", once);
		if (t.kind == FW_HTML_OPEN)
			check_attrs(&t, once);
	}
	check_tree(fw_str(once));
	free(once);
	free(twice);
}

static void check_soup(struct fw_str soup)
{
	check_soup_with(soup, 0);
	check_soup_with(soup, FW_HTML_NO_TREE);
}

/*
 * Attacks that worked on some sanitiser: markup that changes its meaning when it is parsed a second
 * time.
 */
START_TEST(mutations)
{
	static const char *const VECTOR[] = {
		"<math><mtext><table><mglyph><style><!--</style><img title=\"--&gt;&lt;img src=1"
		" onerror=alert(1)&gt;\">",
		"<math><mtext><h1><a><h6></a></h6><mglyph><svg><mtext><style><a title=\"</style><img"
		" src onerror=alert(1)>\"></style></h1>",
		"<form><math><mtext></form><form><mglyph><svg><mtext><style><path id=\"</style><img"
		" onerror=alert(1) src>\">",
		"<svg></p><style><a id=\"</style><img src=1 onerror=alert(1)>\">",
		"<svg><p><style><g title=\"</style><img src onerror=alert(1)>\">",
		"<svg><desc><noscript></desc></svg><p title=\"</noscript><img src=x onerror=alert(1)>\">",
		"<svg><foreignObject><iframe srcdoc=\"<script>x</script>\"></iframe></foreignObject></svg>",
		"<svg><title><style><img src=x onerror=y>",
		"<svg><animate attributeName=href values=javascript:x /><a id=x><text>t</text></a></svg>",
		"<svg><set attributeName=onload to=x>",
		"<svg><use href=\"data:image/svg+xml,<svg id='x'/>#x\"/></svg>",
		"<svg><image href=x onload=y />",
		"<svg/onload=alert(1)>",
		"<math href=javascript:x>t</math>",
		"<math><maction actiontype=statusline xlink:href=javascript:x>t</maction></math>",
		"<math><annotation-xml encoding=text/html><style><img src=x onerror=y></style></annotation-xml></math>",
		"<noscript><style></noscript><img src=x onerror=y>",
		"<noscript><!--</noscript><img src=x onerror=y>-->",
		"<noembed><img title=\"</noembed><img src onerror=x>\">",
		"<noframes><style></noframes><img src=x onerror=y>",
		"<template><script>x</script></template><img src=x>",
		"<template><template></template><img src=x onerror=y></template>z",
		"<textarea><img title=\"</textarea><img src=x onerror=y>\">",
		"<title><a title=\"</title><img src=x onerror=y>\">",
		"<xmp><a title=\"</xmp><img src=x onerror=y>\">",
		"<style><a title=\"</style><img src=x onerror=y>\">",
		"<iframe><a title=\"</iframe><img src=x onerror=y>\">",
		"<listing>\n\n<img title=\"</listing><img onerror=x>\">",
		"<plaintext><img src=x onerror=y>",
		"<select><style></select><img src=x onerror=y></style>",
		"<select><template><style></select><img src=x onerror=y>",
		"<table><td><svg><title></td><img src=x onerror=y>",
		"<p><table><p></table></p><b><table><b></table>",
		"<a><table><a><td><a>",
		"<b><a><b><a><table><tr><b><a>",
		"<font><p><font><p><font>x</font>",
		"<button><p></button><button>",
		"<nobr><nobr><nobr><table><nobr>",
		"<option><p><option><optgroup>",
		"<dd><dl><dt><li><ul><dd>",
		"<caption><table><caption><p><td>",
		"<details><summary><p></details></summary>",
		"<ruby><rtc><rb>x<rt><rp></ruby>",
		"<object><param name=x><embed src=y></object>",
		"<isindex action=javascript:x>",
		"<keygen autofocus onfocus=x>",
		"<video><source onerror=x src=y></video>",
		"<audio src=x onerror=y>",
		"<!--><img src=x onerror=y>-->",
		"<!---><img src=x onerror=y>-->",
		"<!-- --!><img src=x onerror=y>-->",
		"<!- <img src=x onerror=y> -->",
		"<![CDATA[<img src=x onerror=y>]]>",
		"<?xml-stylesheet href=x?><img src=x onerror=y>",
		"</ <img src=x onerror=y>>",
		"</br/onclick=x>",
		"<img src=\"x\" \"onerror=y\">",
		"<img src='x'onerror='y'>",
		"<img src=`x` onerror=`y`>",
		"<img\x0conerror=y\x0csrc=x>",
		"<img\x0bonerror=y src=x>",
		"<img src=x onerror\x00=y>",
		("<img src=x on\xc2\xa0"
		 "error=y>"),
		"<IMG SRC=x OnErRoR=y/>",
		"<img =onerror=x src=y>",
		"<img src=x ==onerror=y>",
		"<a href=\"\x01\x02javascript:x\">y</a>",
		"<a href=\"jav&#x09;ascript&colon;x\">y</a>",
		"<a href=\"&#0000106avascript:x\">y</a>",
		"<a href=\"javas\x00cript:x\">y</a>",
		"<a href=\"//javascript:x\">y</a>",
		"<a href=\"javascript\xef\xbc\x9ax\">y</a>",
		"<a xlink:href=javascript:x>y</a>",
		"<a href=\"feed:javascript:x\">y</a>",
		"<a href=\"view-source:javascript:x\">y</a>",
		"<a href=\"blob:x\">y</a>",
		"<a href=x ping=y download>z</a>",
		"<img srcset=\"javascript:x 1x\">",
		"<img srcset=\"a 1x, data:text/html,x 2x\">",
		"<img srcset=\"x\tonerror=y 1x\">",
		"<img srcset=\",,,a 1x,,,\">",
		"<source srcset='x 1x, \"><script>y</script> 2x'>",
		"<img srcset='&#34;&gt;&lt;script&gt; 1x'>",
		"<img longdesc=javascript:x lowsrc=y dynsrc=z>",
		"<p style=\"color:red;}*{x:y\">",
		"<p style=\"color:re/**/d\">",
		"<p style=\"c\\6flor:red\">",
		"<p style=\"color:\\72 ed\">",
		"<p style=\"color:expression(x)\">",
		"<p style=\"background-color:url(//x)\">",
		"<p style=\"background-color:image-set('x')\">",
		"<p style=\"color:var(--x)\">",
		"<p style='color:\"red\"'>",
		"<p style=\"color:red!important;position:fixed;top:0\">",
		"<p style=\"color:rgb(1,2,3\">",
		"<p style=\"color:rgb(url(x))\">",
		"<p style=\"x:y;color&colon;red\">",
		"<p id=getElementById name=body>",
		"<a name=__proto__ id=location>x</a>",
		"<img name=cookie id=defaultView>",
		"<form id=x><input name=attributes></form>",
		"<div slot=x is=y part=z itemprop=w contenteditable tabindex=1 accesskey=x autofocus"
		" onfocus=x popover inert>",
		"<p data-x=y aria-hidden=true role=z>",
		"<p xmlns=x xml:base=javascript:y xml:lang=z>",
		"<base href=javascript:/a/><a href=x>y</a>",
		"<meta http-equiv=Set-Cookie content=x>",
		"<link rel=import href=x>",
		"<object data=\"data:text/html,x\"></object>",
		"<embed src=\"javascript:x\">",
		"<frame src=x><frameset onload=y>",
		"<layer src=x></layer>",
		"<x onclick=y tabindex=1>z</x>",
		"<b <script>alert(1)</script>0",
		"<b/%a<img src=x onerror=y>",
		"<a title='</a><script>x</script>'>y",
		"<<b>b>x",
		"<scr\x00ipt>x</scr\x00ipt>",
		"<\x00script>x</script>",
		"<script\x0c>x</script\x0c>y",
		"<script/x>y</script/z>w",
		"<script></scripty></script >z",
		"<style></style\nx>y",
		"<p>\xed\xa0\x80\xff<b>",
		"\xef\xbb\xbf<p>x",
	};

	for (size_t i = 0; i < FW_N(VECTOR); i++)
		check_soup(fw_str(VECTOR[i]));
	/* with zero bytes, which end a C string */
	check_soup(FW_STR("<scr\0ipt>x</scr\0ipt><img src=x on\0error=y><a href=\"java\0script:x\">y</a>"));
}
END_TEST

START_TEST(pixels_go)
{
	static const char *const PIXEL[] = {"<img src=x width=1 height=1>", "<img src=x width=0 height=0>",
		"<img src=x width='1px' height='1px'>", "<img src=x style='width:1px; height: 1px'>",
		"<img src=x style='display: none'>", "<img src=x style='VISIBILITY:hidden'>",
		"<img src=x width=1 style='height:1px'>", "<IMG HEIGHT=1 SRC=x WIDTH=1 BORDER=0>"};
	static const char *const IMAGE[] = {"<img src=x>", "<img src=x width=1 height=9>", "<img src=x width=1>",
		"<img src=x style='display:block'>", "<img src=x width='100%' height=1>",
		"<img src=x alt='width=1 height=1'>"};

	for (size_t i = 0; i < FW_N(PIXEL); i++)
		check_sanitized(PIXEL[i], "", FW_PRINT_NO_PIXELS);
	for (size_t i = 0; i < FW_N(IMAGE); i++) {
		char *out = sanitize(fw_str(IMAGE[i]), FW_PRINT_NO_PIXELS);

		ck_assert_msg(
			fw_str_starts(fw_str(out), FW_STR("<img src=\"http://example.org/dir/x\"")), "%s", IMAGE[i]);
		free(out);
	}
}
END_TEST

START_TEST(any_soup)
{
	static const char *const BIT[] = {"<p>", "</p>", "<b>", "</b>", "<i>", "</i>", "<a href=x>", "</a>", "<table>",
		"</table>", "<tr>", "</tr>", "<td>", "</td>", "<li>", "</li>", "<ul>", "</ul>", "<div>", "</div>",
		"<h1>", "</h1>", "<pre>", "</pre>", "\n", " ", "x", "&amp;", "&lt;b&gt;", "<br>", "</br>", "<script>",
		"</script>", "<svg>", "</svg>", "<math>", "<style>", "</style>", "<!--", "-->", "<dd>", "<dt>", "<dl>",
		"</dl>", "<caption>", "<col>", "<tbody>", "<font size=1>", "<font size=2>", "</font>", "<span>",
		"</span>", "<form>", "</form>", "<select>", "</select>", "<img onx=1 src=javascript:a>",
		"<a href=data:x onx=y>", "<textarea>", "</textarea>", "<ruby>", "<rt>", "<rp>", "</ruby>",
		"<blockquote>", "</blockquote>", "<address>", "<center>", "<hr>", "<colgroup>", "<th>", "<thead>",
		"<object>", "</object>", "<button>", "<nobr>", "<title>", "<xmp>", "<", ">", "\"", "'", "=", "/",
		"\xff", "\xc3", "<p title=\"", "<template>", "</template>", "<image>", "<iframe>", "</iframe>",
		"<code>", "</code>", "&", "&#13;", "\r", "\f", "<wbr>", "<video>", "<video src=x>", "<audio poster=x>",
		"<iframe src=x>", "<embed src=//x.example/>", "<object data=y>", "<param name=movie value=z>",
		"<amp-youtube data-videoid=x>", "<svg aria-label=x>", "<a href=#n>", "<p id=n>",
		"<a name=user-content-n>", "<source src=x>", "<summary>", "<details>", "<!DOCTYPE html>",
		"<html><body>", "</body>", "<plaintext>"};
	uint64_t x = 88172645463325252u;

	for (int n = 0; n < 6000; n++) {
		char soup[1024];
		size_t len = 0;

		for (int k = 0; k < 2 + n % 30; k++) {
			const char *bit;

			x ^= x << 13, x ^= x >> 7, x ^= x << 17;
			bit = BIT[(x >> 20) % FW_N(BIT)];
			memcpy(soup + len, bit, strlen(bit));
			len += strlen(bit);
		}
		soup[len] = '\0';
		check_soup((struct fw_str){soup, len});
	}
}
END_TEST

/* The cost of all of it in processor time: the better of two runs. */
static double us_per_byte(const char *head, const char *bit, const char *middle, const char *bit2, size_t want)
{
	struct fw_buf in = FW_BUF_INIT(0);
	double best = 1e9;

	fw_buf_adds(&in, head);
	while (in.len < want)
		fw_buf_adds(&in, bit);
	fw_buf_adds(&in, middle);
	while (*bit2 && in.len < 2 * want)
		fw_buf_adds(&in, bit2);
	for (int i = 0; i < 2; i++) {
		struct fw_buf out = FW_BUF_INIT(0);
		clock_t start = clock();
		struct fw_arena a;

		ck_assert_int_eq(fw_html_sanitize(fw_buf_str(&in), BASE, 0, &out, NULL), 0);
		fw_arena_init(&a, 0);
		(void)fw_html_text(&a, fw_buf_str(&in));
		(void)fw_html_has_markup(fw_buf_str(&in));
		fw_arena_finish(&a);
		fw_buf_finish(&out);
		best = FW_MIN(best, ((double)(clock() - start) * 1e6 / CLOCKS_PER_SEC + 1000) / (double)in.len);
	}
	fw_buf_finish(&in);
	return best;
}

/* Shapes that make tree builders slow: the time per byte must not grow with the size. */
START_TEST(hostile_shapes_are_linear)
{
	static const struct {
		const char *head, *bit, *middle, *bit2;
	} SHAPE[] = {
		{"", "<div>", "", "</div>"},
		{"", "<b>", "", ""},
		{"", "<font size=1><p>", "", ""},
		{"", "<a href=x><b><i><u>", "", "<p>x"},
		{"", "<table>", "x", ""},
		{"", "<table><tr><td>", "", "</x>"},
		{"<p ", "a=b ", ">", ""},
		{"", "<span>", "", "</x>"},
		{"", "<", "", ""},
		{"", "&", "", ""},
		{"", "<!--", "", ""},
		{"", "<a b=\"", "", ""},
		{"", "<script>", "", ""},
		{"", "</p>", "", ""},
		{"", "<svg>", "", "</svg>"},
		{"", "<select>", "", ""},
		{"<b><font color=1><font color=2><i>", "<p>x</p></b><b>", "", ""},
		{"", "<ul><li>", "", ""},
		{"", "<dl><dd>", "", "</dd>"},
		{"<b>", "<div></b><b>", "", ""},
		{"<style>", "</", "", ""},
		{"", "]]>", "", ""},
		{"", "<img srcset='a 1x,b 2x,c", "", ""},
		{"<p style='", "color:red;", "'>", ""},
		{"", "<p><b><i>x</p>", "", ""},
		{"", "<iframe src=//x.example/>", "", "</iframe>"},
		{"", "<video><!---->", "", "<source>"},
		{"<video>", "<source>", "", "<track>"},
		{"", "<object><param>", "", ""},
		{"<object>", "<param>", "", ""},
		{"", "<svg><!---->", "", ""},
		{"", "<svg/> ", "", ""},
		{"", "<a href=#a id=b>", "", ""},
		{"<a href=#", "a#", ">", "#  "},
		{"", "<embed src=//x.example/>", "", ""},
		{"<iframe src=//x.example/>", "<a href=x>", "</iframe>", "<a>"},
		{"", "<x-y>", "", ""},
		{"", "<table><tr>x", "", ""},
	};

	for (size_t i = 0; i < FW_N(SHAPE); i++) {
		double small = us_per_byte(SHAPE[i].head, SHAPE[i].bit, SHAPE[i].middle, SHAPE[i].bit2, 1u << 17);
		double big = us_per_byte(SHAPE[i].head, SHAPE[i].bit, SHAPE[i].middle, SHAPE[i].bit2, 1u << 20);

		ck_assert_msg(big < 4 * small, "shape %zu, %s: %.3f us per byte at 128 KiB, %.3f at 1 MiB", i,
			SHAPE[i].bit, small, big);
	}
}
END_TEST

START_TEST(bent) /* too large for a tree: all visible text stays, and wrong nesting is closed */
{
	static const struct {
		const char *in, *want;
	} CASE[] = {
		{"<b>a<i>b</b>c</i>d", "<b>a<i>b</i></b>cd"},
		{"<table>x<tr>y<td>z</table>",
			"<table><tbody><tr><td>x</td></tr><tr><td>y</td><td>z</td></tr></tbody></table>"},
		{"<ul><li><b>a<li>b</ul>", "<ul><li><b>a</b></li><li>b</li></ul>"},
		{"<p><b>a<div>b", "<p><b>a</b></p><div>b</div>"},
		{"<a href=x><b>a<a href=y>b",
			"<a href=\"http://example.org/dir/x\" rel=\"noopener noreferrer\"><b>a</b></a>"
			"<a href=\"http://example.org/dir/y\" rel=\"noopener noreferrer\">b</a>"},
	};
	struct fw_buf in = FW_BUF_INIT(0);
	char *out;

	for (size_t i = 0; i < FW_N(CASE); i++)
		check_sanitized(CASE[i].in, CASE[i].want, FW_HTML_NO_TREE);
	while (in.len < 400000)
		fw_buf_adds(&in, CASE[0].in);
	out = sanitize(fw_buf_str(&in), 0);
	ck_assert_msg(fw_str_starts(fw_str(out), fw_str(CASE[0].want)), "%.100s", out);
	free(out);
	fw_buf_finish(&in);
}
END_TEST

START_TEST(limits_reported)
{
	struct fw_buf out = FW_BUF_INIT(10);
	struct fw_err err;

	ck_assert_int_eq(fw_html_sanitize(FW_STR("<p>more than ten bytes</p>"), BASE, 0, &out, &err), FW_ELIMIT);
	ck_assert_ptr_nonnull(strstr(err.text, "10 bytes"));
	ck_assert_int_eq(fw_html_sanitize(FW_STR("x"), BASE, 0, &out, &err), FW_ELIMIT);
	fw_buf_finish(&out);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit parse html");
	TCase *t = tcase_create("html");

	tcase_set_timeout(t, 100);
	tcase_add_test(t, elements_sorted_and_found);
	tcase_add_test(t, markup_or_not);
	tcase_add_test(t, as_plain_text);
	tcase_add_test(t, kept_html);
	tcase_add_test(t, removed_html);
	tcase_add_test(t, embeds_leave_a_link);
	tcase_add_test(t, players_without_an_address);
	tcase_add_test(t, links_to_call_and_to_share);
	tcase_add_test(t, links_within);
	tcase_add_test(t, embeds_listed);
	tcase_add_test(t, all_removed);
	tcase_add_test(t, discovers_in_order);
	tcase_add_test(t, link_header);
	tcase_add_test(t, mutations);
	tcase_add_test(t, pixels_go);
	tcase_add_test(t, any_soup);
	tcase_add_test(t, hostile_shapes_are_linear);
	tcase_add_test(t, bent);
	tcase_add_test(t, limits_reported);
	suite_add_tcase(s, t);
	return run_suite(s);
}
