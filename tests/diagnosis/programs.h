/* A program with the fault of each rule, the mended one, and a near miss: what must be told of the
 * first only. */
#ifndef PERFKIT_TESTS_DIAGNOSIS_PROGRAMS_H
#define PERFKIT_TESTS_DIAGNOSIS_PROGRAMS_H

#include "tests/diagnosis/scene.h"

#define STEPS 40 /* of each program */
#define US INT64_C(1000)

/* One step of a program; `which` tells the version. */
enum version { BAD, FIXED, NEAR };
typedef void program_part(struct scene *s, enum version which);

struct program {
    const char *rule;
    program_part *step, *setup; /* setup: NULL = one large kernel */
    bool in_range;              /* a step is one of the range "step" */
    const char *api;            /* NULL = "cuda" */
    bool no_price;              /* about memory, or about start-up */
};

extern const struct program programs[];
extern const size_t program_count;

/* Run a version; *wall_ns (NULL allowed) is what its steps took. `damage`: SQL for what they
 * recorded, or NULL. */
struct prof_capture *program_run(const struct program *program, enum version which,
                                 const char *damage, int64_t *wall_ns);

/* The finding of that rule, or NULL. */
const struct prof_finding *finding_of(const struct prof_findings *findings, const char *rule);
/* Its number of that name, or NULL. */
const struct prof_number *number_named(const struct prof_finding *finding, const char *name);
/* Its value, -1 = it has none of that name. */
double number_of(const struct prof_finding *finding, const char *name);
/* On standard error, for a test that fails. */
void findings_list(const struct prof_findings *findings);
/* What holds for the findings of every capture. */
void findings_check(const struct prof_findings *findings);

#endif
