/* What perfkit.gate may say, as tables: a key that is not in them is an error, since a slip in a
 * configuration would otherwise switch off a check without a message. An exception needs a reason.
 */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/gate.h"
#include "libprof/base/array.h"
#include "libprof/base/regular.h"

#define GATE_CONFIG_NAME "perfkit.gate"
#define GATE_FOLDER ".perfkit"
#define GATE_BASELINES GATE_FOLDER "/baselines.sqlite"

/* ---- the folders of a project ---------------------------------------------------------------- */

/* A command works from any folder of a project, as git does. No higher than its top: a folder above
 * it, as /tmp, may belong to another user, and a file found there would be obeyed. */

#define LEVELS 64

static bool exists_above(const char *up, const char *name, char *out, size_t size)
{
    snprintf(out, size, "%s%s", up, name);
    return access(out, F_OK) == 0;
}

/* "../" as often as it takes to the folder with .git. */
static bool find_top(char *up, size_t size)
{
    char at[PATH_MAX];
    *up = '\0';
    for (int level = 0; level < LEVELS; level++) {
        if (exists_above(up, ".git", at, sizeof at))
            return true;
        prof_append(up, size, "../");
    }
    return false;
}

/* The path of `name` in this folder or, where there is a project (a folder with .git above), in the
 * nearest one up to it: "../../name". False: there is none. */
static bool project_find(const char *name, char *out, size_t size)
{
    char up[4 * LEVELS];
    if (exists_above("", name, out, size))
        return true;
    if (!find_top(up, sizeof up))
        return false;
    /* Its last parts lead to the folders between: the nearest comes first. */
    for (size_t left = strlen(up); left > 0; left -= 3)
        if (exists_above(up + left - 3, name, out, size))
            return true;
    return false;
}

/* ---- what there is to set -------------------------------------------------------------------- */

/* Where a key may be. */
enum place {
    IN_FILE = 1,     /* before any section */
    IN_FAMILY = 2,   /* [kernel], [peak-bytes], ... */
    IN_OVERRIDE = 4, /* [[override]] */
    IN_IGNORE = 8,   /* [[ignore]] */
};

/* What a value may be, and what it becomes. */
enum takes {
    TAKES_TEXT,    /* const char *, as those below */
    TAKES_PATTERN, /* of metrics */
    TAKES_DAY,
    TAKES_ACTION, /* of an override */
    TAKES_BOOL,
    TAKES_COUNT, /* unsigned, from 1 */
    TAKES_COUNT_OR_NONE,
    TAKES_SHARE,  /* double */
    TAKES_CHANCE, /* double, above 0 */
    TAKES_AMOUNT, /* int64_t */
};

/* A section: what it changes, and until when. */
struct rule {
    struct prof_override override;
    const char *expires; /* NULL = never */
};

#define ANYWHERE (IN_FILE | IN_FAMILY | IN_OVERRIDE)
#define OF_ALL(member) offsetof(struct gate_config, member)
#define OF_RULE(member) offsetof(struct rule, member)

/* `at`: in the configuration where the key is of the file alone, else in the section's rule. */
static const struct key_row {
    const char *name;
    unsigned places;
    enum takes takes;
    size_t at;
} keys[] = {
    {"baselines", IN_FILE, TAKES_TEXT, OF_ALL(given_baselines)},
    {"iteration", IN_FILE, TAKES_TEXT, OF_ALL(iteration)},
    {"skip", IN_FILE, TAKES_COUNT_OR_NONE, OF_ALL(skip)},
    {"alpha", IN_FILE, TAKES_CHANCE, OF_ALL(alpha)},
    {"strict", IN_FILE, TAKES_BOOL, OF_ALL(strict)},
    {"allow_single", IN_FILE, TAKES_BOOL, OF_ALL(allow_single)},
    {"sessions", IN_FILE, TAKES_COUNT, OF_ALL(sessions)},
    {"delta", ANYWHERE, TAKES_SHARE, OF_RULE(override.min_effect)},
    {"target", ANYWHERE, TAKES_SHARE, OF_RULE(override.target)},
    {"min_share", ANYWHERE, TAKES_SHARE, OF_RULE(override.min_share)},
    {"tolerance", IN_FAMILY | IN_OVERRIDE, TAKES_SHARE, OF_RULE(override.tolerance)},
    {"tolerance_absolute", IN_FAMILY | IN_OVERRIDE, TAKES_AMOUNT,
     OF_RULE(override.tolerance_absolute)},
    {"action", IN_FAMILY | IN_OVERRIDE, TAKES_ACTION, OF_RULE(override)},
    {"match", IN_OVERRIDE | IN_IGNORE, TAKES_PATTERN, OF_RULE(override.match)},
    {"reason", IN_OVERRIDE | IN_IGNORE, TAKES_TEXT, OF_RULE(override.reason)},
    {"expires", IN_OVERRIDE | IN_IGNORE, TAKES_DAY, OF_RULE(expires)},
    {NULL, 0, 0, 0},
};

struct maker {
    const struct settings *settings;
    struct gate_config *config;
    struct rule *rules; /* by section */
    struct prof_error *err;
};

static enum prof_status fail_setting(const struct maker *m, unsigned line, const char *what)
{
    return prof_fail(m->err, PROF_FORMAT, "%s:%u: %s", m->settings->path, line, what);
}

/* ---- names that there are -------------------------------------------------------------------- */

static enum prof_status unknown_key(const struct maker *m, const struct setting *s, unsigned place)
{
    char text[320], all[200] = "";
    struct cli_nearest near = {.word = s->key};
    for (const struct key_row *row = keys; row->name; row++)
        if (row->places & place) {
            prof_append(all, sizeof all, "%s%s", *all ? ", " : "", row->name);
            cli_consider(&near, row->name);
        }
    snprintf(text, sizeof text, "unknown setting '%.60s': %s%s%sthere are %s here", s->key,
             CLI_DID_YOU_MEAN(near), all);
    return fail_setting(m, s->line, text);
}

static enum prof_status unknown_section(const struct maker *m,
                                        const struct settings_section *section)
{
    char text[320];
    struct cli_nearest near = {.word = section->name};
    cli_consider(&near, "override");
    cli_consider(&near, "ignore");
    for (int family = 0; family < PROF_METRICS; family++)
        cli_consider(&near, prof_metric_info((enum prof_metric_family)family)->name);
    snprintf(text, sizeof text,
             "unknown section '%.60s': %s%s%sthere are [[override]], [[ignore]] and one for each "
             "metric ([wall], [kernel], [launches], ...: docs/guide/gate.md)",
             section->name, CLI_DID_YOU_MEAN(near));
    return fail_setting(m, section->line, text);
}

static unsigned section_scope(const struct settings_section *section)
{
    if (!*section->name)
        return IN_FILE;
    if (!strcmp(section->name, "override"))
        return IN_OVERRIDE;
    if (!strcmp(section->name, "ignore"))
        return IN_IGNORE;
    return prof_metric_named(section->name) == PROF_METRICS ? 0 : IN_FAMILY;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* 0.05, or "5 %". A number of 1 or more was meant for percent: 5 would let pass all that takes six
 * times as long, and say nothing. */
static bool read_share(const struct setting *s, double *share)
{
    *share = s->number;
    if (s->kind == SETTING_NUMBER && s->number >= 1)
        return false;
    if (s->kind == SETTING_TEXT) {
        char *end;
        *share = strtod(s->text, &end) / 100;
        if (end == s->text || strcmp(end + strspn(end, " "), "%"))
            return false;
    }
    return s->kind != SETTING_BOOL && *share >= 0 && *share <= 100;
}

/* A pattern is for the whole text of a metric, METRIC:NAME ...: one for a name alone would match
 * nothing, and what it was to change would stay as it is without a message. */
static bool fits_any_family(const char *pattern)
{
    char start[40];
    size_t length = strcspn(pattern, "*?[\\:");
    bool whole = pattern[length] == ':' || !pattern[length];
    for (int family = 0; family < PROF_METRICS; family++) {
        int size = snprintf(start, sizeof start,
                            "%s:", prof_metric_info((enum prof_metric_family)family)->name);
        if (length + (pattern[length] == ':') <= (size_t)size && !strncmp(start, pattern, length) &&
            (!whole || (pattern[length] && start[length] == ':')))
            return true;
    }
    return false;
}

/* Days are compared as texts: 2026-11-21. */
static bool is_date(const char *text)
{
    static const char form[] = "dddd-dd-dd";
    size_t i = 0;
    for (; form[i]; i++)
        if (form[i] == 'd' ? text[i] < '0' || text[i] > '9' : text[i] != form[i])
            return false;
    return !text[i] && strncmp(text + 5, "00", 2) > 0 && strncmp(text + 5, "12", 2) <= 0 &&
           strncmp(text + 8, "00", 2) > 0 && strncmp(text + 8, "31", 2) <= 0;
}

static bool is_past(const char *date)
{
    char today[16];
    time_t now = time(NULL);
    struct tm day;
    return gmtime_r(&now, &day) && strftime(today, sizeof today, "%Y-%m-%d", &day) &&
           strcmp(date, today) < 0;
}

static bool read_action(const char *text, struct prof_override *override)
{
    static const char *const actions[] = {
        [PROF_ACTION_FAIL] = "fail", [PROF_ACTION_WARN] = "warn", [PROF_ACTION_INFO] = "info"};
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++)
        if (!strcmp(text, actions[i])) {
            override->has_action = true;
            override->action = (enum prof_action)i;
        }
    return override->has_action;
}

static bool is_whole(const struct setting *s, double least, double most)
{
    return s->kind == SETTING_NUMBER && s->number >= least && s->number <= most &&
           s->number == floor(s->number);
}

/* Puts the value into its place; NULL, or what it is to be. */
static const char *read_value_of_key(const struct key_row *row, const struct setting *s,
                                     void *place)
{
    bool is_text = s->kind == SETTING_TEXT && *s->text;
    double share = 0;
    if (row->takes <= TAKES_ACTION && !is_text)
        return "takes a text in quotes";
    if (row->takes < TAKES_ACTION)
        *(const char **)place = s->text;
    switch (row->takes) {
    case TAKES_TEXT:
        return NULL;
    case TAKES_PATTERN:
        return fits_any_family(s->text)
                   ? NULL
                   : "fits no metric: it begins with one, as in \"kernel:gemm*\", or with \"*:\" "
                     "for all (docs/guide/gate.md)";
    case TAKES_DAY:
        return is_date(s->text) ? NULL : "is a day: \"2026-12-31\"";
    case TAKES_ACTION:
        return read_action(s->text, place)
                   ? NULL
                   : "is \"fail\", \"warn\" or \"info\": what is not to be compared goes into "
                     "[[ignore]], with a reason";
    case TAKES_BOOL:
        *(bool *)place = s->number != 0;
        return s->kind == SETTING_BOOL ? NULL : "is true or false";
    case TAKES_COUNT:
    case TAKES_COUNT_OR_NONE:
        if (!(row->takes == TAKES_COUNT ? is_whole(s, 1, 10000) : is_whole(s, 0, 1e9)))
            return row->takes == TAKES_COUNT ? "is a whole number from 1 up"
                                             : "is a whole number from 0 up";
        *(unsigned *)place = (unsigned)s->number;
        return NULL;
    case TAKES_SHARE:
    case TAKES_CHANCE:
        if (!read_share(s, &share))
            return "is a share: 0.05, or \"5 %\" (1 and more in percent only)";
        *(double *)place = share;
        return row->takes == TAKES_SHARE || (share > 0 && share <= 0.5)
                   ? NULL
                   : "is a chance above 0 and at most 0.5";
    case TAKES_AMOUNT:
        if (!is_whole(s, 0, 1e15))
            return "is a whole number from 0 up";
        *(int64_t *)place = (int64_t)s->number;
    }
    return NULL;
}

/* ---- sections -------------------------------------------------------------------------------- */

/* What a section says: [kernel], [[override]], [[ignore]] or what is before the first. */
static enum prof_status add_rule(const struct maker *m, unsigned index)
{
    struct gate_config *config = m->config;
    const struct settings_section *section = &m->settings->sections.data[index];
    struct prof_override *override = &m->rules[index].override;
    const char *expires = m->rules[index].expires;
    unsigned place = section_scope(section);
    if (place == IN_OVERRIDE || place == IN_IGNORE) {
        if (!override->match)
            return fail_setting(m, section->line,
                                "needs a 'match': which metrics, as in \"kernel:gemm*\"");
        if (!override->reason)
            return fail_setting(m, section->line, "needs a 'reason', which the report prints");
    } else {
        char *match = NULL;
        if (asprintf(&match, "%s%s*", section->name, place == IN_FILE ? "" : ":") < 0 ||
            !prof_array_push(&config->texts, match))
            return prof_out_of_memory(m->err);
        override->match = match;
    }
    if (place == IN_FILE && isnan(override->min_effect) && isnan(override->target) &&
        isnan(override->min_share))
        return PROF_OK;
    if (place == IN_IGNORE) {
        override->has_action = true;
        override->action = PROF_ACTION_IGNORE;
    }
    bool added =
        expires && is_past(expires)
            ? prof_array_push(&config->expired,
                              (struct gate_expired){section->line, override->match, expires})
            : prof_array_push(&config->overrides, *override);
    return added ? PROF_OK : prof_out_of_memory(m->err);
}

/* ---- the file -------------------------------------------------------------------------------- */

static enum prof_status check_sections(const struct maker *m)
{
    for (size_t i = 0; i < m->settings->sections.count; i++) {
        const struct settings_section *section = &m->settings->sections.data[i];
        unsigned place = section_scope(section);
        if (!place)
            return unknown_section(m, section);
        if ((place == IN_OVERRIDE || place == IN_IGNORE) && !section->repeated)
            return fail_setting(
                m, section->line,
                "write [[override]] and [[ignore]] with two brackets each: there may be several");
        if (place == IN_FAMILY && section->repeated)
            return fail_setting(m, section->line,
                                "a section of a metric has one bracket: [kernel]");
    }
    return PROF_OK;
}

/* A tolerance for a time, or a smallest effect for a count, would be read and do nothing. */
static enum prof_status check_sense(const struct maker *m, const struct setting *s,
                                    const struct key_row *row, const char *section)
{
    bool for_exact = !strncmp(row->name, "tolerance", strlen("tolerance"));
    bool for_noisy = row->places == ANYWHERE;
    const struct prof_metric_info *info = prof_metric_info(prof_metric_named(section));
    if (info && info->exact && for_noisy)
        return fail_setting(m, s->line, "this metric is exact: give it a 'tolerance'");
    if (info && !info->exact && for_exact)
        return fail_setting(m, s->line, "this metric is a time: give it a 'delta'");
    return PROF_OK;
}

static enum prof_status read_keys(const struct maker *m)
{
    for (size_t i = 0; i < m->settings->rows.count; i++) {
        const struct setting *s = &m->settings->rows.data[i];
        const char *section = m->settings->sections.data[s->section].name;
        unsigned place = section_scope(&m->settings->sections.data[s->section]);
        const struct key_row *row = keys;
        while (row->name && (strcmp(row->name, s->key) || !(row->places & place)))
            row++;
        if (!row->name)
            return unknown_key(m, s, place);
        void *base = row->places == IN_FILE ? (void *)m->config : &m->rules[s->section];
        const char *what = read_value_of_key(row, s, (char *)base + row->at);
        if (what)
            return prof_fail(m->err, PROF_FORMAT, "%s:%u: '%s' %s", m->settings->path, s->line,
                             row->name, what);
        if (place == IN_FAMILY)
            PROF_TRY(check_sense(m, s, row, section));
    }
    return PROF_OK;
}

static enum prof_status use_settings(struct gate_config *config, struct prof_error *err)
{
    const struct settings *settings = &config->settings;
    static const struct rule nothing = {.override = {.min_effect = NAN,
                                                     .target = NAN,
                                                     .min_share = NAN,
                                                     .tolerance = NAN,
                                                     .tolerance_absolute = PROF_UNKNOWN}};
    /* Of several that fit a metric the last counts: the general ones first, wherever they are. */
    static const unsigned order[] = {IN_FILE, IN_FAMILY, IN_OVERRIDE | IN_IGNORE};
    struct maker m = {settings, config, calloc(settings->sections.count, sizeof *m.rules), err};
    enum prof_status status = m.rules ? check_sections(&m) : prof_out_of_memory(err);
    for (size_t i = 0; !status && i < settings->sections.count; i++)
        m.rules[i] = nothing;
    status = status ?: read_keys(&m);
    for (size_t pass = 0; !status && pass < sizeof order / sizeof order[0]; pass++)
        for (unsigned i = 0; !status && i < settings->sections.count; i++)
            if (section_scope(&settings->sections.data[i]) & order[pass])
                status = add_rule(&m, i);
    free(m.rules);
    return status;
}

/* Where there are none yet, they will be at the top of the project. */
static void find_baselines(const char *file, struct gate_config *config)
{
    char place[PATH_MAX];
    const char *name = file ? file : config->given_baselines, *folder = "";
    if (!name) {
        name = GATE_BASELINES;
        if (project_find(GATE_FOLDER, place, sizeof place) ||
            project_find(".git", place, sizeof place))
            folder = place;
    } else if (!file && *name != '/') {
        folder = config->path;
    }
    snprintf(config->baselines, sizeof config->baselines, "%.*s%s",
             (int)(prof_file_name(folder) - folder), folder, name);
}

enum prof_status gate_config_read(const char *path, const char *baselines,
                                  struct gate_config *config, struct prof_error *err)
{
    enum prof_status status = PROF_OK;
    *config = (struct gate_config){.skip = CLI_NO_SKIP};
    if (path)
        snprintf(config->path, sizeof config->path, "%s", path);
    if (path || project_find(GATE_CONFIG_NAME, config->path, sizeof config->path)) {
        status = settings_read(config->path, &config->settings, err);
        status = status ?: use_settings(config, err);
    }
    find_baselines(baselines, config);
    if (status)
        gate_config_free(config);
    return status;
}

void gate_config_free(struct gate_config *config)
{
    for (size_t i = 0; i < config->texts.count; i++)
        free(config->texts.data[i]);
    prof_array_free(&config->texts);
    prof_array_free(&config->overrides);
    prof_array_free(&config->expired);
    settings_free(&config->settings);
}
