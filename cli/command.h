/* Commands and options as tables. The parser, --help, `perfkit help`, the man pages and the shell
 * completions are all made from them, so a row is added in one place. Only cli/ prints. */
#ifndef PERFKIT_CLI_COMMAND_H
#define PERFKIT_CLI_COMMAND_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "libprof/base/error.h"

enum cli_status {
    CLI_OK = 0,
    CLI_FAILED = 1,
    CLI_USAGE = 2,
    CLI_REGRESSION = 1,   /* gate, ab */
    CLI_REFUSED = 3,      /* gate, ab, baseline, verify: what was given cannot be compared */
    CLI_UNDECIDED = 4,    /* gate, ab under --strict */
    CLI_RUN_FAILED = 125, /* `run` only: perfkit itself failed, as with env and timeout */
    CLI_RUN_CANNOT_EXECUTE = 126,
    CLI_RUN_NOT_FOUND = 127,
};

/* Of a command; of one that failed CLI_USAGE where what it was given is to blame (a file that is
 * not there, cannot be read, or is no capture), else CLI_FAILED. */
enum cli_status cli_exit_status(enum prof_status status);

/* How a value is read and what is stored at cli_option.offset of the command's own struct. */
enum cli_type {
    CLI_FLAG,   /* bool */
    CLI_TEXT,   /* const char * */
    CLI_FILE,   /* const char *; completes to files */
    CLI_FOLDER, /* const char *; completes to folders */
    CLI_SIZE,   /* uint64_t bytes: 65536, 64k, 512M, 2G (powers of 1024) */
    CLI_COUNT,  /* unsigned, at least 1 */
    CLI_TIME,   /* uint64_t ns: 2, 1.5, 500ms, 2s, 1m (seconds without a unit) */
    CLI_CHOICE, /* unsigned: index into words */
    CLI_WORDS,  /* const char *: words out of `words`, separated by commas */
    CLI_TEXTS,  /* struct cli_texts: the option may come again */
};

#define CLI_MOST_TEXTS 256
struct cli_texts {
    const char *values[CLI_MOST_TEXTS];
    unsigned count;
};

struct cli_option {
    const char *name; /* without the dashes; NULL ends the table */
    char letter;      /* 0 = none */
    enum cli_type type;
    size_t offset;            /* in the struct that is filled */
    const char *argument;     /* how help names the value; NULL for flags */
    const char *fallback;     /* default as help shows it; NULL = none worth showing */
    const char *group;        /* heading in help; NULL = as the row before, "Options" at first */
    const char *text;         /* one sentence, no capital, no full stop */
    const char *const *words; /* CLI_CHOICE, CLI_WORDS: ends with NULL */
    uint64_t most;            /* CLI_COUNT, CLI_SIZE, CLI_TIME: the largest value; 0 = what fits */
    bool zero;                /* CLI_COUNT: 0 is a value too */
    const char *offers;  /* for completion: a shell command whose lines begin with a value each, and
                            that is silent where there are none; NULL = nothing can list them */
    const char *implied; /* value of --NAME alone, any other is then given as --NAME=VALUE; NULL =
                            it needs one. Only of options without a letter */
};

#define CLI_PARAGRAPH 2048 /* bytes */

struct cli_text_row {
    const char *left, *text; /* NULL left ends the table */
};

struct cli_operands {
    int count;
    char **values; /* into argv, in which they are gathered; ends with NULL */
    /* Of a command that starts another one: the command line behind "--", NULL = none, and the
     * other's options, in their order. Both end with NULL. */
    char **program, **others;
    size_t other_count;
};

struct cli_command {
    const char *name;
    const char *summary;  /* one line, no full stop */
    const char *operands; /* as the synopsis shows them, "" = none */
    const char *text;     /* paragraphs, separated by an empty line */
    const struct cli_option *options;
    const struct cli_text_row *examples;  /* command line, what it does; NULL = none */
    const struct cli_text_row *statuses;  /* exit status, meaning; NULL = 0, 1 and 2 as usual */
    const struct cli_text_row *variables; /* environment; NULL = none */
    enum cli_type operand;                /* CLI_FLAG = nothing to complete, CLI_TEXT = a command */
    const char *const *verbs; /* what the first operand may be, ends with NULL; NULL = anything */
    unsigned least, most;     /* operands */
    enum cli_status usage_status; /* of a wrong command line; 0 = CLI_USAGE */
    enum cli_status write_status; /* when text does not reach standard output; 0 = CLI_FAILED */
    bool verbatim; /* the first operand ends the options (it is another program's command line) */
    const struct cli_command *starts; /* whose options it takes too, before "-- COMMAND" */
    size_t options_bytes;             /* of the command's own struct, CLI_OPTIONS_ARE */
    const void *defaults;             /* of it; NULL = zeros */
    /* Returns the exit status; a message in `err` is printed then. */
    int (*run)(const struct cli_command *command, void *options,
               const struct cli_operands *operands, struct prof_error *err);
};

/* What a command's options are read into, and what is there before. */
#define CLI_OPTIONS_ARE(type, ...)                                                                 \
    .options_bytes = sizeof(struct type), .defaults = &(const struct type)                         \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* Every command, in the order of help. Ends with NULL. */
const struct cli_command *const *cli_commands(void);

/* NULL when there is no such command. */
const struct cli_command *cli_find(const char *name);

/* Read argv[1..] by the command's option table, and run it. Returns the exit status; what is wrong
 * was said on stderr. */
int cli_run(const struct cli_command *command, int argc, char **argv);

/* The option of the table that a word names ("--name", "--name=value", "-n", "-nvalue"); NULL = it
 * names none. */
const struct cli_option *cli_option_named(const struct cli_option *options, const char *word);

/* A time as options have it ("1.5s", "2m", seconds without a unit) in ns; false when it is none.
 * What is too long for 64 bits is the longest. */
bool cli_parse_time(const char *text, uint64_t *ns);

/* "perfkit CMD: message" and a newline on stderr, in one write. They keep errno. */
void cli_say(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same, and false, or the exit status, for the caller to return. */
bool cli_refuse(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
int cli_fail(int exit_status, const char *command, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A line on stderr that the next one writes over, and a message or the end wipes; on a terminal
 * only. */
void cli_show_progress(const char *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void cli_wipe_progress(void);
/* Whether a line is due: a second after the first time, then five a second. Starts as {0}. */
struct cli_progress {
    uint64_t start_ns, next_ns;
};
bool cli_progress_due(struct cli_progress *progress);

struct prof_json;
/* Finish a document on standard output: CLI_OK, or CLI_FAILED, and the reason is printed. */
int cli_finish_json(const char *command, struct prof_json *json);

/* Which candidate a mistyped word means: the nearest by edit distance, NULL where none is near.
 * Begins with the word alone; each candidate is considered. */
struct cli_nearest {
    const char *word, *best;
    size_t distance;
};
void cli_consider(struct cli_nearest *nearest, const char *candidate);
/* For "%s%s%s" in front of what to do: "did you mean 'X'? ", or nothing. */
#define CLI_DID_YOU_MEAN(nearest)                                                                  \
    (nearest).best ? "did you mean '" : "", (nearest).best ? (nearest).best : "",                  \
        (nearest).best ? "'? " : ""

/* The next paragraph of *text, which are separated by an empty line, moved behind it; false: none
 * is left. */
bool cli_next_paragraph(const char **text, char paragraph[CLI_PARAGRAPH]);

/* Print text wrapped, the cursor being at `column` and every further line starting at `indent`. */
void cli_print_wrapped(FILE *out, const char *text, size_t column, size_t indent, size_t width);
void cli_print_help(const struct cli_command *command);
void cli_print_overview(bool to_stderr);
/* The option every command has. */
extern const struct cli_option cli_help_option;

/* generate.c: `perfkit --generate FOLDER` writes man pages there; `perfkit --complete WORD...`
 * prints what may come next in a command line. */
int cli_generate(const char *folder);
int cli_complete(char **words, int count);

/* ---- the commands ---------------------------------------------------------------------------- */

/* The commands in the order in which `perfkit help` lists them: a new one is a word here and
 * NAME_command in a file named after it. main.c adds `help`. */

/* clang-format off */
#define CLI_COMMANDS(COMMAND)                                                                      \
    COMMAND(run) COMMAND(top) COMMAND(ctl) COMMAND(report) COMMAND(explain) COMMAND(sql) COMMAND(mcp) COMMAND(serve) COMMAND(baseline)      \
    COMMAND(gate) COMMAND(ab) COMMAND(diff) COMMAND(verify) COMMAND(what_if) COMMAND(recover) COMMAND(symbolize) COMMAND(merge)     \
    COMMAND(export) COMMAND(import) COMMAND(device) COMMAND(doctor) COMMAND(version)
/* clang-format on */

#define CLI_DECLARE(name) extern const struct cli_command name##_command;
CLI_COMMANDS(CLI_DECLARE)

/* ---- options that several commands have ------------------------------------------------------ */

/* Rows of option tables that several commands have: the word, its letter and its kind are written
 * once, as CONTRIBUTING.md ("Words of the command line") promises them. `says` is the row's
 * text. */

/* A row of an option table; the rest of struct cli_option's fields by name behind the text. */
#define CLI_OPTION(options, member, name_, letter_, type_, argument_, text_, ...)                  \
    {                                                                                              \
        .name = name_, .letter = letter_, .type = CLI_##type_,                                     \
        .offset = offsetof(struct options, member), .argument = argument_, .text = text_,          \
        __VA_ARGS__                                                                                \
    }

#define CLI_FORCE_ROW(options, member, says)                                                       \
    CLI_OPTION(options, member, "force", 'f', FLAG, NULL, says)
#define CLI_QUIET_ROW(options, member, says)                                                       \
    CLI_OPTION(options, member, "quiet", 'q', FLAG, NULL, says)
#define CLI_JSON_ROW(options, member, says) CLI_OPTION(options, member, "json", 0, FLAG, NULL, says)

/* Of a table of report/table.h alone; `format` is an enum prof_report_format then. */
#define CLI_FORMAT_ROWS(options, format, json)                                                     \
    CLI_OPTION(options, format, "format", 0, CHOICE, "NAME", "text, json, csv or markdown",        \
               .fallback = "text", .words = cli_table_formats),                                    \
        CLI_JSON_ROW(options, json, "the same as --format json")
extern const char *const cli_table_formats[];

/* Of every command that reports by iterations: libprof/include/prof_findings.h. */
#define CLI_ITERATION_ROW(options, member)                                                         \
    CLI_OPTION(options, member, "iteration", 'i', TEXT, "RANGE[@DOMAIN]",                          \
               "the NVTX range that is one iteration; also a phase as reports name it",            \
               .fallback = "step or alike, else the outermost range that repeats")
#define CLI_SKIP_ROW(options, member)                                                              \
    CLI_OPTION(options, member, "skip", 0, COUNT, "N",                                             \
               "iterations of each phase to leave out at the start, as warm-up",                   \
               .fallback = "1 of 4 or more, and those that compile at first", .zero = true,        \
               .most = 1000000000) /* as in the gate's configuration */
#define CLI_NO_SKIP UINT_MAX
#define CLI_RUN_OPTIONS(iteration_, skip_)                                                         \
    {                                                                                              \
        .iteration = iteration_, .skip = (skip_) == CLI_NO_SKIP ? PROF_UNKNOWN : (int64_t)(skip_)  \
    }
#define CLI_ITERATION_FILTER(iteration_, skip_)                                                    \
    {                                                                                              \
        .iteration = iteration_, .skips = (skip_) != CLI_NO_SKIP,                                  \
        .skip = (skip_) == CLI_NO_SKIP ? 0 : (int64_t)(skip_)                                      \
    }
#define CLI_BASELINES_ROW(options, member)                                                         \
    CLI_OPTION(options, member, "baselines", 0, FILE, "FILE", "the file of baselines",             \
               .fallback = ".perfkit/baselines.sqlite of this folder or project")

/* ---- a table with a head --------------------------------------------------------------------- */

struct prof_report_table;
/* What a command prints that gives one table, and some facts before it. */
struct cli_document {
    const struct prof_report_table *table;
    const void *rows;
    size_t count;
    bool refused; /* text: no table */
    /* Lines before the table; members of the JSON document before those of the table. */
    void (*text_head)(const void *result);
    void (*json_head)(struct prof_json *json, const void *result);
    const void *result;
};
/* On standard output; `format`: of CLI_FORMAT_ROWS. */
enum prof_status cli_print_document(const struct cli_document *document, unsigned format,
                                    struct prof_error *err);

/* ---- what the terminal allows ---------------------------------------------------------------- */

/* Columns to wrap at: the terminal's, at most 100; 80 when it is no terminal. */
size_t terminal_width(FILE *stream);

/* COLUMNS of the environment, when it is set to a usable number, else the width of standard output
 * where that is a terminal, else 0. */
size_t terminal_report_width(void);

/* LINES of the environment, else of the terminal, without that of the next prompt; 0 where neither
 * is known. */
size_t terminal_lines(FILE *stream);

/* True on a terminal unless NO_COLOR is set or TERM is "dumb". */
bool terminal_colour(FILE *stream);

/* ---- this build ------------------------------------------------------------------------------ */

/* What CMake says about this build: PERFKIT_VERSION, and 0 or 1 for each optional collector. */

#ifndef PERFKIT_VERSION
#define PERFKIT_VERSION "unknown"
#endif
#ifndef PERFKIT_HAVE_CUDA
#define PERFKIT_HAVE_CUDA 0
#endif
#ifndef PERFKIT_HAVE_OPENCL
#define PERFKIT_HAVE_OPENCL 0
#endif

#endif
