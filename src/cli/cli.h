/* SPDX-License-Identifier: ISC */
/*
 * The command line: what all commands share.
 *
 * Each command is one file, cmd_NAME.c, with one struct cli_command: its texts, its options, its
 * function. table.c lists all commands; the help, the completions and the manual's test read that
 * list. main.c parses the arguments, reads the configuration and calls the function. The function
 * opens the store if it needs one (cli_store()), writes data to stdout (cli_out()), writes messages
 * to stderr (cli_note(), cli_fail()), and returns an exit code. One thread.
 *
 * Invariant: no text from a feed, a server or a database reaches a terminal unescaped. cli_out() is
 * for our own text. Foreign text goes through cli_out_safe(), table cells or JSON, which escape it.
 * Everything on stderr is escaped.
 *
 * The sections below name the .c file that implements them.
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
	CLI_SOME = 1, /* some feeds failed; the document is not a feed; no such feed */
	CLI_USAGE = 2,
	CLI_STORE = 3, /* the store cannot be reached or read */
	CLI_CONFIG = 4,
};

struct cli;

struct cli_option {
	const char *name; /* "folder"; NULL ends a list */
	const char *arg;  /* "NAME"; NULL: a flag */
	const char *text; /* one line for help */
	/* the permitted words, "auto always never"; "yes no": may be left out; NULL: any value */
	const char *values;
};

enum {
	CLI_NO_CONFIG = 1,    /* runs without a configuration, even a broken one */
	CLI_ALL_SETTINGS = 2, /* accepts every setting as an option */
	CLI_EXACT_FEED = 4,   /* FEED must be a number or a whole URL */
};

struct cli_command {
	const char *name;
	/*
	 * "URL...", "[list|on|off] [FEED]"; completions expand FEED, ORDER, FILE, COMMAND and
	 * words in lower case. A list of words may have a space behind a |, for narrow terminals.
	 */
	const char *args;
	const char *summary;             /* one line, no full stop */
	const char *about;               /* further help text, ends in a newline; or NULL */
	const char *examples;            /* lines ending in a newline */
	const struct cli_option *option; /* or NULL */
	int min_args, max_args;          /* max_args -1: any number */
	unsigned flags;
	int (*run)(struct cli *c); /* an exit code */
};

/* All commands, in the order of the help; ends with NULL. */
extern const struct cli_command *const cli_commands[];
extern const struct cli_option cli_global_options[];
const struct cli_command *cli_command_find(const char *name); /* or NULL */

/* Help text: what FEED in a command's arguments means. */
#define CLI_FEED_TEXT                                                                                               \
	"FEED is a feed's number (12), its URL, or a part of its URL or title that no other feed has. A part that " \
	"consists\n"                                                                                                \
	"of digits needs a / or a dot before or after it (/404).\n"

#define CLI_OPTION_MAX 16

struct cli_term {
	bool out_tty, err_tty;
	bool out_colour, err_colour;
	bool utf8; /* the locale's encoding is UTF-8 */
	int width; /* columns */
};

/* --name value of a setting */
struct cli_set {
	const struct fw_setting *setting;
	const char *value;
};

/* an option and its value */
struct cli_given {
	const struct cli_option *option;
	const char *value;
};

struct cli {
	const struct cli_command *command; /* NULL: none given */
	const char **arg;                  /* the arguments that are not options */
	int arg_n;
	const char *value[CLI_OPTION_MAX]; /* of command->option, in its order; "" for a flag */
	/* every occurrence of the command's options, in the order of the command line */
	struct cli_given *given;
	size_t given_n;
	const char *config_path, *colour; /* global options, or NULL */
	bool help, version, quiet, verbose;
	struct cli_set *set;
	size_t set_n;
	struct fw_config *config;
	struct fw_store *store;
	struct fw_arena arena; /* freed when the command ends */
	struct cli_term term;
	struct fw_buf out; /* buffered for stdout */
	int out_errno;     /* of the first failed write to stdout; output after it is dropped */
	int64_t now_ms;
};

/* ---- opt.c: arguments ------------------------------------------------------------------------ */

/* A command's name in other programs, and our command for it. */
struct cli_synonym {
	const char *word, *meant;
};
extern const struct cli_synonym cli_synonyms[]; /* ends with word NULL */
/* prints the error, suggests the nearest name; CLI_USAGE */
int cli_command_unknown(struct cli *c, const char *word);
/*
 * Does the command use the setting, and so accept it as an option? *option: the option it also
 * requires; absent: none.
 */
bool cli_uses_setting(const struct cli_command *k, const struct fw_setting *s, struct fw_str *option);
/* Append the commands that use s: "run, serve and add --check". */
void cli_setting_users(struct fw_buf *out, const struct fw_setting *s);
void cli_dashed(struct fw_buf *out, const char *name); /* host_concurrency -> "--host-concurrency" */
/* Parse argv into c. Returns 0, or an exit code after an error message. */
FW_MUST_CHECK int cli_options(struct cli *c, int argc, char **argv);
/* The option's value; NULL if not given. The command must have the option. */
const char *cli_value(const struct cli *c, const char *name);
/* The next value of an option that may be repeated. Set *i to 0 first. NULL: no more values. */
const char *cli_value_next(const struct cli *c, const char *name, size_t *i);
bool cli_flag(const struct cli *c, const char *name);
/* Was --json or --jsonl given? */
bool cli_as_json(const struct cli *c);
bool cli_as_lines(const struct cli *c); /* --jsonl */
/*
 * The option's value as an integer of at least min, or as a duration. False after an error message.
 * *out stays as it is if not given.
 */
FW_MUST_CHECK bool cli_value_int(struct cli *c, const char *name, int64_t min, int64_t *out);
FW_MUST_CHECK bool cli_value_duration(struct cli *c, const char *name, int64_t *out_ms);
/* --interval of a feed; says so if the schedule will take a longer or shorter one. */
FW_MUST_CHECK bool cli_value_interval(struct cli *c, int64_t *out_ms);
/*
 * A time: "2h" (ago), "yesterday", a date. Once before the store is opened, for its errors, and
 * once more after: "2h" is 2 h before the store's time.
 */
FW_MUST_CHECK bool cli_value_time(struct cli *c, const char *name, int64_t *at_ms);

/* or NULL; list may be NULL */
const struct cli_option *cli_option_find(const struct cli_option *list, struct fw_str name);

/* ---- complete.c: shell completions ----------------------------------------------------------- */

/*
 * Print the words that may follow a command (NULL: that may stand before one), one per line: word
 * TAB meaning.
 */
void cli_complete_words(struct cli *c, const char *command);
/*
 * The arguments are the words of a command line. Print the candidates for the last word, which may
 * be incomplete, in the format of cli_complete_words(); ":files" means that the shell completes
 * file names.
 */
void cli_complete_line(struct cli *c);

/* ---- out.c: output and messages -------------------------------------------------------------- */

FW_PRINTF(2, 3) void cli_out(struct cli *c, const char *fmt, ...); /* stdout, unescaped */
/* stdout; controls escaped, white space becomes spaces */
void cli_out_safe(struct cli *c, struct fw_str s);
void cli_out_bytes(struct cli *c, const void *p, size_t n);
/*
 * Print lines that are already escaped and end in newlines. On a terminal they are wrapped at its
 * width.
 */
void cli_out_lines(struct cli *c, struct fw_str lines, size_t hang);
/* the same for all output since the last cli_flush(); flushes */
void cli_out_wrap(struct cli *c, size_t hang);
/*
 * Print JSON. Characters that control a terminal (C1, bidi controls) become the equivalent \uXXXX.
 * p must not split a character.
 */
void cli_out_json(struct cli *c, const char *p, size_t n);
void cli_flush(struct cli *c);
/* A write to stdout has failed (closed pipe, full disk): the command can stop. */
static inline bool cli_out_failed(const struct cli *c)
{
	return c->out_errno != 0;
}

/*
 * Print one line on stderr: "feedwheel: ...", controls escaped. --quiet suppresses notes, not
 * errors.
 */
FW_PRINTF(2, 3) void cli_note(struct cli *c, const char *fmt, ...);
/* returns exit_code */
FW_PRINTF(3, 4) int cli_fail(struct cli *c, int exit_code, const char *fmt, ...);
/* points to the help too; returns CLI_USAGE */
FW_PRINTF(2, 3) int cli_usage(struct cli *c, const char *fmt, ...);
/* Print err's text. Returns CLI_CONFIG for FW_EINVAL and FW_EUNSUP, else CLI_STORE. */
int cli_store_failed(struct cli *c, const struct fw_err *err);

char *cli_number(char dst[FW_RFC3339_MAX], int64_t n); /* "10,000" */
/* "1 feed", "2 feeds": one is the singular, many the plural. */
char *cli_count(char dst[FW_RFC3339_MAX], int64_t n, const char *one, const char *many);
char *cli_bytes(char dst[FW_RFC3339_MAX], uint64_t n);    /* "61.4 MiB" */
char *cli_stamp(char dst[FW_RFC3339_MAX], int64_t at_ms); /* local time, "2026-11-21 12:30" */
/* "3 min ago", "in 2 h", "never" for 0; beyond 30 days a stamp */
char *cli_ago(const struct cli *c, char dst[FW_RFC3339_MAX], int64_t at_ms);
/* "2026-11-21 12:30 (3 min ago)"; beyond 30 days the stamp alone */
char *cli_when(const struct cli *c, char dst[2 * FW_RFC3339_MAX], int64_t at_ms);

void cli_label(struct cli *c, const char *name); /* print a line's label, CLI_LABEL_COLUMNS wide */
/* label and value; prints nothing if value is empty */
void cli_line(struct cli *c, const char *name, struct fw_str value);
#define CLI_LABEL_COLUMNS 13

/*
 * A table with aligned columns. Widths are computed per batch of a few hundred rows; on a terminal
 * rows are cut to its width.
 */
enum { CLI_COLUMN_MAX = 8 };
struct cli_column {
	const char *head;
	bool right, flex; /* flex: shrinks on a narrow terminal */
	/* order in which columns are dropped if shrinking is not enough: 1 first; 0: never */
	int spare;
	size_t most; /* maximum width if stdout is not a terminal; 0: unlimited */
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
	int spared; /* columns with spare up to this are dropped */
	struct cli_cell *cell;
	struct fw_arena arena;
	bool headed;
};
void cli_table_init(struct cli_table *t, struct cli *c, const struct cli_column *column, size_t n);
void cli_table_cell(struct cli_table *t, const char *style, struct fw_str text); /* copied */
void cli_table_end(struct cli_table *t);                                         /* prints the remaining rows; frees */

/* JSON on stdout: begin, write members through j, call cli_json_flush() now and then, end. */
struct cli_json {
	struct fw_json j;
	struct fw_buf buf;
};
void cli_json_begin(struct cli_json *w, bool pretty);
void cli_json_flush(struct cli_json *w, struct cli *c);
void cli_json_end(struct cli_json *w, struct cli *c); /* newline, flush, free */
/* One object between begin and end; on one line with --jsonl. */
struct fw_json *cli_json_object_begin(struct cli_json *w, const struct cli *c);
void cli_json_object_end(struct cli_json *w, struct cli *c);

/*
 * A list: a table, an array (--json), or one object per line (--jsonl). Call begin, then print a
 * row or an object each, then end. The command has both options. A command that prints its own text
 * instead of a table passes no columns.
 */
struct cli_list {
	struct cli *c;
	struct cli_table table;
	struct cli_json json;
	bool as_json; /* --json or --jsonl */
	bool as_lines;
	size_t n; /* number of rows; counted by the caller */
};
void cli_list_begin(struct cli_list *l, struct cli *c, const struct cli_column *column, size_t n);
/* Call these around each object if as_json. */
struct fw_json *cli_list_item(struct cli_list *l);
void cli_list_item_end(struct cli_list *l);
void cli_list_end(struct cli_list *l);
/* clang-format off */
#define CLI_LIST_OPTIONS \
	{"json", NULL, "print a JSON array of objects"}, {"jsonl", NULL, "print one JSON object per line"}
/* clang-format on */

/* ---- term.c: the terminal's capabilities ----------------------------------------------------- */

/* colour: "auto", "always", "never". With "auto", NO_COLOR and TERM=dumb mean never. */
void cli_term_init(struct cli_term *t, const char *colour);
/* Styles: parameters of the escape sequence SGR. */
#define CLI_BOLD "1"
#define CLI_DIM "2"
#define CLI_RED "31"
#define CLI_GREEN "32"
#define CLI_YELLOW "33"
#define CLI_CYAN "36"
/* Append text in a style (one of the above, or NULL); plain without colour. */
void cli_paint(struct fw_buf *b, bool colour, const char *style, struct fw_str text);
/*
 * Append s with controls escaped. With ascii each other non-ASCII character becomes a question
 * mark: a terminal that is not UTF-8 shows garbage for them and treats bytes 0x80 to 0x9f as
 * controls.
 */
void cli_escape(struct fw_buf *b, bool ascii, struct fw_str s);
static inline bool cli_ascii(const struct cli_term *t)
{
	return t->out_tty && !t->utf8;
}
/*
 * Append s: controls escaped, white space as single spaces, cut to columns with an ellipsis (0: not
 * cut). Returns the width in columns.
 */
size_t cli_fit(struct fw_buf *b, const struct cli_term *t, struct fw_str s, size_t columns);

/*
 * Append the line, wrapped at columns (0: not wrapped). Continuation lines are indented by hang
 * spaces. Words are broken behind | only; one that is wider than a line gets a line of its own. The
 * escape sequences of cli_paint() have no width.
 */
void cli_wrap(struct fw_buf *out, struct fw_str line, size_t columns, size_t hang);

/* ---- page.c: HTML as text -------------------------------------------------------------------- */

/*
 * Append the output of fw_sanitize(), or plain text, as wrapped lines with controls escaped.
 * Appends nothing or complete lines.
 */
void cli_page_html(struct fw_buf *out, const struct cli_term *t, struct fw_str html, size_t columns, size_t indent);
/*
 * Append only the words, on one line, without addresses; with pictures also their alternative
 * texts.
 */
void cli_page_line(struct fw_buf *out, const struct cli_term *t, struct fw_str html, bool pictures);
void cli_page_text(struct fw_buf *out, const struct cli_term *t, struct fw_str s, size_t columns, size_t indent);

/* ---- session.c: configuration, store, feeds -------------------------------------------------- */

/*
 * Read the configuration: defaults, file, FEEDWHEEL_STORE, command line; a later one overrides an
 * earlier one.
 */
FW_MUST_CHECK int cli_config_read(const struct cli *c, struct fw_config **out, struct fw_err *err);
/* The same into c->config; prints errors and sets up the log. 0 or an exit code. */
FW_MUST_CHECK int cli_config(struct cli *c);
/* Open c->store with FW_STORE_* flags. 0 or an exit code. main() closes it. */
FW_MUST_CHECK int cli_store(struct cli *c, unsigned flags);
/*
 * Create the default store's directory, mode 0700. The directory of any other store must exist.
 * Errors: FW_EIO.
 */
FW_MUST_CHECK int cli_store_folder(struct cli *c, struct fw_err *err);
/* cli_store() without a message: FW_E* and err. */
FW_MUST_CHECK int cli_store_try(struct cli *c, unsigned flags, struct fw_err *err);
/* Append the store's URL for display: password replaced, controls escaped. */
void cli_store_show(const struct cli *c, struct fw_buf *out);
/* Count the workers that are alive on a store. 0 or an exit code. */
FW_MUST_CHECK int cli_workers(struct cli *c, struct fw_store *st, size_t *n);
/* Is word the number of a feed or an entry, 12 or #12? *id is INT64_MAX if it is too large. */
bool cli_is_number(const char *word, int64_t *id);
/*
 * Find the feed that word names: its number, its URL, or, unless exact, a part of URL or title that
 * only one feed has. Strings live in c->arena. 0 or an exit code.
 */
FW_MUST_CHECK int cli_feed(struct cli *c, const char *word, bool exact, struct fw_feed *feed);
/* After an empty list: has no feed this folder? Then says so. */
bool cli_folder_missing(struct cli *c, const char *folder);
/* cmd_user.c: the account of this name; strings live as long as the command. 0 or an exit code. */
struct fw_account;
FW_MUST_CHECK int cli_account(struct cli *c, const char *name, struct fw_account *out);
/*
 * cmd_user.c: subscribe the account to these feeds, as fw_account_import() does. 0 or an exit code.
 */
FW_MUST_CHECK int cli_account_import(struct cli *c, const char *name, struct fw_feed_new *feed, size_t n);
/* A feed of cli_account_import() that is left out. Returns CLI_SOME. */
int cli_fail_login(struct cli *c, const char *where, struct fw_str url);
/*
 * Open the store and find the feeds that the arguments name, c->arg_n of them: all, before one is
 * changed. 0 or an exit code.
 */
FW_MUST_CHECK int cli_feeds(struct cli *c, bool exact, struct fw_feed **feed);
/* A URL as the user typed it, for messages: password replaced (NET-19). Lives in c->arena. */
const char *cli_url_show(struct cli *c, const char *url);
/*
 * Read a whole file ("-": standard input). limit: max_bytes in words, for the error. The caller
 * frees *out, on errors too. 0 or an exit code.
 */
FW_MUST_CHECK int cli_read(struct cli *c, const char *path, size_t max_bytes, const char *limit, struct fw_buf *out);

/* ---- sample.c -------------------------------------------------------------------------------- */

void cli_sample(struct cli *c); /* print a configuration file with every setting in a comment */

/* ---- cmd_stop.c ------------------------------------------------------------------------------ */

/*
 * Send a message to every worker. Prints how many workers will do `to_do`, and `later`, about
 * workers that start later ("" or "; ..."). An exit code.
 */
FW_MUST_CHECK int cli_send_all(struct cli *c, enum fw_control_kind kind, const char *to_do, const char *later);

/* ---- feedview.c: a feed for people and scripts ----------------------------------------------- */

/* an added subscription, as in the response to POST /v1/feeds */
void cli_added_json(struct fw_json *j, const struct fw_feed_new *f);
/* the user's title, else the document's, else the URL */
struct fw_str cli_feed_title(const struct fw_feed *f);
/* "new", "ok", "failing", "paused" ... */
const char *cli_feed_state(const struct fw_feed *f, const char **style);
/*
 * Has the feed a due time? A feed that is gone (410) has one: it is polled once more after a month.
 */
bool cli_feed_is_polled(const struct fw_feed *f);
/* Why the last visit failed: its error, else the kind of the visit. */
struct fw_str cli_feed_error(const struct fw_feed *f);
/* Print the document as JSON Feed 1.1; with --raw its HTML is not sanitized. An exit code. */
FW_MUST_CHECK int cli_document_print(struct cli *c, const struct fw_document *doc);
/* "active until 2026-12-01 12:00, sent 12", or why it is not active. In the arena. */
struct fw_websub;
const char *cli_websub_text(struct cli *c, const struct fw_websub *w);
/*
 * How much of its daily quota the feed has used, and what is deferred. False: no quota record, the
 * feed is small.
 */
bool cli_quota_text(struct cli *c, int64_t feed_id, struct fw_buf *out);
/* member "quota", or nothing */
void cli_quota_json(struct cli *c, struct fw_json *j, int64_t feed_id);
/* A worker counts as alive for this long after its last heartbeat, unless fw_worker_is_dead(). */
#define CLI_WORKER_MS (30 * FW_SECOND_MS)
/* Print the server's explanation of an error response on stderr. */
void cli_server_text(struct cli *c, struct fw_str words);
/* List on stderr the feeds that an HTML page advertises, and how to subscribe. */
void cli_offer_feeds(struct cli *c, const struct fw_err *why, const struct fw_link *feeds);
/*
 * If the last visit found a page that advertises feeds: the command that corrects the subscription,
 * which is not wrapped, for copying; else fw_feed_remedy(). In the arena.
 */
bool cli_remedy_is_command(const struct fw_feed *f);
const char *cli_feed_remedy(struct cli *c, const struct fw_feed *f);

/* ---- entryview.c: an entry for people -------------------------------------------------------- */

/* The title; else the start of the text; else a placeholder. Lives in c->arena or in r. */
struct fw_str cli_entry_title(struct cli *c, const struct fw_entry_row *r);
/* The link; else the id if it is a URL; else the first attachment; else absent. */
struct fw_str cli_entry_link(struct cli *c, const struct fw_entry_row *r);
/* The document's date, but not later than the time the entry was first seen. */
int64_t cli_entry_date(const struct fw_entry_row *r);
/* Print the content, else the summary, as text; with raw unchanged. 0 or an exit code. */
int cli_entry_content(struct cli *c, const struct fw_entry_row *r, bool raw, size_t indent);
/*
 * All members of the entry (authors, attachments ...). The caller frees with fw_document_free().
 * NULL after an error message.
 */
struct fw_document *cli_entry_document(struct cli *c, const struct fw_entry_row *r);
/* The query for one entry by number, and the error message if there is none. */
struct fw_entry_query cli_entry_query(int64_t id);
int cli_entry_missing(struct cli *c, int64_t id);
/* `entries --format`: print the entries of a query as a feed. Returns an exit code. */
int cli_entries_feed(struct cli *c, struct fw_entry_query *q);

/* ---- query_error.c --------------------------------------------------------------------------- */

/*
 * Print what is wrong with a query, and the query with a caret below the place, if err names one
 * ("at 7: ...", the error of a search, or "query, at 7: ..."). what: "--search". CLI_USAGE.
 */
int cli_query_wrong(struct cli *c, const char *what, struct fw_str query, const struct fw_err *err);

/* ---- pager.c: paged output ------------------------------------------------------------------- */

/* On a terminal, send stdout through $PAGER (else less, else more) until cli_pager_close(). */
struct cli_pager {
	pid_t pid; /* 0: none */
	int out;   /* the original stdout */
};
void cli_pager_open(struct cli_pager *p, struct cli *c);
/* flushes, waits; 0 or an exit code */
FW_MUST_CHECK int cli_pager_close(struct cli_pager *p, struct cli *c);

/* ---- cmd_serve.c: the server for `run` and `serve` ------------------------------------------- */

/* Open the socket that the setting `listen` names. 0 or an exit code. */
int cli_serve_open(struct cli *c);
void cli_serve_close(struct cli *c);
fw_serve_body cli_serve_body; /* the server process's main function (fw_run_options) */
/* The arguments with which this program is executed again as a child (fw_run_options.exec_args). */
#define CLI_CHILD "child"
const char *const *cli_exec_args(void);
/*
 * The child's main. argv: "feedwheel", CLI_CHILD, the listening socket or -1, and two words that
 * the engine adds. An exit code.
 */
int cli_child(char **argv);

#endif
