/* Command-line options of the workloads, from a table: parsing, defaults and --help all come
 * from the same rows, so they cannot disagree.
 */
#ifndef WORKLOADS_COMMON_OPTIONS_H
#define WORKLOADS_COMMON_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/device/device.h"

enum option_kind {
    OPTION_FLAG,   /* bool; takes no value */
    OPTION_U32,    /* uint32_t */
    OPTION_U64,    /* uint64_t */
    OPTION_BYTES,  /* uint64_t; 8G, 512M, 1.5K or a plain number */
    OPTION_CHOICE, /* int, the index of the value in choices */
    OPTION_TEXT,   /* const char *, points into argv */
};

struct option_row {
    const char *name; /* without the dashes */
    enum option_kind kind;
    const char *value;          /* how --help calls the value, NULL for flags and choices */
    size_t offset;              /* of the variable in the values structure */
    const char *const *choices; /* NULL-terminated */
    const char *help;
    uint64_t min, max; /* numbers allowed; max 0: as large as the kind holds */
};

/* What every workload takes. A workload's own values structure begins with this one. */
struct common_options {
    int backend; /* enum dev_backend */
    int preset;  /* index into preset_names */
    const char *variant;
    uint32_t iterations;
    uint32_t warmup;
    uint64_t seed;
    bool wall_only;
    bool verify;
    bool json;
    bool list_variants;
    bool help;
};

enum { PRESET_NONE, PRESET_SMALL, PRESET_SEED };
extern const char *const preset_names[]; /* NULL-terminated */

struct option_set {
    const char *program;
    const char *summary;           /* one line for --help */
    const struct option_row *rows; /* the workload's own; the common ones are always there */
    size_t row_count;
    /* Sets the values of a preset; called before the other options are applied. */
    void (*apply_preset)(int preset, void *values);
    /* The name of variant `index`, and one line about it; NULL beyond the last. */
    const char *(*variant)(size_t index, const char **summary);
};

/* Fills `values` (which holds the defaults on entry) from the arguments. Returns 0; or -1 after
 * saying on stderr what is wrong. --help is printed by options_end. */
int options_parse(const struct option_set *set, int argc, char **argv, void *values);

/* What ends a program before it begins: prints what --help or --list-variants ask for, or on stderr
 * that there is no such --variant. The exit status then, -1 to go on. `defaults`: values as they
 * were before options_parse. */
int options_end(const struct option_set *set, const void *values, const void *defaults);

#endif
