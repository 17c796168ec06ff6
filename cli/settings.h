/* Reads a settings file, the part of TOML that such files need: comments, `key = value` with
 * strings, numbers and booleans, [section], and [[section]] that may come again. Everything read
 * keeps its line, for messages about it. */
#ifndef PERFKIT_CLI_SETTINGS_H
#define PERFKIT_CLI_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "libprof/base/array.h"
#include "libprof/base/error.h"

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

#endif
