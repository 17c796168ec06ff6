/* What gate, ab, diff and baseline share: the configuration, runs and how they are recorded,
 * options and outputs. */
#ifndef PERFKIT_CLI_GATE_H
#define PERFKIT_CLI_GATE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "cli/command.h"
#include "libprof/base/array.h"
#include "libprof/base/error.h"
#include "libprof/include/prof_compare.h"
#include "libprof/store/baseline.h"
#include "report/gate.h"

/* ---- the settings file ----------------------------------------------------------------------- */

/* Reads a settings file, the part of TOML that such files need: comments, `key = value` with
 * strings, numbers and booleans, [section], and [[section]] that may come again. Everything read
 * keeps its line, for messages about it. */

enum setting_kind { SETTING_TEXT, SETTING_NUMBER, SETTING_BOOL };

struct setting {
    unsigned line;
    unsigned section; /* index into settings.sections; 0 = before any */
    char *key;
    enum setting_kind kind;
    char *text;    /* SETTING_TEXT */
    double number; /* SETTING_NUMBER; SETTING_BOOL: 0 or 1 */
};

struct settings_section {
    unsigned line;
    char *name;    /* "" for the first */
    bool repeated; /* [[name]] */
};

struct settings {
    const char *path; /* borrowed */
    PROF_ARRAY(struct settings_section) sections;
    PROF_ARRAY(struct setting) rows; /* in the order of the file */
};

/* Read the file. PROF_NOTFOUND: there is none; PROF_FORMAT: "FILE:LINE: what is wrong", also for a
 * key or a [section] that comes twice. */
enum prof_status settings_read(const char *path, struct settings *settings, struct prof_error *err);
void settings_free(struct settings *settings);

/* ---- configuration --------------------------------------------------------------------------- */

/* The file perfkit.gate: what a project wants compared, and how strictly. docs/guide/gate.md
 * describes it for users. */

struct gate_expired {
    unsigned line;
    const char *match, *date;
};

struct gate_config {
    char path[PATH_MAX];      /* of the file; "" = none was read */
    char baselines[PATH_MAX]; /* of the baselines */
    const char *iteration;    /* NULL = found */
    unsigned skip;            /* iterations, as warm-up; CLI_NO_SKIP = found */
    double alpha;             /* 0 = the default */
    bool strict, allow_single;
    unsigned sessions;                          /* of a baseline, the last so many; 0 = all */
    PROF_ARRAY(struct prof_override) overrides; /* in the order in which they apply */
    /* Overrides that have expired: reported, and not applied. */
    PROF_ARRAY(struct gate_expired) expired;
    /* What all of it borrows. */
    struct settings settings;
    const char *given_baselines; /* in the file */
    PROF_ARRAY(char *) texts;
};

/* Read `path`, or, when it is NULL, the perfkit.gate of this folder or of the project around it (up
 * to the folder that holds .git); without one everything has its default. `baselines` (NULL: as the
 * file says, else .perfkit/baselines.sqlite of the project) names the file of baselines.
 * PROF_FORMAT: "perfkit.gate:7: ..." */
enum prof_status gate_config_read(const char *path, const char *baselines,
                                  struct gate_config *config, struct prof_error *err);
void gate_config_free(struct gate_config *config);

/* ---- runs ------------------------------------------------------------------------------------ */

/* The two sides of a comparison: captures reduced to runs, and baselines read back. */

struct gate_runs {
    struct prof_run *data;
    char **names; /* the file of each; for runs of a baseline the path that was saved, or NULL */
    char **identities;
    int64_t *recorded_s;
    size_t count, room, name_room, identity_room, time_room;
};

/* Reduce the capture and append it, as a run of `session` (0 = one of its own). A file that is not
 * a capture, or has nothing in it to compare, is an error. */
enum prof_status gate_runs_add_capture(struct gate_runs *runs, const char *path,
                                       const struct prof_run_options *iterations, int64_t session,
                                       struct prof_error *err);

/* Append the runs of a baseline, each in the session it was saved in. */
enum prof_status gate_runs_add_baseline(struct gate_runs *runs,
                                        const struct prof_baseline *baseline,
                                        struct prof_error *err);

/* The runs as a session to save, the environment and the project's commit with it. Free it with
 * prof_baseline_session_free. */
enum prof_status gate_runs_session(const struct gate_runs *runs, const char *label,
                                   struct prof_baseline_session *session, struct prof_error *err);

/* The first run of `cand` that is in `base` too: its index, or SIZE_MAX. */
size_t gate_runs_shared(const struct gate_runs *base, const struct gate_runs *cand);

/* Index of a run that is an earlier one once more, by its identity; SIZE_MAX when there is none. */
size_t gate_runs_repeated(const struct gate_runs *runs);

void gate_runs_free(struct gate_runs *runs);

struct gate_options;

/* ---- recording runs -------------------------------------------------------------------------- */

/* Records a command line with `perfkit run`, for the commands that make their own runs: gate
 * --rerun and ab. */

struct gate_recorder {
    const char *command;   /* of perfkit, for messages */
    char folder[PATH_MAX]; /* where the captures go */
    bool keep;             /* the user wants to keep them */
    const char *prepare;   /* run before each run, not recorded; NULL = nothing */
    bool show_output; /* what the programs print goes to standard error, else where only a failure
                         shows it */
    int output;       /* the file that holds it, -1 = none */
    bool interrupted; /* a signal ended it; see gate_record_close */
    int signal;
};

/* `keep`: folder to keep the captures in, made when it is not there; NULL = a private one that goes
 * with gate_record_close. */
enum prof_status gate_record_open(struct gate_recorder *recorder, const char *command,
                                  const struct gate_options *options, const char *keep,
                                  struct prof_error *err);

/* Which run comes. On a terminal a line that is written over, with the time that the `left` ones
 * take by the `done` ones since `begun_ns`; `printed`: what the runs print stands between. */
void gate_show_turn(const char *command, const char *text, uint64_t begun_ns, unsigned done,
                    unsigned left, bool printed);

/* Run `line` with the shell without recording it: its caches, and those of the machine, are warm
 * then. */
enum prof_status gate_record_warm(struct gate_recorder *recorder, const char *line,
                                  struct prof_error *err);

/* Record `line` into NAME-NUMBER.sqlite and append it to the runs, after `prepare`. What the
 * program prints is kept until the next run, and shown where this one fails. PROF_SYSTEM: it did
 * not end with 0; a run that failed says nothing about speed. */
enum prof_status gate_record(struct gate_recorder *recorder, const char *name, unsigned number,
                             const char *line, const struct prof_run_options *iterations,
                             int64_t session, struct gate_runs *runs, struct prof_error *err);

/* Remove what is not to be kept. Ends perfkit by the signal that interrupted it, if one did. */
void gate_record_close(struct gate_recorder *recorder);

/* ---- options and outputs --------------------------------------------------------------------- */

/* What gate, ab and diff have in common on the command line, and how a comparison leaves perfkit:
 * on standard output, into files, as an exit status. */

struct gate_options {
    const char *config, *iteration;
    bool strict, allow_single;
    unsigned format, top;
    const char *prepare;
    bool show_output;
    unsigned skip; /* CLI_NO_SKIP = not given; the default */
    bool json, github;
    const char *json_file, *junit, *markdown;
};

/* In the order of prof_gate_writers. */
extern const char *const gate_formats[];

/* Rows for the option table of a command whose options hold `member`. */
#define GATE_JUDGE_ROWS(options, member)                                                           \
    CLI_OPTION(options, member.config, "config", 'c', FILE, "FILE",                                \
               "metrics, tolerances, smallest effects that matter and what is ignored",            \
               .fallback = "perfkit.gate of this folder or project", .group = "What is compared"), \
        CLI_ITERATION_ROW(options, member.iteration), CLI_SKIP_ROW(options, member.skip),          \
        CLI_OPTION(options, member.strict, "strict", 0, FLAG, NULL,                                \
                   "end with 4 when nothing can be decided, instead of 0 and a warning"),          \
        CLI_OPTION(options, member.allow_single, "allow-single", 0, FLAG, NULL,                    \
                   "let times fail on fewer than three runs, which is a weaker statement")

#define GATE_RUN_ROWS(options, member)                                                             \
    CLI_OPTION(options, member.prepare, "prepare", 0, TEXT, "CMD",                                 \
               "run CMD (for the shell) before each run, without recording it"),                   \
        CLI_OPTION(options, member.show_output, "show-output", 0, FLAG, NULL,                      \
                   "show what the runs print, on standard error")

#define GATE_OUTPUT_ROWS(options, member)                                                          \
    CLI_OPTION(options, member.format, "format", 0, CHOICE, "NAME",                                \
               "on standard output: text, markdown, junit, github or json", .fallback = "text",    \
               .group = "Output", .words = gate_formats),                                          \
        CLI_JSON_ROW(options, member.json, "the same as --format json"),                           \
        CLI_OPTION(options, member.github, "github", 0, FLAG, NULL,                                \
                   "annotations for GitHub Actions on standard output too"),                       \
        CLI_OPTION(options, member.markdown, "markdown", 0, FILE, "OUT",                           \
                   "also into a file, for a comment or a job's summary"),                          \
        CLI_OPTION(options, member.junit, "junit", 0, FILE, "OUT",                                 \
                   "also into a file, as JUnit XML"),                                              \
        CLI_OPTION(options, member.json_file, "json-file", 0, FILE, "OUT",                         \
                   "also into a file, as JSON"),                                                   \
        CLI_OPTION(options, member.top, "top", 0, COUNT, "N", "rows of each list at most")

/* Exit statuses of gate and ab, for help. */
extern const struct cli_text_row gate_statuses[];

/* Compare as the options and the configuration say. `interleaved`, `looks`: see prof_compare.h. */
enum prof_status gate_compare(const struct gate_options *options, const struct gate_config *config,
                              const struct gate_runs *base, const struct gate_runs *cand,
                              bool interleaved, unsigned looks, struct prof_comparison *result,
                              struct prof_error *err);

/* By the verdict. */
int gate_exit_status(const struct prof_comparison *comparison, bool strict);

/* Fill in the report that the options select, write it to standard output and into files. Returns
 * the exit status: by the verdict, or CLI_USAGE when something could not be written. */
int gate_write_results(const char *command, const struct gate_options *options,
                       const struct gate_config *config, struct prof_gate_report *report);

/* What is an iteration, once gate_configure has looked into the configuration. */
struct prof_run_options gate_iterations(const struct gate_options *options);

/* The configuration for a command; false when what is wrong was said. */
bool gate_configure(const char *command, struct gate_options *options, const char *baselines,
                    struct gate_config *config);

#endif
