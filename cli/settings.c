/* A reader for small settings files. A library for TOML would bring dates, nested tables and arrays
 * that no setting of ours has, and none that distributions carry gives the line of a key, which a
 * user needs to fix the file from the log of a CI job. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/gate.h"
#include "libprof/base/regular.h"

#define MOST_BYTES (1u << 20)

struct reader {
    struct settings *settings;
    struct prof_error *err;
    unsigned line;
    char *at; /* in the line being read */
};

static enum prof_status fail_line(const struct reader *r, const char *what, const char *word)
{
    return prof_fail(r->err, PROF_FORMAT, "%s:%u: %s%s%s", r->settings->path, r->line, what,
                     word ? " " : "", word ? word : "");
}

static void skip_blanks(struct reader *r)
{
    while (*r->at == ' ' || *r->at == '\t')
        r->at++;
}

/* Nothing but a comment may follow. */
static enum prof_status expect_end(struct reader *r)
{
    skip_blanks(r);
    return !*r->at || *r->at == '#' ? PROF_OK : fail_line(r, "this does not belong here:", r->at);
}

static size_t word_length(const char *text)
{
    return strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");
}

/* ---- values ---------------------------------------------------------------------------------- */

/* One escape sequence of a "..." string, of those that a name may need. */
static bool escaped(char c, char *out)
{
    static const char from[] = "\"\\nt", to[] = "\"\\\n\t";
    const char *found = c ? strchr(from, c) : NULL;
    if (found)
        *out = to[found - from];
    return found != NULL;
}

static enum prof_status read_setting_string(struct reader *r, struct setting *setting)
{
    char quote = *r->at++, *out = malloc(strlen(r->at) + 1);
    size_t used = 0;
    if (!out)
        return prof_out_of_memory(r->err);
    setting->kind = SETTING_TEXT;
    setting->text = out;
    for (; *r->at && *r->at != quote; r->at++) {
        char c = *r->at;
        if (c == '\\' && quote == '"') {
            r->at++;
            if (!escaped(*r->at, &c))
                return fail_line(r,
                                 "a backslash in \"...\" stands before \\, \", n or t only: write "
                                 "'...' for a text as it is",
                                 NULL);
        }
        out[used++] = c;
    }
    out[used] = '\0';
    if (*r->at != quote)
        return fail_line(r, "the text has no end: close it with", quote == '"' ? "\"" : "'");
    r->at++;
    return PROF_OK;
}

static enum prof_status read_setting_number(struct reader *r, struct setting *setting)
{
    char *end;
    errno = 0;
    setting->kind = SETTING_NUMBER;
    setting->number = strtod(r->at, &end);
    if (end == r->at || errno || !isfinite(setting->number) || word_length(end))
        return fail_line(r, "give a number, true, false, or a text in quotes, not",
                         *r->at ? r->at : "nothing");
    r->at = end;
    return PROF_OK;
}

static enum prof_status read_value(struct reader *r, struct setting *setting)
{
    if (*r->at == '"' || *r->at == '\'')
        return read_setting_string(r, setting);
    size_t length = word_length(r->at);
    bool yes = length == 4 && !strncmp(r->at, "true", 4);
    if (!yes && !(length == 5 && !strncmp(r->at, "false", 5)))
        return read_setting_number(r, setting);
    setting->kind = SETTING_BOOL;
    setting->number = yes;
    r->at += length;
    return PROF_OK;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static enum prof_status add_section(struct reader *r, const char *name, size_t length,
                                    bool repeated)
{
    struct settings *s = r->settings;
    for (size_t i = 0; i < s->sections.count; i++) {
        const struct settings_section *other = &s->sections.data[i];
        if (strlen(other->name) != length || strncmp(other->name, name, length) ||
            (repeated && other->repeated))
            continue;
        return prof_fail(r->err, PROF_FORMAT, "%s:%u: section '%s' is there already, in line %u",
                         s->path, r->line, other->name, other->line);
    }
    char *copy = strndup(name, length);
    if (copy && prof_array_push(&s->sections, (struct settings_section){r->line, copy, repeated}))
        return PROF_OK;
    free(copy);
    return prof_out_of_memory(r->err);
}

static enum prof_status read_section(struct reader *r)
{
    bool repeated = r->at[1] == '[';
    r->at += repeated ? 2 : 1;
    skip_blanks(r);
    const char *name = r->at;
    size_t length = word_length(name);
    r->at += length;
    skip_blanks(r);
    if (!length || strncmp(r->at, repeated ? "]]" : "]", repeated ? 2 : 1))
        return fail_line(r, "a section is written [name], or [[name]] where there may be several",
                         NULL);
    r->at += repeated ? 2 : 1;
    PROF_TRY(expect_end(r));
    return add_section(r, name, length, repeated);
}

static enum prof_status add_setting(struct reader *r, const struct setting *setting)
{
    struct settings *s = r->settings;
    for (size_t i = 0; i < s->rows.count; i++) {
        const struct setting *other = &s->rows.data[i];
        if (other->section == setting->section && !strcmp(other->key, setting->key))
            return prof_fail(r->err, PROF_FORMAT, "%s:%u: '%s' is set already, in line %u", s->path,
                             r->line, setting->key, other->line);
    }
    return prof_array_push(&s->rows, *setting) ? PROF_OK : prof_out_of_memory(r->err);
}

static enum prof_status read_setting(struct reader *r)
{
    size_t length = word_length(r->at);
    struct setting setting = {.line = r->line,
                              .section = (unsigned)r->settings->sections.count - 1,
                              .key = strndup(r->at, length)};
    enum prof_status status = PROF_OK;
    if (!setting.key)
        return prof_out_of_memory(r->err);
    r->at += length;
    skip_blanks(r);
    if (!length || *r->at != '=')
        status = fail_line(r, "give a setting as key = value", NULL);
    if (!status) {
        r->at++;
        skip_blanks(r);
        status = read_value(r, &setting);
    }
    status = status ?: expect_end(r);
    status = status ?: add_setting(r, &setting);
    if (status) {
        free(setting.key);
        free(setting.text);
    }
    return status;
}

static enum prof_status read_setting_line(struct reader *r, char *line, size_t length)
{
    while (length && (line[length - 1] == '\n' || line[length - 1] == '\r'))
        length--;
    line[length] = '\0';
    if (strlen(line) != length)
        return fail_line(r, "holds a NUL byte: this is not a text file", NULL);
    r->at = line;
    skip_blanks(r);
    if (!*r->at || *r->at == '#')
        return PROF_OK;
    return *r->at == '[' ? read_section(r) : read_setting(r);
}

enum prof_status settings_read(const char *path, struct settings *settings, struct prof_error *err)
{
    *settings = (struct settings){.path = path};
    struct reader r = {.settings = settings, .err = err};
    PROF_FILE_CLOSED FILE *in = prof_read_regular(path);
    if (!in && (errno == EINVAL || errno == EISDIR))
        return prof_fail(err, PROF_FORMAT, "%s is not a regular file", path);
    if (!in)
        return prof_fail_errno(err, errno == ENOENT ? PROF_NOTFOUND : PROF_IO, "cannot read %s",
                               path);
    enum prof_status status = add_section(&r, "", 0, false);
    PROF_FREED char *line = NULL;
    size_t room = 0, total = 0;
    ssize_t length;
    while (!status && (length = getline(&line, &room, in)) > 0) {
        r.line++;
        total += (size_t)length;
        /* the byte order mark that editors put in front */
        size_t mark = r.line == 1 && strncmp(line, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
        status = total > MOST_BYTES ? fail_line(&r, "the file is too long for settings", NULL)
                                    : read_setting_line(&r, line + mark, (size_t)length - mark);
    }
    if (!status && ferror(in))
        status = prof_fail_errno(err, PROF_IO, "cannot read %s", path);
    if (status)
        settings_free(settings);
    return status;
}

void settings_free(struct settings *settings)
{
    for (size_t i = 0; i < settings->sections.count; i++)
        free(settings->sections.data[i].name);
    for (size_t i = 0; i < settings->rows.count; i++) {
        free(settings->rows.data[i].key);
        free(settings->rows.data[i].text);
    }
    prof_array_free(&settings->sections);
    prof_array_free(&settings->rows);
}
