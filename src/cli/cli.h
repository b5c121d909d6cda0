/* SPDX-License-Identifier: ISC */
/*
 * The command line: what every command shares.
 *
 * A command is one file, cmd_NAME.c, holding one struct cli_command: its words for people, its options and its function.
 * table.c lists them all; help, completions and the manual's test read that list. A command runs with the configuration read
 * and its arguments sorted; it opens the store when it needs one (cli_store), writes data to stdout through cli_out(), words
 * for people to stderr through cli_note() and cli_fail(), and returns an exit code.
 *
 * Nothing a feed, a server or a database says reaches a terminal unescaped: %s of cli_out() is for our own words,
 * cli_out_safe(), table cells and JSON are for theirs; stderr is escaped as a whole.
 */
#ifndef FW_CLI_CLI_H
#define FW_CLI_CLI_H

#include <sys/types.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "base/when.h"
#include "feedwheel.h"
#include "api/view.h"

/* Exit codes; feedwheel(1) documents them. */
enum {
	CLI_OK = 0,
	CLI_SOME = 1,   /* some feeds failed; not a feed; no such feed */
	CLI_USAGE = 2,
	CLI_STORE = 3,  /* the store cannot be reached or read */
	CLI_CONFIG = 4,
};

struct cli;

struct cli_option {
	const char *name; /* "folder"; NULL ends a list */
	const char *arg;  /* "NAME"; NULL: a flag */
	const char *text; /* one line for help */
	const char *values; /* the words that it may be, "auto always never"; NULL: others */
};

enum {
	CLI_NO_CONFIG = 1,    /* runs without a configuration, even a broken one */
	CLI_ALL_SETTINGS = 2, /* takes every setting as an option, to look at it */
	CLI_EXACT_FEED = 4,   /* a part of an address names no feed */
};

struct cli_command {
	const char *name;
	const char *args;     /* "URL...", "[list|on|off] [FEED]"; completions know FEED, FILE, COMMAND and words in lower case */
	const char *summary;  /* one line, no full stop */
	const char *about;    /* more, wrapped by hand, ends in a newline; or NULL */
	const char *examples; /* lines ending in a newline */
	const struct cli_option *option; /* or NULL */
	int min_args, max_args; /* max_args -1: any number */
	unsigned flags;
	int (*run)(struct cli *c); /* an exit code */
};

/* All commands, in the order of the help; NULL behind the last. */
extern const struct cli_command *const cli_commands[];
extern const struct cli_option cli_global_options[];
const struct cli_command *cli_command_find(const char *name); /* or NULL */

/* What FEED among a command's arguments is. */
#define CLI_FEED_WORDS "FEED is a feed's number (12), its URL, or a part of URL or title that no other feed has. A part that is digits has a\n" \
	"/ or a dot before or behind it (/404).\n"

#define CLI_OPTION_MAX 16

struct cli_term {
	bool out_tty, err_tty;
	bool out_colour, err_colour;
	bool utf8;  /* the locale can show more than ASCII */
	int width;  /* columns */
};

struct cli_set { /* --name value of a setting */
	const struct fw_setting *setting;
	const char *value;
};

struct cli_given { /* an option and its value */
	const struct cli_option *option;
	const char *value;
};

struct cli {
	const struct cli_command *command; /* NULL: none was named */
	const char **arg;      /* arguments that are no options */
	int arg_n;
	const char *value[CLI_OPTION_MAX]; /* of command->option, in its order; "" for a flag */
	struct cli_given *given; /* the same, each time that one was given */
	size_t given_n;
	const char *config_path, *colour; /* global options, or NULL */
	bool help, version, quiet, verbose;
	struct cli_set *set;
	size_t set_n;
	struct fw_config *config;
	struct fw_store *store;
	struct fw_arena arena; /* dies with the command */
	struct cli_term term;
	struct fw_buf out;     /* what goes to stdout next */
	int out_errno;         /* the first failed write to stdout; everything after it is dropped */
	int64_t now_ms;
};

/* ---- opt.c: arguments ---------------------------------------------------------------------------------------------- */

/* What other programs call it, and what it is here. */
struct cli_synonym {
	const char *word, *meant;
};
extern const struct cli_synonym cli_synonyms[]; /* word NULL ends them */
int cli_command_unknown(struct cli *c, const char *word); /* complains, with the nearest name; CLI_USAGE */
/* Does the command use the setting, and so take it as an option? *option: what has to be given besides; absent: nothing. */
bool cli_uses(const struct cli_command *k, const struct fw_setting *s, struct fw_str *option);
/* Who uses it: "run, serve and add --check". */
void cli_users(struct fw_buf *out, const struct fw_setting *s);
void cli_dashed(struct fw_buf *out, const char *name); /* "--host-max" of host_max */
/* Sort argv into c. Returns 0, or an exit code when it has complained. */
FW_MUST_CHECK int cli_options(struct cli *c, int argc, char **argv);
/* The option's value; NULL when it was not given. The command must have the option. */
const char *cli_value(const struct cli *c, const char *name);
/* One value after another, of an option that may be given several times: *i begins with 0. NULL: no more. */
const char *cli_value_next(const struct cli *c, const char *name, size_t *i);
bool cli_flag(const struct cli *c, const char *name);
/* Is JSON wanted, by --json, or --jsonl where the command has that? */
bool cli_as_json(const struct cli *c);
bool cli_as_lines(const struct cli *c);
/* Its value as a whole number from min up, or as a duration: false when it has complained. Untouched when not given. */
FW_MUST_CHECK bool cli_value_int(struct cli *c, const char *name, int64_t min, int64_t *out);
FW_MUST_CHECK bool cli_value_duration(struct cli *c, const char *name, int64_t *out_ms);

const struct cli_option *cli_option_find(const struct cli_option *list, struct fw_str name); /* or NULL; list may be */

/* ---- complete.c: shell completions ----------------------------------------------------------------------------------------- */

/* Words and meanings of a command, or with NULL those before one, each on a line: word TAB meaning. */
void cli_complete_words(struct cli *c, const char *command);
/*
 * What may stand in the place of the last of the arguments, which are a command line's words: candidates that begin with it, written as by
 * cli_complete_words(); ":files" where the shell knows more.
 */
void cli_complete_line(struct cli *c);

/* ---- out.c: words and data -------------------------------------------------------------------------------------------- */

FW_PRINTF(2, 3) void cli_out(struct cli *c, const char *fmt, ...); /* stdout, as it is */
void cli_out_safe(struct cli *c, struct fw_str s);                 /* stdout, controls escaped, white space as spaces */
void cli_out_bytes(struct cli *c, const void *p, size_t n);
/* Lines for people, escaped already, each with its end; on a terminal they are wrapped at its width. */
void cli_out_lines(struct cli *c, struct fw_str lines, size_t hang);
void cli_out_wrap(struct cli *c, size_t hang); /* the same with all that was printed since cli_flush(); flushes */
/* JSON, whole characters: what a terminal could obey (C1, bidi controls) becomes \uXXXX, which means the same. */
void cli_out_json(struct cli *c, const char *p, size_t n);
void cli_flush(struct cli *c);
/* stdout is gone (a closed pipe, a full disk): nobody reads on, stop working for it. */
static inline bool cli_gone(const struct cli *c)
{
	return c->out_errno != 0;
}

/* One line on stderr, "feedwheel: ...", controls escaped; --quiet silences notes only. */
FW_PRINTF(2, 3) void cli_note(struct cli *c, const char *fmt, ...);
FW_PRINTF(3, 4) int cli_fail(struct cli *c, int exit_code, const char *fmt, ...); /* returns exit_code */
FW_PRINTF(2, 3) int cli_usage(struct cli *c, const char *fmt, ...); /* names the help too; CLI_USAGE */
/* Complain with err's words; the exit code is by err.rc: FW_EINVAL CLI_CONFIG, else CLI_STORE. */
int cli_store_failed(struct cli *c, const struct fw_err *err);

char *cli_number(char dst[FW_RFC3339_MAX], int64_t n);       /* "10,000" */
/* "1 feed", "2 feeds", "3 entries": the words are one and many. */
char *cli_count(char dst[FW_RFC3339_MAX], int64_t n, const char *one, const char *many);
char *cli_bytes(char dst[FW_RFC3339_MAX], uint64_t n);       /* "61.4 MiB" */
char *cli_stamp(char dst[FW_RFC3339_MAX], int64_t at_ms);    /* local time, "2026-11-21 12:30" */
char *cli_ago(const struct cli *c, char dst[FW_RFC3339_MAX], int64_t at_ms); /* "3 min ago", "in 2 h", "never" for 0; a stamp when it is far */
char *cli_when(const struct cli *c, char dst[2 * FW_RFC3339_MAX], int64_t at_ms); /* "2026-11-21 12:30 (3 min ago)"; far: the stamp alone */

void cli_label(struct cli *c, const char *name); /* of what is known of one thing, in front of it: CLI_LABEL_COLUMNS */
void cli_line(struct cli *c, const char *name, struct fw_str value); /* label and value; nothing when there is none */
#define CLI_LABEL_COLUMNS 13

/* Aligned columns. Rows are kept a few hundred at a time to find widths; on a terminal they are cut to its width. */
enum { CLI_COLUMN_MAX = 8 };
struct cli_column {
	const char *head;
	bool right, flex;  /* flex columns give way when the terminal is narrow */
	int spare;         /* 1 first: left out when that is not enough; 0: never */
	size_t most;       /* cut to this many columns where there is no terminal; 0: never */
};
struct cli_cell {
	struct fw_str text;
	const char *style;
};
struct cli_table {
	struct cli *c;
	const struct cli_column *column;
	size_t column_n, cell_n, cap;
	size_t width[CLI_COLUMN_MAX];
	int spared;        /* columns up to this rank are left out */
	struct cli_cell *cell;
	struct fw_arena arena;
	bool headed;
};
void cli_table_init(struct cli_table *t, struct cli *c, const struct cli_column *column, size_t n);
void cli_table_cell(struct cli_table *t, const char *style, struct fw_str text); /* copied */
void cli_table_end(struct cli_table *t); /* prints what is left; frees */

/* JSON on stdout: begin, write members through j, cli_json_flush now and then, end. */
struct cli_json {
	struct fw_json j;
	struct fw_buf buf;
};
void cli_json_begin(struct cli_json *w, bool pretty);
void cli_json_flush(struct cli_json *w, struct cli *c);
void cli_json_end(struct cli_json *w, struct cli *c); /* newline, flush, free */
/* One object, between these two: with --jsonl on one line. */
struct fw_json *cli_object_begin(struct cli_json *w, const struct cli *c);
void cli_object_end(struct cli_json *w, struct cli *c);

/*
 * A list: a table, an array (--json) or an object a line (--jsonl). Begin, a row or an object each, end. The command has both options;
 * one that writes its own text instead of a table has no columns.
 */
struct cli_list {
	struct cli *c;
	struct cli_table table;
	struct cli_json json;
	bool as_json;  /* either of the two */
	bool as_lines;
	size_t n;      /* the caller's, of rows */
};
void cli_list_begin(struct cli_list *l, struct cli *c, const struct cli_column *column, size_t n);
/* Around each object of as_json. */
struct fw_json *cli_list_item(struct cli_list *l);
void cli_list_item_end(struct cli_list *l);
void cli_list_end(struct cli_list *l);
/* clang-format off */
#define CLI_LIST_OPTIONS {"json", NULL, "an array of objects"}, {"jsonl", NULL, "one JSON object a line"}
/* clang-format on */

/* ---- term.c: what the terminal can do ----------------------------------------------------------------------------------- */

/* colour: "auto", "always", "never". NO_COLOR and TERM=dumb mean never unless asked for. */
void cli_term_init(struct cli_term *t, const char *colour);
/* Escape sequences, or "" when stdout (stderr) has no colours. */
#define CLI_BOLD "1"
#define CLI_DIM "2"
#define CLI_RED "31"
#define CLI_GREEN "32"
#define CLI_YELLOW "33"
#define CLI_CYAN "36"
/* Append text between the escape sequences of style (one of the above, or NULL). */
void cli_paint(struct fw_buf *b, bool colour, const char *style, struct fw_str text);
/*
 * Append s with controls escaped. ascii: a terminal that is not UTF-8 shows garbage for other characters, and obeys some (bytes 0x80 to
 * 0x9f are controls there): each becomes a question mark.
 */
void cli_escape(struct fw_buf *b, bool ascii, struct fw_str s);
static inline bool cli_ascii(const struct cli_term *t)
{
	return t->out_tty && !t->utf8;
}
/* Append s with controls escaped and white space as single spaces, cut to columns (0: whole) with an ellipsis; returns its width. */
size_t cli_fit(struct fw_buf *b, const struct cli_term *t, struct fw_str s, size_t columns);

/*
 * Append the line, wrapped at columns (0: whole): what does not fit stands on further lines behind hang spaces. No word is broken; what is
 * wider than a line stands on one of its own. Sequences of cli_paint() take no room.
 */
void cli_wrap(struct fw_buf *out, struct fw_str line, size_t columns, size_t hang);

/* ---- page.c: contents to read ------------------------------------------------------------------------------------------- */

/* Add what fw_sanitize() wrote, or plain text, as wrapped lines; controls are escaped. Nothing, or lines that end. */
void cli_page_html(struct fw_buf *out, const struct cli_term *t, struct fw_str html, size_t columns, size_t indent);
/* Its words only, on one line without pictures or addresses; pictures: where there is nothing else, what they show. */
void cli_page_words(struct fw_buf *out, const struct cli_term *t, struct fw_str html, bool pictures);
void cli_page_text(struct fw_buf *out, const struct cli_term *t, struct fw_str s, size_t columns, size_t indent);

/* ---- session.c: configuration, store, feeds ------------------------------------------------------------------------------- */

/* The configuration: defaults, file, FEEDWHEEL_STORE, command line, the later one winning. */
FW_MUST_CHECK int cli_config_read(const struct cli *c, struct fw_config **out, struct fw_err *err);
/* The same into c->config, complaining; sets the log up. 0 or an exit code. */
FW_MUST_CHECK int cli_config(struct cli *c);
/* Open the store into c->store with FW_STORE_* flags. 0 or an exit code. Closed by main. */
FW_MUST_CHECK int cli_store(struct cli *c, unsigned flags);
/* The default store's directory, for its owner only. A store named by hand has to have one. Errors: FW_EIO. */
FW_MUST_CHECK int cli_store_folder(struct cli *c, struct fw_err *err);
/* cli_store without a complaint: FW_E* and words. */
FW_MUST_CHECK int cli_store_try(struct cli *c, unsigned flags, struct fw_err *err);
/* The store's URL for people: a password in it replaced, controls escaped. */
void cli_store_show(const struct cli *c, struct fw_buf *out);
/* How many workers are alive on a store. 0 or an exit code. */
FW_MUST_CHECK int cli_workers(struct cli *c, struct fw_store *st, size_t *n);
/* Is it a number of a feed or an entry, 12 or #12? One that is too large for any is INT64_MAX. */
bool cli_is_number(const char *word, int64_t *id);
/*
 * The feed a person means: its number, its URL, or, unless exact, a part of URL or title that only one feed has.
 * Strings live in c->arena. 0 or an exit code.
 */
FW_MUST_CHECK int cli_feed(struct cli *c, const char *word, bool exact, struct fw_feed *feed);
/* An address as a person wrote it, for words about it: a password in it replaced (NET-19). Lives in c->arena. */
const char *cli_shown(struct cli *c, const char *url);
/* A whole file, "-" for standard input; limit are the words for max_bytes. *out is the caller's, also on error. 0 or an exit code. */
FW_MUST_CHECK int cli_read(struct cli *c, const char *path, size_t max_bytes, const char *limit, struct fw_buf *out);

/* ---- sample.c ---------------------------------------------------------------------------------------------------------------- */

void cli_sample(struct cli *c); /* a configuration file, every setting in a comment */

/* ---- cmd_stop.c -------------------------------------------------------------------------------------------------------------- */

/* A message to every worker; says how many were told `to_do`, and `later` about those to come ("" or "; ..."). An exit code. */
FW_MUST_CHECK int cli_tell_all(struct cli *c, enum fw_control_kind kind, const char *to_do, const char *later);

/* ---- feedview.c: a feed for people and scripts -------------------------------------------------------------------------------- */

void cli_added_json(struct fw_json *j, const struct fw_feed_new *f); /* a subscription that was asked for, as POST /v1/feeds answers */
struct fw_str cli_feed_title(const struct fw_feed *f); /* the owner's, the document's, else the URL */
const char *cli_feed_state(const struct fw_feed *f, const char **style); /* "new", "ok", "failing", "paused" ... */
/* Has it a due time? One that is gone (410) has: it is asked once again after a month. */
bool cli_feed_is_asked(const struct fw_feed *f);
/* "why the last visit failed" in one phrase: its words, else the kind. */
struct fw_str cli_feed_error(const struct fw_feed *f);
/* The document as JSON Feed 1.1 on stdout; HTML as it came when the command was given --raw. An exit code. */
FW_MUST_CHECK int cli_document_print(struct cli *c, const struct fw_document *doc);
/* "active until 2026-12-01 12:00 (in 10 d), sent 12" or why it is not. In the arena. */
struct fw_websub;
const char *cli_websub_words(struct cli *c, const struct fw_websub *w);
/* What of its day a feed has used up, and what waits; false: it never brings much. */
bool cli_quota_words(struct cli *c, int64_t feed_id, struct fw_buf *out);
void cli_quota_json(struct cli *c, struct fw_json *j, int64_t feed_id); /* member "quota", or nothing */
/* How long after its last sign of life a worker is still taken to be there, unless fw_worker_is_dead() knows better. */
#define CLI_WORKER_MS (30 * FW_SECOND_MS)
/* What a server says to a refusal, on stderr. */
void cli_server_words(struct cli *c, struct fw_str words);
/* What an HTML page offers, on stderr: one line per feed, and how to get one. */
void cli_offer_feeds(struct cli *c, const struct fw_err *why, const struct fw_link *feeds);
/* When the last visit found a page that names feeds: the command that mends the subscription, else "". In the arena. */
const char *cli_feed_remedy(struct cli *c, const struct fw_feed *f);

/* ---- entryview.c: an entry for people ------------------------------------------------------------------------------------------ */

/* Its title; else how its text begins; else words that say that there is neither. Lives in c->arena or in r. */
struct fw_str cli_entry_title(struct cli *c, const struct fw_entry_row *r);
/* Where it is read: its link, an id that is one, or its first attachment. Absent: nowhere. */
struct fw_str cli_entry_link(struct cli *c, const struct fw_entry_row *r);
/* Its date as the document has it, but never later than we saw it. */
int64_t cli_entry_date(const struct fw_entry_row *r);
/* Its content, else its summary, laid out to be read; as it came with raw. 0 or an exit code. */
int cli_entry_content(struct cli *c, const struct fw_entry_row *r, bool raw, size_t indent);
/* All its members, read from its JSON: authors, attachments ... fw_document_free() it; NULL: it has complained. */
struct fw_document *cli_entry_whole(struct cli *c, const struct fw_entry_row *r);
/* The query of one entry by its number, and the complaint when there is none. */
struct fw_entry_query cli_entry_query(int64_t id);
int cli_entry_missing(struct cli *c, int64_t id);

/* ---- pager.c: what is longer than a screen ------------------------------------------------------------------------------------- */

/* On a terminal, what goes to stdout from now on goes through $PAGER (less, else more) until cli_pager_close(). */
struct cli_pager {
	pid_t pid; /* 0: none */
	int out;   /* the stdout of before */
};
void cli_pager_open(struct cli_pager *p, struct cli *c);
FW_MUST_CHECK int cli_pager_close(struct cli_pager *p, struct cli *c); /* flushes, waits; 0 or an exit code */

/* cmd_serve.c: open the socket that the setting `listen` names, and the body of the server's process (fw_run_options). */
int cli_serve_open(struct cli *c);
void cli_serve_close(struct cli *c);
fw_serve_body cli_serve_body;
/* This program's arguments for a child of theirs (fw_run_options.anew), and that child: main() returns what it does. */
#define CLI_CHILD "child"
const char *const *cli_anew(void);
int cli_child(char **argv /* "feedwheel", CLI_CHILD, the listening socket or -1, and what the engine added */);

#endif
