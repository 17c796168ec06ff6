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
#include "cli/settings.h"
#include "libprof/base/array.h"
#include "libprof/base/path.h"

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

enum key {
    KEY_BASELINES,
    KEY_ITERATION,
    KEY_SKIP,
    KEY_ALPHA,
    KEY_STRICT,
    KEY_ALLOW_SINGLE,
    KEY_SESSIONS,
    KEY_DELTA,
    KEY_TARGET,
    KEY_MIN_SHARE,
    KEY_TOLERANCE,
    KEY_TOLERANCE_ABSOLUTE,
    KEY_ACTION,
    KEY_MATCH,
    KEY_REASON,
    KEY_EXPIRES,
};

/* Where a key may be. */
enum place {
    IN_FILE = 1,     /* before any section */
    IN_FAMILY = 2,   /* [kernel], [peak-bytes], ... */
    IN_OVERRIDE = 4, /* [[override]] */
    IN_IGNORE = 8,   /* [[ignore]] */
};

enum takes { TAKES_TEXT, TAKES_BOOL, TAKES_COUNT, TAKES_COUNT_OR_NONE, TAKES_SHARE, TAKES_AMOUNT };

static const struct key_row {
    const char *name;
    enum key key;
    unsigned places;
    enum takes takes;
} keys[] = {
    {"baselines", KEY_BASELINES, IN_FILE, TAKES_TEXT},
    {"iteration", KEY_ITERATION, IN_FILE, TAKES_TEXT},
    {"skip", KEY_SKIP, IN_FILE, TAKES_COUNT_OR_NONE},
    {"alpha", KEY_ALPHA, IN_FILE, TAKES_SHARE},
    {"strict", KEY_STRICT, IN_FILE, TAKES_BOOL},
    {"allow_single", KEY_ALLOW_SINGLE, IN_FILE, TAKES_BOOL},
    {"sessions", KEY_SESSIONS, IN_FILE, TAKES_COUNT},
    {"delta", KEY_DELTA, IN_FILE | IN_FAMILY | IN_OVERRIDE, TAKES_SHARE},
    {"target", KEY_TARGET, IN_FILE | IN_FAMILY | IN_OVERRIDE, TAKES_SHARE},
    {"min_share", KEY_MIN_SHARE, IN_FILE | IN_FAMILY | IN_OVERRIDE, TAKES_SHARE},
    {"tolerance", KEY_TOLERANCE, IN_FAMILY | IN_OVERRIDE, TAKES_SHARE},
    {"tolerance_absolute", KEY_TOLERANCE_ABSOLUTE, IN_FAMILY | IN_OVERRIDE, TAKES_AMOUNT},
    {"action", KEY_ACTION, IN_FAMILY | IN_OVERRIDE, TAKES_TEXT},
    {"match", KEY_MATCH, IN_OVERRIDE | IN_IGNORE, TAKES_TEXT},
    {"reason", KEY_REASON, IN_OVERRIDE | IN_IGNORE, TAKES_TEXT},
    {"expires", KEY_EXPIRES, IN_OVERRIDE | IN_IGNORE, TAKES_TEXT},
    {NULL, 0, 0, 0},
};

static const struct {
    const char *name;
    enum prof_action action;
} actions[] = {
    {"fail", PROF_ACTION_FAIL},
    {"warn", PROF_ACTION_WARN},
    {"info", PROF_ACTION_INFO},
};

struct maker {
    const struct settings *settings;
    struct gate_config *config;
    struct prof_error *err;
};

static enum prof_status fail_setting(const struct maker *m, unsigned line, const char *what)
{
    return prof_fail(m->err, PROF_FORMAT, "%s:%u: %s", m->settings->path, line, what);
}

/* ---- names that there are -------------------------------------------------------------------- */

struct key_list {
    unsigned place;
    const char *names[sizeof keys / sizeof keys[0]];
};

static const char *listed_key(const void *table, size_t i)
{
    return ((const struct key_list *)table)->names[i];
}

static enum prof_status unknown_key(const struct maker *m, const struct setting *s, unsigned place)
{
    struct key_list list = {.place = place};
    char text[320], all[200] = "";
    size_t count = 0;
    for (const struct key_row *row = keys; row->name; row++)
        if (row->places & place) {
            prof_append(all, sizeof all, "%s%s", count ? ", " : "", row->name);
            list.names[count++] = row->name;
        }
    const char *near = cli_nearest(s->key, listed_key, &list);
    snprintf(text, sizeof text, "unknown setting '%.60s': %s%s%sthere are %s here", s->key,
             near ? "did you mean '" : "", near ? near : "", near ? "'? " : "", all);
    return fail_setting(m, s->line, text);
}

static const char *family_name(const void *table, size_t i)
{
    (void)table;
    static const char *const others[] = {"override", "ignore"};
    if (i < sizeof others / sizeof others[0])
        return others[i];
    const struct prof_metric_info *info =
        prof_metric_info((enum prof_metric_family)(i - sizeof others / sizeof others[0]));
    return info ? info->name : NULL;
}

static enum prof_status unknown_section(const struct maker *m,
                                        const struct settings_section *section)
{
    char text[320];
    const char *near = cli_nearest(section->name, family_name, NULL);
    snprintf(text, sizeof text,
             "unknown section '%.60s': %s%s%sthere are [[override]], [[ignore]] and one for each "
             "metric ([wall], [kernel], [launches], ...: docs/guide/gate.md)",
             section->name, near ? "did you mean '" : "", near ? near : "", near ? "'? " : "");
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

static enum prof_status check_value(const struct maker *m, const struct key_row *row,
                                    const struct setting *s)
{
    char text[160];
    const char *what = NULL;
    double share;
    if (row->takes == TAKES_TEXT && (s->kind != SETTING_TEXT || !*s->text))
        what = "takes a text in quotes";
    else if (row->takes == TAKES_BOOL && s->kind != SETTING_BOOL)
        what = "is true or false";
    else if (row->takes == TAKES_COUNT && (s->kind != SETTING_NUMBER || s->number < 1 ||
                                           s->number > 10000 || s->number != floor(s->number)))
        what = "is a whole number from 1 up";
    else if (row->takes == TAKES_COUNT_OR_NONE &&
             (s->kind != SETTING_NUMBER || s->number < 0 || s->number > 1e9 ||
              s->number != floor(s->number)))
        what = "is a whole number from 0 up";
    else if (row->takes == TAKES_AMOUNT && (s->kind != SETTING_NUMBER || s->number < 0 ||
                                            s->number > 1e15 || s->number != floor(s->number)))
        what = "is a whole number from 0 up";
    else if (row->takes == TAKES_SHARE && !read_share(s, &share))
        what = "is a share: 0.05, or \"5 %\" (1 and more in percent only)";
    else if (row->key == KEY_ALPHA && (!read_share(s, &share) || share <= 0 || share > 0.5))
        what = "is a chance above 0 and at most 0.5";
    if (!what)
        return PROF_OK;
    snprintf(text, sizeof text, "'%s' %s", row->name, what);
    return fail_setting(m, s->line, text);
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

/* A copy that lives as long as the configuration. */
static char *keep_config_text(struct gate_config *config, const char *text)
{
    char *copy = strdup(text);
    if (!copy || !prof_array_room(&config->texts, &config->text_room, config->text_count + 1,
                                  sizeof *config->texts)) {
        free(copy);
        return NULL;
    }
    return config->texts[config->text_count++] = copy;
}

/* ---- overrides ------------------------------------------------------------------------------- */

static const struct prof_override nothing = {
    .min_effect = NAN,
    .target = NAN,
    .min_share = NAN,
    .tolerance = NAN,
    .tolerance_absolute = PROF_UNKNOWN,
};

static enum prof_status set_action(const struct maker *m, const struct setting *s,
                                   struct prof_override *override)
{
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++) {
        if (strcmp(s->text, actions[i].name))
            continue;
        override->has_action = true;
        override->action = actions[i].action;
        return PROF_OK;
    }
    return fail_setting(m, s->line,
                        "'action' is \"fail\", \"warn\" or \"info\": what is not to be compared "
                        "goes into [[ignore]], with a reason");
}

static enum prof_status set_override(const struct maker *m, const struct key_row *row,
                                     const struct setting *s, struct prof_override *override)
{
    double share = 0;
    if (row->takes == TAKES_SHARE)
        read_share(s, &share);
    switch (row->key) {
    case KEY_DELTA:
        override->min_effect = share;
        break;
    case KEY_TARGET:
        override->target = share;
        break;
    case KEY_MIN_SHARE:
        override->min_share = share;
        break;
    case KEY_TOLERANCE:
        override->tolerance = share;
        break;
    case KEY_TOLERANCE_ABSOLUTE:
        override->tolerance_absolute = (int64_t)s->number;
        break;
    case KEY_ACTION:
        return set_action(m, s, override);
    case KEY_MATCH:
        if (!fits_any_family(s->text))
            return fail_setting(m, s->line,
                                "'match' fits no metric: it begins with one, as in "
                                "\"kernel:gemm*\", or with \"*:\" for all (docs/guide/gate.md)");
        override->match = keep_config_text(m->config, s->text);
        return override->match ? PROF_OK : prof_out_of_memory(m->err);
    case KEY_REASON:
        override->reason = keep_config_text(m->config, s->text);
        return override->reason ? PROF_OK : prof_out_of_memory(m->err);
    default:
        break;
    }
    return PROF_OK;
}

static enum prof_status add_override(const struct maker *m, const struct prof_override *override)
{
    struct gate_config *c = m->config;
    if (!prof_array_room(&c->overrides, &c->override_room, c->override_count + 1,
                         sizeof *c->overrides))
        return prof_out_of_memory(m->err);
    c->overrides[c->override_count++] = *override;
    return PROF_OK;
}

static enum prof_status add_expired(const struct maker *m, unsigned line, const char *match,
                                    const char *date)
{
    struct gate_config *c = m->config;
    char *kept_match = keep_config_text(c, match), *kept_date = keep_config_text(c, date);
    if (!kept_match || !kept_date ||
        !prof_array_room(&c->expired, &c->expired_room, c->expired_count + 1, sizeof *c->expired))
        return prof_out_of_memory(m->err);
    c->expired[c->expired_count++] = (struct gate_expired){line, kept_match, kept_date};
    return PROF_OK;
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

/* The whole section: [kernel], [[override]], [[ignore]] or what is before the first. */
static enum prof_status make_override(const struct maker *m, unsigned index)
{
    const struct settings_section *section = &m->settings->sections[index];
    unsigned place = section_scope(section);
    struct prof_override override = nothing;
    const char *expires = NULL;
    enum prof_status status = PROF_OK;
    char match[80];
    for (size_t i = 0; !status && i < m->settings->count; i++) {
        const struct setting *s = &m->settings->rows[i];
        if (s->section != index)
            continue;
        const struct key_row *row = keys;
        while (strcmp(row->name, s->key))
            row++;
        status = set_override(m, row, s, &override);
        if (!status && row->key == KEY_EXPIRES) {
            expires = s->text;
            if (!is_date(expires))
                status = fail_setting(m, s->line, "'expires' is a day: \"2026-12-31\"");
        }
    }
    if (status)
        return status;
    if (place == IN_OVERRIDE || place == IN_IGNORE) {
        if (!override.match)
            return fail_setting(m, section->line,
                                "needs a 'match': which metrics, as in \"kernel:gemm*\"");
        if (!override.reason)
            return fail_setting(m, section->line, "needs a 'reason', which the report prints");
    } else {
        snprintf(match, sizeof match, "%s%s*", section->name, place == IN_FILE ? "" : ":");
        override.match = keep_config_text(m->config, match);
        if (!override.match)
            return prof_out_of_memory(m->err);
    }
    if (place == IN_FILE && isnan(override.min_effect) && isnan(override.target) &&
        isnan(override.min_share))
        return PROF_OK;
    if (place == IN_IGNORE) {
        override.has_action = true;
        override.action = PROF_ACTION_IGNORE;
    }
    if (expires && is_past(expires))
        return add_expired(m, section->line, override.match, expires);
    return add_override(m, &override);
}

/* ---- the file -------------------------------------------------------------------------------- */

static enum prof_status check_sections(const struct maker *m)
{
    for (size_t i = 0; i < m->settings->section_count; i++) {
        const struct settings_section *section = &m->settings->sections[i];
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
    bool for_exact = row->key == KEY_TOLERANCE || row->key == KEY_TOLERANCE_ABSOLUTE;
    bool for_noisy = row->key == KEY_DELTA || row->key == KEY_TARGET || row->key == KEY_MIN_SHARE;
    const struct prof_metric_info *info = prof_metric_info(prof_metric_named(section));
    if (info && info->exact && for_noisy)
        return fail_setting(m, s->line, "this metric is exact: give it a 'tolerance'");
    if (info && !info->exact && for_exact)
        return fail_setting(m, s->line, "this metric is a time: give it a 'delta'");
    return PROF_OK;
}

static enum prof_status check_keys(const struct maker *m)
{
    for (size_t i = 0; i < m->settings->count; i++) {
        const struct setting *s = &m->settings->rows[i];
        unsigned place = section_scope(&m->settings->sections[s->section]);
        const struct key_row *row = keys;
        while (row->name && (strcmp(row->name, s->key) || !(row->places & place)))
            row++;
        if (!row->name)
            return unknown_key(m, s, place);
        enum prof_status status = check_value(m, row, s);
        if (!status && place == IN_FAMILY)
            status = check_sense(m, s, row, m->settings->sections[s->section].name);
        if (status)
            return status;
    }
    return PROF_OK;
}

static void set_file_key(struct gate_config *config, const struct setting *s)
{
    if (!strcmp(s->key, "baselines")) {
        int folder = *s->text == '/' ? 0 : (int)(prof_file_name(config->path) - config->path);
        snprintf(config->baselines, sizeof config->baselines, "%.*s%s", folder, config->path,
                 s->text);
    } else if (!strcmp(s->key, "iteration")) {
        snprintf(config->iteration, sizeof config->iteration, "%s", s->text);
    } else if (!strcmp(s->key, "skip")) {
        config->skip = (unsigned)s->number;
    } else if (!strcmp(s->key, "alpha")) {
        read_share(s, &config->alpha);
    } else if (!strcmp(s->key, "strict")) {
        config->strict = s->number != 0;
    } else if (!strcmp(s->key, "allow_single")) {
        config->allow_single = s->number != 0;
    } else if (!strcmp(s->key, "sessions")) {
        config->sessions = (unsigned)s->number;
    }
}

static enum prof_status use(const struct settings *settings, struct gate_config *config,
                            struct prof_error *err)
{
    struct maker m = {settings, config, err};
    /* Of several that fit a metric the last counts: the general ones first, wherever they are. */
    static const unsigned order[] = {IN_FILE, IN_FAMILY, IN_OVERRIDE | IN_IGNORE};
    enum prof_status status = check_sections(&m);
    status = status ? status : check_keys(&m);
    for (size_t pass = 0; !status && pass < sizeof order / sizeof order[0]; pass++)
        for (unsigned i = 0; !status && i < settings->section_count; i++)
            if (section_scope(&settings->sections[i]) & order[pass])
                status = make_override(&m, i);
    for (size_t i = 0; !status && i < settings->count; i++)
        if (settings->rows[i].section == 0)
            set_file_key(config, &settings->rows[i]);
    return status;
}

/* Where there are none yet, they will be at the top of the project. */
static void find_baselines(const char *file, struct gate_config *config)
{
    char place[PATH_MAX];
    if (!file && config->baselines[0])
        return;
    if (file) {
        snprintf(config->baselines, sizeof config->baselines, "%s", file);
    } else if (project_find(GATE_FOLDER, place, sizeof place) ||
               project_find(".git", place, sizeof place)) {
        const char *name = prof_file_name(place);
        snprintf(config->baselines, sizeof config->baselines, "%.*s%s", (int)(name - place), place,
                 GATE_BASELINES);
    } else {
        snprintf(config->baselines, sizeof config->baselines, "%s", GATE_BASELINES);
    }
}

enum prof_status gate_config_read(const char *path, const char *baselines,
                                  struct gate_config *config, struct prof_error *err)
{
    struct settings settings = {0};
    enum prof_status status = PROF_OK;
    *config = (struct gate_config){.skip = CLI_NO_SKIP};
    if (path)
        snprintf(config->path, sizeof config->path, "%s", path);
    if (path || project_find(GATE_CONFIG_NAME, config->path, sizeof config->path)) {
        status = settings_read(config->path, &settings, err);
        status = status ? status : use(&settings, config, err);
    }
    settings_free(&settings);
    find_baselines(baselines, config);
    if (status)
        gate_config_free(config);
    return status;
}

void gate_config_free(struct gate_config *config)
{
    for (size_t i = 0; i < config->text_count; i++)
        free(config->texts[i]);
    free(config->texts);
    free(config->overrides);
    free(config->expired);
    *config = (struct gate_config){0};
}
