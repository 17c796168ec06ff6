/* The checks of perfkit doctor: a table of functions, each of which fills one or more lines. */
#ifndef PERFKIT_CLI_DOCTOR_H
#define PERFKIT_CLI_DOCTOR_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "cli/installed.h"

enum doctor_level {
    DOCTOR_OK,
    DOCTOR_ABSENT, /* not here and not needed: no NVIDIA driver on a laptop */
    DOCTOR_WARN,   /* something is recorded less well */
    DOCTOR_FAIL,   /* something cannot be recorded although it is here */
};

struct doctor_line {
    const char *group; /* "system", "collector", "cuda", "opencl" */
    const char *name;
    enum doctor_level level;
    char text[400];
    char remedy[400]; /* "" = none */
};

#define DOCTOR_LINES 48

struct doctor {
    struct doctor_line lines[DOCTOR_LINES];
    size_t count;
    char collector[PATH_MAX]; /* "" = not found */
    bool can_nvtx, can_opencl, can_cuda;
};

/* Add a line; remedy may be NULL. */
void doctor_add(struct doctor *doctor, const char *group, const char *name, enum doctor_level level,
                const char *remedy, const char *format, ...) __attribute__((format(printf, 6, 7)));

/* The checks, in the order of the table in doctor.c. */
void doctor_cuda(struct doctor *doctor);
void doctor_opencl(struct doctor *doctor);

#endif
