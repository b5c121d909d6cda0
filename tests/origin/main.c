/* SPDX-License-Identifier: ISC */
/* The program origin: options, the URL of each feed, latencies. origin.h describes its parts. */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "origin.h"

struct origin origin;

static const char usage[] =
	"usage: origin --docs DIR [--feeds N] [options]\n"
	"\n"
	"A web server for tests on loopback: N virtual feeds with the documents of DIR, which misbehave by plan.\n"
	"It prints \"listening PORT\" on stdout when ready. SIGTERM ends it; SIGUSR1 prints totals on stderr.\n"
	"\n"
	"  --docs DIR          n documents; feed i has document i mod n (sorted by name)\n"
	"  --feeds N           virtual feeds (default: one per document)\n"
	"  --hosts H           number of hosts (default: one per feed); feed i is on host i mod H, from 127.1.0.1 on\n"
	"  --port P            0 (default): any free port\n"
	"  --print-urls FILE   write all feed URLs, one a line (- for stdout)\n"
	"  --latency SPEC      fixed:MS, lognormal:MEDIAN_MS:SIGMA, or a file with a number of ms per line\n"
	"  --seed S            for latencies\n"
	"  --plan 'SEL PLAN'   the plan of some feeds, can be repeated; SEL: 7, 10-19, %5 (each fifth), %5=2, *\n"
	"  --plans FILE        such lines from a file; the last line that matches a feed wins\n"
	"  --log FILE          one JSON line per request\n"
	"  --no-keep-alive     close after each response; with TLS, without session resumption\n"
	"  --tls CERT KEY      speak TLS (PEM files)\n"
	"  --with-parent       end when the parent process ends\n"
	"\n"
	"Paths: /feed/I; /with/PLAN/feed/I (with this plan); /doc/N or /doc/NAME (a document without a plan);\n"
	"/_stats, /_stats?hosts (totals as JSON; the log is flushed first); /_urls.\n"
	"\n";

void die(const char *fmt, ...)
{
	va_list ap;

	fputs("origin: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

void origin_host(char dst[INET_ADDRSTRLEN], size_t h)
{
	(void)fw_snprintf(dst, INET_ADDRSTRLEN, "127.%zu.%zu.%zu", 1 + h / (254 * 256), h / 254 % 256, 1 + h % 254);
}

void origin_url(struct fw_buf *out, size_t feed)
{
	const struct plan *p = origin.feed[feed].plan;
	char host[INET_ADDRSTRLEN];
	uint16_t port = p && p->net == NET_REFUSE ? origin.refuse_port : origin.port;

	origin_host(host, feed % origin.host_n);
	if (p && p->net == NET_NXDOMAIN)
		fw_buf_addf(out, "%s://feed-%zu.invalid:%u/feed/%zu", origin.tls ? "https" : "http", feed, port, feed);
	else
		fw_buf_addf(out, "%s://%s:%u/feed/%zu", origin.tls ? "https" : "http", host, port, feed);
}

/* ---- latencies ------------------------------------------------------------------------------- */

static double uniform(uint64_t a, uint64_t b) /* in (0, 1] */
{
	uint64_t k[2] = {a, b};

	return ((double)(fw_hash64_seed(k, sizeof(k), origin.seed) >> 11) + 1) / 9007199254740992.0;
}

static void latencies_from_file(const char *file)
{
	FILE *f = fopen(file, "r");
	int32_t *ms = NULL;
	size_t n = 0;
	char line[100];
	int64_t v;

	if (!f)
		die("--latency %s: not fixed:MS, lognormal:MEDIAN_MS:SIGMA or a readable file", file);
	while (fgets(line, sizeof(line), f)) {
		if (!fw_str_int(fw_str(line), &v) || v < 0 || v > 3600000)
			die("--latency %s: line %zu is not a number of ms", file, n + 1);
		ms = realloc(ms, (n + 1) * sizeof(*ms));
		if (!ms)
			die("out of memory");
		ms[n++] = (int32_t)v;
	}
	fclose(f);
	for (size_t i = 0; n && i < origin.feed_n; i++)
		origin.feed[i].latency_ms = ms[i % n];
	free(ms);
}

static void latencies(const char *spec)
{
	struct fw_str rest, v, kind = fw_str_split(fw_str(spec), ':', &rest);
	double median, sigma = 0;

	if (!rest.p)
		return latencies_from_file(spec);
	v = fw_str_split(rest, ':', &rest);
	if (!fw_str_double(v, &median) || median < 0 ||
		(!fw_str_eq(kind, FW_STR("fixed")) && !fw_str_eq(kind, FW_STR("lognormal"))) ||
		(fw_str_eq(kind, FW_STR("lognormal")) && !fw_str_double(rest, &sigma)))
		die("--latency %s: write fixed:MS or lognormal:MEDIAN_MS:SIGMA", spec);
	for (size_t i = 0; i < origin.feed_n; i++) {
		double z = sqrt(-2 * log(uniform(i, 1))) * cos(6.283185307179586 * uniform(i, 2));

		origin.feed[i].latency_ms = (int32_t)FW_MIN(median * exp(sigma * z), 3600000.0);
	}
}

/* ---- main ------------------------------------------------------------------------------------ */

static void write_urls(const char *file)
{
	FILE *f = fw_str_eq(fw_str(file), FW_STR("-")) ? stdout : fopen(file, "w");
	struct fw_buf b = FW_BUF_INIT(0);

	for (size_t i = 0; i < origin.feed_n; i++) {
		origin_url(&b, i);
		fw_buf_addc(&b, '\n');
	}
	if (!f || fwrite(b.p, 1, b.len, f) != b.len || fflush(f))
		die("--print-urls %s: cannot be written", file);
	if (f != stdout)
		fclose(f);
	fw_buf_finish(&b);
}

static int64_t number(const char *name, const char *s, int64_t min, int64_t max)
{
	int64_t v;

	if (!fw_str_int(fw_str(s), &v) || v < min || v > max)
		die("%s %s: a number from %lld to %lld", name, s, (long long)min, (long long)max);
	return v;
}

int main(int argc, char **argv)
{
	enum {
		DOCS = 256,
		FEEDS,
		HOSTS,
		PORT,
		URLS,
		LATENCY,
		SEED,
		PLAN,
		PLANS,
		LOG,
		NO_KEEP_ALIVE,
		TLS,
		WITH_PARENT,
		HELP
	};
	static const struct option options[] = {{"docs", 1, 0, DOCS}, {"feeds", 1, 0, FEEDS}, {"hosts", 1, 0, HOSTS},
		{"port", 1, 0, PORT}, {"print-urls", 1, 0, URLS}, {"latency", 1, 0, LATENCY}, {"seed", 1, 0, SEED},
		{"plan", 1, 0, PLAN}, {"plans", 1, 0, PLANS}, {"log", 1, 0, LOG},
		{"no-keep-alive", 0, 0, NO_KEEP_ALIVE}, {"tls", 1, 0, TLS}, {"with-parent", 0, 0, WITH_PARENT},
		{"help", 0, 0, HELP}, {0}};
	const char *docs = NULL, *urls = NULL, *latency = NULL, *log_file = NULL;
	struct rlimit rl;
	uint16_t port = 0;
	int c;

	origin.keep_alive = true;
	origin.start_ms = fw_mono_ms();
	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (c) {
		case DOCS:
			docs = optarg;
			break;
		case FEEDS:
			origin.feed_n = (size_t)number("--feeds", optarg, 1, 4000000);
			break;
		case HOSTS:
			origin.host_n = (size_t)number("--hosts", optarg, 1, 4000000);
			break;
		case PORT:
			port = (uint16_t)number("--port", optarg, 0, 65535);
			break;
		case URLS:
			urls = optarg;
			break;
		case LATENCY:
			latency = optarg;
			break;
		case SEED:
			origin.seed = (uint64_t)number("--seed", optarg, 0, INT64_MAX);
			break;
		case PLAN:
			rules_add(&origin.rules, fw_str(optarg), "--plan");
			break;
		case PLANS:
			rules_load(&origin.rules, optarg);
			break;
		case LOG:
			log_file = optarg;
			break;
		case NO_KEEP_ALIVE:
			origin.keep_alive = false;
			break;
		case TLS:
			if (optind >= argc)
				die("--tls needs two files: CERT KEY");
			origin.tls = true, origin.cert = optarg, origin.key = argv[optind++];
			break;
		case WITH_PARENT:
			prctl(PR_SET_PDEATHSIG, 15);
			break;
		case 'h':
		case HELP:
			fputs(usage, stdout), fputs(plan_help, stdout);
			return 0;
		default:
			fputs(usage, stderr);
			return 2;
		}
	}
	if (!docs || optind != argc) {
		fputs(usage, stderr);
		return 2;
	}
	if (!getrlimit(RLIMIT_NOFILE, &rl)) {
		rl.rlim_cur = rl.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &rl);
	}
	docs_load(&origin.docs, docs);
	if (!origin.feed_n)
		origin.feed_n = origin.docs.n;
	if (!origin.host_n || origin.host_n > origin.feed_n)
		origin.host_n = origin.feed_n;
	origin.feed = calloc(origin.feed_n, sizeof(*origin.feed));
	if (!origin.feed)
		die("out of memory");
	for (size_t i = 0; i < origin.feed_n; i++)
		if ((origin.feed[i].plan = rules_find(&origin.rules, i)))
			answer_prepare(origin.feed[i].plan);
	if (latency)
		latencies(latency);
	stats_init(log_file);
	serve_listen(port);
	if (urls)
		write_urls(urls);
	printf("listening %u\n", origin.port);
	fflush(stdout);
	serve();
	stats_flush();
	return 0;
}
