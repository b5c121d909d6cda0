/* SPDX-License-Identifier: ISC */
/* Dates (FMT-07): every spelling seen in feeds, and each instant in fifteen forms. */
#include <check.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/str.h"
#include "parse/date/date.h"
#include "../../suite.h"

static const struct {
	const char *in, *want;
} GOOD[] = {
	/* RFC 822 */
	{"Thu, 01 Jan 2004 19:48:21 GMT", "2004-01-01T19:48:21Z"},
	{"Thu, 1 Jan 2004 19:48:21 +0200", "2004-01-01T17:48:21Z"},
	{"Thu, 01 Jan 04 19:48:21 GMT", "2004-01-01T19:48:21Z"},
	{"01 Jan 2004", "2004-01-01T00:00:00Z"},
	{"01 Jan 2004 00:00 GMT", "2004-01-01T00:00:00Z"},
	{"1 Jan 2004 5:07 EST", "2004-01-01T10:07:00Z"},
	{"Mon, 01 Jan 2004 19:48:21 GMT", "2004-01-01T19:48:21Z"}, /* it was a Thursday */
	{"Mon, 26 January 2004 16:31:00 EST", "2004-01-26T21:31:00Z"},
	{"Mon, 26 Jan 2004 16:31:00 ET", "2004-01-26T21:31:00Z"},
	{"Mon, 26 Jan 2004 16:31:00 AT", "2004-01-26T20:31:00Z"},
	{"Mon, 26 Jan 2004 16:31:00 CT", "2004-01-26T22:31:00Z"},
	{"Mon, 26 Jan 2004 16:31:00 MT", "2004-01-26T23:31:00Z"},
	{"Mon, 26 Jan 2004 16:31:00 PT", "2004-01-27T00:31:00Z"},
	{"Mon, 26 Jan 2004 16:31:00 PDT", "2004-01-26T23:31:00Z"},
	{"Mon, 26 Jan 2004 16:31:00 BST", "2004-01-26T15:31:00Z"},
	{"Thu, 30 Apr 2015 08:57:00 MEST", "2015-04-30T06:57:00Z"},
	{"Thu, 30 Apr 2015 08:57:00 MEZ", "2015-04-30T07:57:00Z"},
	{"Thu, 30 Apr 2015 08:57:00 IST", "2015-04-30T03:27:00Z"},
	{"Thu, 30 Apr 2015 08:57:00 NST", "2015-04-30T12:27:00Z"},
	{"Thu, 30 Apr 2015 08:57:00 A", "2015-04-30T09:57:00Z"},
	{"Thu, 30 Apr 2015 08:57:00 M", "2015-04-30T20:57:00Z"},
	{"Thu, 30 Apr 2015 08:57:00 N", "2015-04-30T07:57:00Z"},
	{"Thu, 30 Apr 2015 08:57:00 Y", "2015-04-29T20:57:00Z"},
	{"Thu, 30 Apr 2015 08:57:00 K", "2015-04-30T18:57:00Z"},
	{"Thu, 30 Apr 2015 08:57:00 Z", "2015-04-30T08:57:00Z"},
	{"Thu, 30 Apr 2015 08:57:00 XYZT", "2015-04-30T08:57:00Z"}, /* an unknown zone: UTC */
	{"Wed, 19 Aug 2009 18:28:00 Etc/GMT", "2009-08-19T18:28:00Z"},
	{"Wed, 19 Aug 2009 18:28:00 GMT+2", "2009-08-19T16:28:00Z"},
	{"Wed, 19 Aug 2009 18:28:00 GMT +02:00", "2009-08-19T16:28:00Z"},
	{"Wed, 19 Feb 2012 22:40:00 GMT-01:01", "2012-02-19T23:41:00Z"},
	{"Wed, 19 Aug 2009 18:28:00 UTC+0530", "2009-08-19T12:58:00Z"},
	/* names of places: an hour more in summer (FMT-07) */
	{"Wed, 19 Aug 2009 18:28:00 EST5EDT", "2009-08-19T22:28:00Z"},
	{"Sat, 05 Nov 2005 23:04:00 Central European Time", "2005-11-05T22:04:00Z"},
	{"Sat, 05 Nov 2005 23:04:00 Eastern European Time", "2005-11-05T21:04:00Z"},
	{"Sat, 05 Nov 2005 23:04:00 W. Europe Standard Time", "2005-11-05T22:04:00Z"},
	{"Sat, 06 Aug 2005 23:04:00 W. Europe Daylight Time", "2005-08-06T21:04:00Z"},
	{"Sat, 05 Nov 2005 23:04:00 E. Australia Standard Time", "2005-11-05T13:04:00Z"},
	{"Sat, 05 Nov 2005 23:04:00 AUS Eastern Standard Time", "2005-11-05T12:04:00Z"},
	{"Sat, 05 Nov 2005 23:04:00 Eastern Standard Time", "2005-11-06T04:04:00Z"},
	{"Sat, 05 Nov 2005 23:04:00 Eastern Time (US & Canada)", "2005-11-06T04:04:00Z"},
	{"Sat, 05 Nov 2005 23:04:00 EST time", "2005-11-06T04:04:00Z"},
	{"Sat, 05 Nov 2005 23:04:00 local time", "2005-11-05T23:04:00Z"},
	{"Sat, 05 Nov 2005 23:04:00 W. Nowhere Standard Time", "2005-11-05T23:04:00Z"},
	{"2017-06-13T03:18:00+00:0", "2017-06-13T03:18:00Z"},
	{"2017-06-13T03:18:00+05:3", "2017-06-12T21:48:00Z"},
	{"Thu, 19 Feb 2009 18:28:00 EST5EDT", "2009-02-19T23:28:00Z"},
	{"Wed, 19 Aug 2009 18:28:00 ET", "2009-08-19T22:28:00Z"},
	{"Wed, 19 Aug 2009 18:28:00 PT", "2009-08-20T01:28:00Z"},
	{"Wed, 19 Aug 2009 18:28:00 Europe/Berlin", "2009-08-19T16:28:00Z"},
	{"2009-02-19T18:28:00 Europe/Berlin", "2009-02-19T17:28:00Z"},
	{"2009-02-19T18:28:00+03:00[Europe/Berlin]", "2009-02-19T15:28:00Z"},
	{"Wed, 19 Aug 2009 18:28:00 America/New_York", "2009-08-19T22:28:00Z"},
	{"Wed, 19 Aug 2009 18:28:00 US/Pacific", "2009-08-20T01:28:00Z"},
	{"Wed, 19 Aug 2009 18:28:00 America/Argentina/Buenos_Aires", "2009-08-19T21:28:00Z"},
	{"Wed, 19 Aug 2009 18:28:00 Asia/Kolkata", "2009-08-19T12:58:00Z"},
	{"Wed, 19 Aug 2009 18:28:00 Australia/Sydney", "2009-08-19T08:28:00Z"},
	{"Thu, 19 Feb 2009 18:28:00 Australia/Sydney", "2009-02-19T07:28:00Z"},
	{"Thu, 19 Feb 2009 18:28:00 Pacific/Auckland", "2009-02-19T05:28:00Z"},
	{"Wed, 19 Aug 2009 18:28:00 Etc/UTC", "2009-08-19T18:28:00Z"},
	{"Wed, 19 Aug 2009 18:28:00 Europe/Atlantis", "2009-08-19T18:28:00Z"}, /* an unknown place: UTC */
	{"29 Mar 2009 01:59 Europe/Berlin", "2009-03-29T00:59:00Z"}, /* the hour before summer time, and its first */
	{"29 Mar 2009 03:00 Europe/Berlin", "2009-03-29T01:00:00Z"},
	{"25 Oct 2009 02:59 Europe/Berlin", "2009-10-25T00:59:00Z"},
	{"25 Oct 2009 03:00 Europe/Berlin", "2009-10-25T02:00:00Z"},
	{"8 Mar 2009 01:59 America/Chicago", "2009-03-08T07:59:00Z"},
	{"8 Mar 2009 03:00 America/Chicago", "2009-03-08T08:00:00Z"},
	{"1 Nov 2009 02:00 America/Chicago", "2009-11-01T08:00:00Z"},
	{"1 Apr 2006 12:00 America/Chicago", "2006-04-01T18:00:00Z"}, /* the rules before 2007 */
	{"2 Apr 2006 12:00 America/Chicago", "2006-04-02T17:00:00Z"},
	{"29 Oct 2006 12:00 America/Chicago", "2006-10-29T18:00:00Z"},
	{"5 Apr 2009 02:59 Australia/Melbourne", "2009-04-04T15:59:00Z"},
	{"5 Apr 2009 03:00 Australia/Melbourne", "2009-04-04T17:00:00Z"},
	{"27 Sep 2009 03:00 Pacific/Auckland", "2009-09-26T14:00:00Z"},
	{"Wed, 19 Aug 2009 18:28:00 MET DST", "2009-08-19T16:28:00Z"},
	{"Wed, 19 Aug 2009 18:28:00 +02:00", "2009-08-19T16:28:00Z"},
	{"Wed, 19 Aug 2009 18:28:00 -5", "2009-08-19T23:28:00Z"},
	{"Wed, 19 Aug 2009 18:28:00 -530", "2009-08-19T23:58:00Z"},
	{"Wed, 19 Aug 2009 18:28:00-0700", "2009-08-20T01:28:00Z"},
	{"Wed, 19 Aug 2009 18:28:00 -0700 (PDT)", "2009-08-20T01:28:00Z"},
	{"Wed, 19 Aug 2009 (a comment (nested) 12:00) 18:28:00 GMT", "2009-08-19T18:28:00Z"},
	{"Wed,19 Aug 2009 18:28:00 GMT", "2009-08-19T18:28:00Z"},
	{"Wed , 19 Aug 2009  18:28:00   GMT", "2009-08-19T18:28:00Z"},
	{" \n\tWed, 19 Aug 2009 18:28:00 GMT\n ", "2009-08-19T18:28:00Z"},
	{"Wed, 19-Aug-2009 18:28:00 GMT", "2009-08-19T18:28:00Z"},
	{"Wednesday, 19-Aug-09 18:28:00 GMT", "2009-08-19T18:28:00Z"},
	{"WED, 19 AUG 2009 18:28:00 gmt", "2009-08-19T18:28:00Z"},
	{"Wed, Aug 19, 2009 18:28:00 GMT", "2009-08-19T18:28:00Z"},
	{"Wed Aug 19, 2009 6:28 PM", "2009-08-19T18:28:00Z"},
	{"August 19th, 2009 at 6:28 p.m. EDT", "2009-08-19T22:28:00Z"},
	{"Mon, 13 Feb, 2012 06:28:00 UTC", "2012-02-13T06:28:00Z"},
	{"Aug 19, 2009 12:05 AM", "2009-08-19T00:05:00Z"},
	{"Aug 19, 2009 12:05 pm", "2009-08-19T12:05:00Z"},
	{"Aug 19, 2009 23:05 PM", "2009-08-19T23:05:00Z"},
	{"Sept 5 2009", "2009-09-05T00:00:00Z"},
	{"January 2004", "2004-01-01T00:00:00Z"},
	{"Thu, 31 Dec 98 23:59:60 GMT", "1999-01-01T00:00:00Z"},
	{"Thu, 31 Dec 2009 24:00:00 GMT", "2010-01-01T00:00:00Z"},
	{"01 Jan 104 00:00:00 GMT", "2004-01-01T00:00:00Z"},
	{"01 Jan 68 00:00:00 GMT", "2068-01-01T00:00:00Z"},
	{"01 Jan 69 00:00:00 GMT", "1969-01-01T00:00:00Z"},
	{"1 Jan 2004 0930 GMT", "2004-01-01T09:30:00Z"},
	{"01 Jan 2004 19.48.21 +0700", "2004-01-01T12:48:21Z"},
	{"Fri, 11 Mar 2016 01:15:00 +3000", "2016-03-11T01:15:00Z"}, /* an offset that does not exist */
	{"Wed, 19 Aug 2009 18:28:00 +2575", "2009-08-19T18:28:00Z"},
	{"Thurs, 01 Januray 2004 19:48:21 GMT", "2004-01-01T19:48:21Z"},
	{"Wed, 05 Febuary 2014 10:00:00 GMT", "2014-02-05T10:00:00Z"},
	{"Mon, 5 Sepember 2011 10:00:00 GMT", "2011-09-05T10:00:00Z"},
	{"Mon, 5 Ocotber 2011 10:00:00 GMT", "2011-10-05T10:00:00Z"},
	{"Mon, 5 Novemeber 2011 10:00:00 HADT", "2011-11-05T19:00:00Z"},
	{"08-JUL-2004 11.23.45.000000 PM", "2004-07-08T23:23:45Z"}, /* Oracle */
	{"Jul 8 2004 11:56PM", "2004-07-08T23:56:00Z"},             /* SQL Server */
	{"2004/07/08 23:56:58", "2004-07-08T23:56:58Z"},            /* Perforce */
	/* W3CDTF, RFC 3339 */
	{"2003-12-31T10:14:55-08:00", "2003-12-31T18:14:55Z"},
	{"2003-12-31T10:14:55Z", "2003-12-31T10:14:55Z"},
	{"2003-12-31t10:14:55z", "2003-12-31T10:14:55Z"},
	{"2003-12-31T10:14:55.25Z", "2003-12-31T10:14:55.250Z"},
	{"2003-12-31T10:14:55.123456789+01:00", "2003-12-31T09:14:55.123Z"},
	{"2003-12-31T10:14:55+0100", "2003-12-31T09:14:55Z"},
	{"2003-12-31T10:14:55+01", "2003-12-31T09:14:55Z"},
	{"2003-12-31T10:14:55", "2003-12-31T10:14:55Z"},
	{"2003-12-31T10:14Z", "2003-12-31T10:14:00Z"},
	{"2003-12-31T10:14-08:00", "2003-12-31T18:14:00Z"},
	{"2003-12-31T10Z", "2003-12-31T10:00:00Z"},
	{"2003-12-31 10:14:55 +0000", "2003-12-31T10:14:55Z"},
	{"2003-12-31 10:14:55 UTC", "2003-12-31T10:14:55Z"},
	{"2003-12-31T10:14:55 Z", "2003-12-31T10:14:55Z"},
	{"2003-12-31T10:14:55.000+00:00Z", "2003-12-31T10:14:55Z"},
	{"2003", "2003-01-01T00:00:00Z"},
	{"2003-12", "2003-12-01T00:00:00Z"},
	{"2003-12-31", "2003-12-31T00:00:00Z"},
	{"2003-1-2", "2003-01-02T00:00:00Z"},
	{"2003/12/31 10:14", "2003-12-31T10:14:00Z"},
	{"2003.12.31", "2003-12-31T00:00:00Z"},
	{"2003-12-31T24:00:00Z", "2004-01-01T00:00:00Z"},
	{"2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z"},
	/* ISO 8601 */
	{"20031231", "2003-12-31T00:00:00Z"},
	{"20031231T101455Z", "2003-12-31T10:14:55Z"},
	{"20031231T1014", "2003-12-31T10:14:00Z"},
	{"20031231101455", "2003-12-31T10:14:55Z"},
	{"-03-12", "2003-12-01T00:00:00Z"},
	{"-0312", "2003-12-01T00:00:00Z"},
	{"-03-12-31", "2003-12-31T00:00:00Z"},
	{"03-12-31", "2003-12-31T00:00:00Z"},
	{"031231", "2003-12-31T00:00:00Z"},
	{"2003-335", "2003-12-01T00:00:00Z"},
	{"2003335", "2003-12-01T00:00:00Z"},
	{"03-335", "2003-12-01T00:00:00Z"},
	{"03335", "2003-12-01T00:00:00Z"},
	{"2004-366T12:00:00Z", "2004-12-31T12:00:00Z"},
	{"2004-W53-6", "2005-01-01T00:00:00Z"},
	{"2004-W53", "2004-12-27T00:00:00Z"},
	{"2009W017T10:00Z", "2009-01-04T10:00:00Z"},
	/* asctime and similar forms */
	{"Sun Jan  4 16:29:06 2004", "2004-01-04T16:29:06Z"},
	{"Sun Jan 4 16:29:06 PST 2004", "2004-01-05T00:29:06Z"},
	{"Sun Jan 04 16:29:06 +0100 2004", "2004-01-04T15:29:06Z"},
	{"Thu Apr 05 2012 12:12:12 GMT+0200 (CEST)", "2012-04-05T10:12:12Z"},
	/* databases, version control, programs */
	{"2004-07-08 23:56:58.0", "2004-07-08T23:56:58Z"},
	{"2004-07-08 23:56:58", "2004-07-08T23:56:58Z"},
	{"Fri, 2006/09/15 08:19:53 EDT", "2006-09-15T12:19:53Z"},
	{"1072865695", "2003-12-31T10:14:55Z"},
	{"1072865695.5", "2003-12-31T10:14:55Z"},
	{"1072865695250", "2003-12-31T10:14:55.250Z"},
	{"1072865695250000", "2003-12-31T10:14:55.250Z"},
	{"/Date(1072865695250+0100)/", "2003-12-31T10:14:55.250Z"},
	/* only numbers */
	{"12/31/2003", "2003-12-31T00:00:00Z"},
	{"31/12/2003 10:14", "2003-12-31T10:14:00Z"},
	{"31.12.2003", "2003-12-31T00:00:00Z"},
	{"31-12-2003 10:14:55", "2003-12-31T10:14:55Z"},
	{"12/31/2003 10:14:55 AM", "2003-12-31T10:14:55Z"},
	{"5/6/03", "2003-05-06T00:00:00Z"},
	{"5.6.03", "2003-06-05T00:00:00Z"},
	{"12/2003", "2003-12-01T00:00:00Z"},
	/* Korean (nate, onblog), Greek, Hungarian: as in feedparser */
	{"2004-05-25 오후 11:23:17", "2004-05-25T14:23:17Z"},
	{"2004-05-25 오전 01:08:06", "2004-05-24T16:08:06Z"},
	{"2004년 05월 28일  01:31:15", "2004-05-27T16:31:15Z"},
	{"2004년 5월 28일 오후 3시 31분", "2004-05-28T06:31:00Z"},
	{"Κυρ, 11 Ιούλ 2004 12:00:00 EST", "2004-07-11T17:00:00Z"},
	{"Πέμ, 01 Μαΐου 2003 12:00:00 GMT", "2003-05-01T12:00:00Z"},
	{"Σάβ, 3 Αύγ 2002 12:00:00 GMT", "2002-08-03T12:00:00Z"},
	{"2004-július-13T9:15-05:00", "2004-07-13T14:15:00Z"},
	{"2004-május-13T09:15+02:00", "2004-05-13T07:15:00Z"},
	{"2004. október 13., szerda 9:15", "2004-10-13T09:15:00Z"},
	/* other languages */
	{"2004年5月28日 11:23", "2004-05-28T11:23:00Z"},
	{"2004年05月28日下午3时20分", "2004-05-28T15:20:00Z"},
	{"2004年5月28日(金) 午前9時5分7秒", "2004-05-28T09:05:07Z"},
	{"2004年5月", "2004-05-01T00:00:00Z"},
	{"２００４年５月２８日", "2004-05-28T00:00:00Z"},
	{"星期五, 28 五月 2004", NULL}, /* a month in ideographs: refused, not misread */
	{"Пт, 28 мая 2004 11:23:17 +0400", "2004-05-28T07:23:17Z"},
	{"28 Мая 2004 г., 11:23 МСК", "2004-05-28T08:23:00Z"},
	{"Сб, 18 дек 2010 10:00:00 +0300", "2010-12-18T07:00:00Z"},
	{"17 серпня 2012", "2012-08-17T00:00:00Z"},
	{"17 січня 2012", "2012-01-17T00:00:00Z"},
	{"Fr, 28 Mai 2004 11:23:17 +0200", "2004-05-28T09:23:17Z"},
	{"Mi, 05. März 2008 10:00:00 MEZ", "2008-03-05T09:00:00Z"},
	{"Do, 11 Dez 2008 10:00 Uhr", "2008-12-11T10:00:00Z"},
	{"5. Jänner 2008", "2008-01-05T00:00:00Z"},
	{"ven., 28 mai 2004 11:23:17 +0200", "2004-05-28T09:23:17Z"},
	{"mar. 5 janv. 2010 10h15", "2010-01-05T10:15:00Z"},
	{"mar., 02 mars 2010 10:15:00 +0100", "2010-03-02T09:15:00Z"},
	{"jeu, 12 Févr 2009 08:00:00 GMT", "2009-02-12T08:00:00Z"},
	{"1er août 2009", "2009-08-01T00:00:00Z"},
	{"lun, 20 dic 2010 10:00:00 +0100", "2010-12-20T09:00:00Z"},
	{"5 de Enero de 2010, 12:30 h", "2010-01-05T12:30:00Z"},
	{"sáb, 02 ago 2008 10:00:00 GMT", "2008-08-02T10:00:00Z"},
	{"gio, 05 giu 2008 10:00:00 +0200", "2008-06-05T08:00:00Z"},
	{"mer, 10 set 2008 10:00:00 +0200", "2008-09-10T08:00:00Z"},
	{"Ter, 03 Fev 2009 10:00:00 -0300", "2009-02-03T13:00:00Z"},
	{"qui, 15 out 2009 10:00:00 -0300", "2009-10-15T13:00:00Z"},
	{"do, 05 mrt 2009 10:00:00 +0100", "2009-03-05T09:00:00Z"},
	{"vr, 08 mei 2009 10:00:00 +0200", "2009-05-08T08:00:00Z"},
	{"pt, 10 paź 2008 10:00:00 +0200", "2008-10-10T08:00:00Z"},
	{"5 lipca 2008", "2008-07-05T00:00:00Z"},
	{"5 lis 2008", "2008-11-05T00:00:00Z"},
	{"pá, 5. září 2008 10:00:00 +0200", "2008-09-05T08:00:00Z"},
	{"5. července 2008", "2008-07-05T00:00:00Z"},
	{"5. června 2008", "2008-06-05T00:00:00Z"},
	{"Sal, 05 Ağu 2008 10:00:00 +0300", "2008-08-05T07:00:00Z"},
	{"5 Şubat 2008", "2008-02-05T00:00:00Z"},
	{"5 Kasım 2008", "2008-11-05T00:00:00Z"},
	{"tis, 05 maj 2009 10:00:00 +0200", "2009-05-05T08:00:00Z"},
	{"ma 5. tammikuuta 2009", "2009-01-05T00:00:00Z"},
	{"จ., 02 พ.ค. 2005 18:05:53 +0000", "2005-05-02T18:05:53Z"},
	{"พ., 04 พ.ย. 2548 19:34:43 +0700", "2005-11-04T12:34:43Z"},
	{"4 พฤษภาคม 2548", "2005-05-04T00:00:00Z"},
	{"5 أغسطس 2009", "2009-08-05T00:00:00Z"},
	{"٥/١٢/٢٠٠٩", "2009-05-12T00:00:00Z"},
};

static const char *const BAD[] = {"", " ", "x", "now", "yesterday", "12:00", "Thu", "May", "5 May", "Sept 11",
	"Thu, 31 Jun 2004 19:48:21 GMT", "30 Feb 2004", "29 Feb 2003", "2003-02-29", "2003-13-01", "2003-00-10",
	"2003-12-00", "2003-12-32", "0000-00-00 00:00:00", "0001-01-01T00:00:00Z", "-0001-11-30T00:00:00+00:00",
	"2003-12-31T25:14:55Z", "2003-12-31T10:61:55Z", "2003-12-31T10:14:61Z", "2003-12-31T24:00:01Z", "2003-366",
	"2003-000", "2003-W54", "2003-W00", "2003-W01-8", "99999999999999999999", "12400", "123", "5 Sector 2004",
	"5 Decoder 2004", "12345678", "20031331", "1 2 3 4 5", "5 May 12004", "//////", "1/1/1/1/1/1/1", "13/13/2003",
	"2003-12-31-10-14", "0", "00000000", "(", "((((((", ")", "T", "W", "年月日", "-", "+0000",
	"http://example.org/2003", "v1.2.3.4", "\xff\xfe\xfd", "/Date()/", "/Date(x)/", "/Date(99999999999999999999)/"};

START_TEST(spellings_read)
{
	char text[FW_RFC3339_MAX];
	int64_t t = 0;

	for (size_t i = 0; i < FW_N(GOOD); i++) {
		bool ok = fw_date_parse(fw_str(GOOD[i].in), &t, NULL);

		if (!GOOD[i].want) {
			ck_assert_msg(!ok, "%s: read as %s", GOOD[i].in, fw_rfc3339(text, t));
			continue;
		}
		ck_assert_msg(ok, "%s: not read", GOOD[i].in);
		ck_assert_msg(strcmp(fw_rfc3339(text, t), GOOD[i].want) == 0, "%s: %s, want %s", GOOD[i].in, text,
			GOOD[i].want);
	}
}
END_TEST

START_TEST(unknown_zones_are_reported)
{
	static const char *const UNKNOWN[] = {"Thu, 30 Apr 2015 08:57:00 XYZT", "Thu Apr 30 08:57:00 XYZT 2015",
		"Thu, 30 Apr 2015 08:57:00 local time", "Thu, 30 Apr 2015 08:57:00 W. Nowhere Standard Time",
		"Thu, 30 Apr 2015 08:57:00 Europe/Atlantis", "Thu, 30 Apr 2015 08:57:00 +9900"};
	static const char *const KNOWN[] = {"Thu, 30 Apr 2015 08:57:00", "Thu, 30 Apr 2015 08:57:00 GMT",
		"30 Apr 2015 08:57 Uhr", "Apr 30 08:57:00 2015", "2015-04-30", "30 Apr 2015 08:57 Etc/GMT",
		"30 Apr 2015 08:57:00 -0000", "8:57:00 Thu 30 Apr 2015", "08:57, 30 april 2015"};
	int64_t t = 0;
	bool unknown;

	for (size_t i = 0; i < FW_N(UNKNOWN); i++)
		ck_assert_msg(fw_date_parse(fw_str(UNKNOWN[i]), &t, &unknown) && unknown && t == 1430384220000, "%s",
			UNKNOWN[i]);
	for (size_t i = 0; i < FW_N(KNOWN); i++)
		ck_assert_msg(fw_date_parse(fw_str(KNOWN[i]), &t, &unknown) && !unknown, "%s", KNOWN[i]);
}
END_TEST

START_TEST(impossible_refused)
{
	char text[FW_RFC3339_MAX];
	int64_t t = 0;

	for (size_t i = 0; i < FW_N(BAD); i++)
		ck_assert_msg(!fw_date_parse(fw_str(BAD[i]), &t, NULL), "%s: read as %s", BAD[i], fw_rfc3339(text, t));
	ck_assert(!fw_date_parse(FW_STR_NONE, &t, NULL));
}
END_TEST

START_TEST(long_input_bounded)
{
	static char big[1 << 20];
	int64_t t;

	memset(big, '(', sizeof(big));
	ck_assert(!fw_date_parse((struct fw_str){big, sizeof(big)}, &t, NULL));
	for (size_t i = 0; i < sizeof(big); i++)
		big[i] = i & 1 ? '1' : 'a';
	ck_assert(!fw_date_parse((struct fw_str){big, sizeof(big)}, &t, NULL));
	memset(big, 0xfb, sizeof(big)); /* each becomes three bytes when folded */
	ck_assert(!fw_date_parse((struct fw_str){big, sizeof(big)}, &t, NULL));
	memset(big, ' ', sizeof(big));
	memcpy(big + sizeof(big) - 40, "Thu, 01 Jan 2004 19:48:21 GMT", 29); /* white space around it is ignored */
	ck_assert(fw_date_parse((struct fw_str){big, sizeof(big)}, &t, NULL) && t == 1072986501000);
}
END_TEST

/*
 * Writes an instant in one of the forms; zone in minutes if the form has one. Returns the part of
 * the instant that the form holds.
 */
static int64_t format(int form, int64_t t, int zone, char *dst, size_t cap)
{
	static const char *const DAY[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
	static const char *const MONTH[] = {
		"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
	static const char *const GERMAN[] = {"Januar", "Februar", "März", "April", "Mai", "Juni", "Juli", "August",
		"September", "Oktober", "November", "Dezember"};
	static const char *const RUSSIAN[] = {"января", "февраля", "марта", "апреля", "мая", "июня", "июля", "августа",
		"сентября", "октября", "ноября", "декабря"};
	struct fw_civil c;
	int64_t second = t / 1000 * 1000, minute = t / 60000 * 60000;
	unsigned y, mo, d, h, mi, s;
	char sign = zone < 0 ? '-' : '+';
	unsigned zh = (unsigned)abs(zone) / 60, zm = (unsigned)abs(zone) % 60;

	if (form == 4 || form == 5 || form == 8 || form == 9 || form == 12 || form == 13 || form >= 15)
		zone = 0;
	fw_civil_from_ms(t + zone * FW_MINUTE_MS, &c);
	y = (unsigned)c.year, mo = (unsigned)c.month, d = (unsigned)c.day, h = (unsigned)c.hour;
	mi = (unsigned)c.minute, s = (unsigned)c.second;
	switch (form) {
	case 0:
		(void)fw_snprintf(dst, cap, "%04u-%02u-%02uT%02u:%02u:%02u.%03u%c%02u:%02u", y, mo, d, h, mi, s,
			(unsigned)c.ms, sign, zh, zm);
		return t;
	case 1:
		(void)fw_snprintf(dst, cap, "%s, %02u %s %04u %02u:%02u:%02u %c%02u%02u", DAY[c.weekday], d,
			MONTH[mo - 1], y, h, mi, s, sign, zh, zm);
		return second;
	case 2:
		(void)fw_snprintf(
			dst, cap, "%u %s %04u %u:%02u:%02u GMT%c%u:%02u", d, MONTH[mo - 1], y, h, mi, s, sign, zh, zm);
		return second;
	case 3:
		(void)fw_snprintf(dst, cap, "%s %s %2u %02u:%02u:%02u %c%02u%02u %04u", DAY[c.weekday], MONTH[mo - 1],
			d, h, mi, s, sign, zh, zm, y);
		return second;
	case 4:
		(void)fw_snprintf(dst, cap, "%04u%02u%02uT%02u%02u%02uZ", y, mo, d, h, mi, s);
		return second;
	case 5:
		(void)fw_snprintf(dst, cap, "%04u-%03uT%02u:%02u:%02uZ", y, (unsigned)c.yearday, h, mi, s);
		return second;
	case 6:
		(void)fw_snprintf(dst, cap, "%u. %s %04u %02u:%02u:%02u %c%02u:%02u", d, GERMAN[mo - 1], y, h, mi, s,
			sign, zh, zm);
		return second;
	case 7:
		(void)fw_snprintf(dst, cap, "%u %s %04u %02u:%02u:%02u %c%02u%02u", d, RUSSIAN[mo - 1], y, h, mi, s,
			sign, zh, zm);
		return second;
	case 8:
		(void)fw_snprintf(dst, cap, "%04u-%02u-%02u %02u:%02u:%02u", y, mo, d, h, mi, s);
		return second;
	case 9:
		(void)fw_snprintf(
			dst, cap, "%u/%u/%04u %u:%02u %s", mo, d, y, h % 12 ? h % 12 : 12, mi, h < 12 ? "AM" : "PM");
		return minute;
	case 10:
		(void)fw_snprintf(
			dst, cap, "%s %u, %04u %02u:%02u %c%02u:%02u", MONTH[mo - 1], d, y, h, mi, sign, zh, zm);
		return minute;
	case 11:
		(void)fw_snprintf(dst, cap, "%04u年%u月%u日 %u:%02u:%02u %c%02u%02u", y, mo, d, h, mi, s, sign, zh, zm);
		return second;
	case 12:
		(void)fw_snprintf(dst, cap, "%lld", (long long)(t / 1000));
		return second;
	case 13:
		(void)fw_snprintf(dst, cap, "%lld", (long long)t);
		return t;
	case 14:
		(void)fw_snprintf(dst, cap, "%s, %04u/%02u/%02u %02u:%02u:%02u UTC%c%02u%02u", DAY[c.weekday], y, mo, d,
			h, mi, s, sign, zh, zm);
		return second;
	case 15:
		fw_http_date(dst, t);
		return second;
	default:
		(void)fw_snprintf(dst, cap, "%02u.%02u.%04u %02u:%02u:%02u", d, mo, y, h, mi, s);
		return second;
	}
}

START_TEST(every_instant_comes_back)
{
	uint64_t x = 88172645463325252u;

	for (int n = 0; n < 20000; n++) {
		char text[100], want_text[FW_RFC3339_MAX], got_text[FW_RFC3339_MAX];
		int64_t t, want, got = 0;

		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		t = 200000000000 + (int64_t)(x % UINT64_C(3800000000000)); /* 1976 to 2096 */
		want = format(n % 17, t, (int)(x >> 40 & 0x7ff) % 1680 - 840, text, sizeof(text));
		ck_assert_msg(fw_date_parse(fw_str(text), &got, NULL), "%s: not read", text);
		ck_assert_msg(
			got == want, "%s: %s, want %s", text, fw_rfc3339(got_text, got), fw_rfc3339(want_text, want));
	}
}
END_TEST

/* Any bytes get a result, and no byte outside the string is read. */
START_TEST(any_bytes)
{
	static const char soup[] = "0123456789 :-/+.,TZWtzw()'amp\xe5\xb9\xb4\xec\x9b\x94JanMay\xff\xc3";
	uint64_t x = 2463534242u;

	for (int n = 0; n < 20000; n++) {
		size_t len = (size_t)(n % 60);
		char *s = malloc(len + 1);
		int64_t t;

		for (size_t i = 0; i < len; i++) {
			x ^= x << 13, x ^= x >> 7, x ^= x << 17;
			s[i] = soup[x % (sizeof(soup) - 1)];
		}
		if (fw_date_parse((struct fw_str){s, len}, &t, NULL))
			ck_assert(t >= fw_time_ms(999, 12, 30, 0, 0, 0, 0) && t <= fw_time_ms(10000, 1, 3, 0, 0, 0, 0));
		free(s);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unit parse date");
	TCase *t = tcase_create("date");

	tcase_add_test(t, spellings_read);
	tcase_add_test(t, unknown_zones_are_reported);
	tcase_add_test(t, impossible_refused);
	tcase_add_test(t, long_input_bounded);
	tcase_add_test(t, every_instant_comes_back);
	tcase_add_test(t, any_bytes);
	suite_add_tcase(s, t);
	return run_suite(s);
}
