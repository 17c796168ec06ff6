/* The option tables: parsed by getopt_long, and the help printed from them; see options.h. */
#include "workloads/common/options.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const backend_names[] = {"auto", "cuda", "opencl", "cpu", NULL};
const char *const preset_names[] = {"none", "small", "seed", NULL};

#define COMMON(member) offsetof(struct common_options, member)

static const struct option_row common_rows[] = {
    {"backend", OPTION_CHOICE, NULL, COMMON(backend), backend_names,
     "what to run on; auto takes CUDA, else OpenCL, else the CPU", 0, 0},
    {"variant", OPTION_TEXT, "NAME", COMMON(variant), NULL,
     "run this variant only; all of them otherwise", 0, 0},
    {"preset", OPTION_CHOICE, NULL, COMMON(preset), preset_names,
     "sizes: small for a quick run, seed for those of the original project", 0, 0},
    {"iterations", OPTION_U32, "N", COMMON(iterations), NULL, "measured iterations", 1, 1000000},
    {"warmup", OPTION_U32, "N", COMMON(warmup), NULL, "iterations before those, not measured", 0,
     1000000},
    {"seed", OPTION_U64, "N", COMMON(seed), NULL, "seed of the generated data", 0, 0},
    {"wall-only", OPTION_FLAG, NULL, COMMON(wall_only), NULL,
     "leave out iterations that only measure the times of kernels and copies", 0, 0},
    {"verify", OPTION_FLAG, NULL, COMMON(verify), NULL,
     "compare every output with the double-precision reference; exit 1 on a mismatch", 0, 0},
    {"json", OPTION_FLAG, NULL, COMMON(json), NULL, "print JSON instead of tables", 0, 0},
    {"list-variants", OPTION_FLAG, NULL, COMMON(list_variants), NULL,
     "print the names of the variants and what they do", 0, 0},
    {"help", OPTION_FLAG, NULL, COMMON(help), NULL, "print this", 0, 0},
};

#define COMMON_COUNT (sizeof common_rows / sizeof common_rows[0])

static const struct option_row *row_at(const struct option_set *set, size_t index)
{
    if (index < COMMON_COUNT)
        return &common_rows[index];
    index -= COMMON_COUNT;
    return index < set->row_count ? &set->rows[index] : NULL;
}

static int complain(const struct option_set *set, const char *what, const char *argument,
                    const char *mend)
{
    fprintf(stderr, "%s: %s: %s: %s\n", set->program, argument, what, mend);
    return -1;
}

static int set_choice(const struct option_set *set, const struct option_row *row, const char *text,
                      int *value)
{
    for (int i = 0; row->choices[i]; i++) {
        if (strcmp(row->choices[i], text) == 0) {
            *value = i;
            return 0;
        }
    }
    fprintf(stderr, "%s: --%s: no such value: %s: take one of", set->program, row->name, text);
    for (int i = 0; row->choices[i]; i++)
        fprintf(stderr, " %s", row->choices[i]);
    fputc('\n', stderr);
    return -1;
}

static uint64_t largest(const struct option_row *row)
{
    if (row->max)
        return row->max;
    return row->kind == OPTION_U32 ? UINT32_MAX : UINT64_MAX;
}

/* Digits only, which keeps out the signs, blanks, and names of numbers that strtod takes. */
static bool read_number(enum option_kind kind, const char *text, uint64_t *out)
{
    static const char units[] = "KMGT";
    const char *unit = text + strspn(text, kind == OPTION_BYTES ? "0123456789." : "0123456789");
    const char *found = *unit && kind == OPTION_BYTES ? strchr(units, *unit) : NULL;
    char *end;
    double number;

    if (unit == text || (*unit && (!found || unit[1])))
        return false;
    errno = 0;
    if (!found) {
        *out = strtoull(text, &end, 10);
        return errno == 0 && end == unit;
    }
    number = strtod(text, &end);
    for (const char *u = units; u <= found; u++)
        number *= 1024;
    *out = number < 0x1p63 ? (uint64_t)number : 0;
    return end == unit && number < 0x1p63;
}

static int set_value(const struct option_set *set, const struct option_row *row, const char *text,
                     void *values)
{
    void *at = (char *)values + row->offset;
    uint64_t number;

    switch (row->kind) {
    case OPTION_FLAG:
        *(bool *)at = true;
        return 0;
    case OPTION_TEXT:
        *(const char **)at = text;
        return 0;
    case OPTION_CHOICE:
        return set_choice(set, row, text, at);
    case OPTION_U32:
    case OPTION_U64:
    case OPTION_BYTES:
        if (!read_number(row->kind, text, &number) || number < row->min || number > largest(row)) {
            fprintf(stderr,
                    "%s: --%s %s: not a number that it takes: give one from %" PRIu64 " to %" PRIu64
                    "%s\n",
                    set->program, row->name, text, row->min, largest(row),
                    row->kind == OPTION_BYTES ? ", or 512M, 8G" : "");
            return -1;
        }
        if (row->kind == OPTION_U32)
            *(uint32_t *)at = (uint32_t)number;
        else
            *(uint64_t *)at = number;
        return 0;
    }
    return -1;
}

#define OPTIONS_MAX 64
#define FIRST_ROW 256 /* what getopt_long returns for row 0: no character */

/* -1 after what getopt_long found wrong (`found`) with the argument before optind. */
static int complain_about(const struct option_set *set, int found, char **argv)
{
    char letter[] = {'-', (char)optopt, '\0'};
    const char *argument = optopt > 0 && optopt < FIRST_ROW ? letter : argv[optind - 1];

    if (found == ':')
        return complain(set, "needs a value", argument, "give one after it");
    if (optopt >= FIRST_ROW)
        return complain(set, "takes no value", argument, "leave it out");
    return complain(set, "no such option", argument, "--help lists them");
}

/* One pass over the arguments; `only` (may be NULL) restricts it to one option. */
static int apply(const struct option_set *set, int argc, char **argv, const char *only,
                 void *values)
{
    struct option options[OPTIONS_MAX] = {{0}};
    const struct option_row *row;
    int found;

    for (int i = 0; i + 1 < OPTIONS_MAX && (row = row_at(set, (size_t)i)) != NULL; i++)
        options[i] =
            (struct option){row->name, row->kind == OPTION_FLAG ? no_argument : required_argument,
                            NULL, FIRST_ROW + i};
    opterr = 0;
    optind = 0; /* starts again from the first argument */
    while ((found = getopt_long(argc, argv, "+:h", options, NULL)) != -1) {
        if (found == 'h') {
            ((struct common_options *)values)->help = true;
            continue;
        }
        if (found == '?' || found == ':')
            return complain_about(set, found, argv);
        row = row_at(set, (size_t)(found - FIRST_ROW));
        if ((!only || strcmp(only, row->name) == 0) && set_value(set, row, optarg, values) != 0)
            return -1;
    }
    if (optind < argc)
        return complain(set, "no such option", argv[optind], "--help lists them");
    return 0;
}

int options_parse(const struct option_set *set, int argc, char **argv, void *values)
{
    struct common_options *common = values;

    if (apply(set, argc, argv, "preset", values) != 0)
        return -1;
    if (set->apply_preset && common->preset != PRESET_NONE)
        set->apply_preset(common->preset, values);
    return apply(set, argc, argv, NULL, values);
}

static void print_default(const struct option_row *row, const void *values)
{
    const void *at = (const char *)values + row->offset;

    switch (row->kind) {
    case OPTION_FLAG:
    case OPTION_TEXT:
        break;
    case OPTION_CHOICE:
        printf(" [%s]", row->choices[*(const int *)at]);
        break;
    case OPTION_U32: /* beyond what may be given: the help tells what happens without it */
        if (*(const uint32_t *)at <= largest(row))
            printf(" [%" PRIu32 "]", *(const uint32_t *)at);
        break;
    case OPTION_U64:
    case OPTION_BYTES:
        printf(" [%" PRIu64 "]", *(const uint64_t *)at);
        break;
    }
}

/* Prints the usage with every option and its default, taken from `values`, on stdout. */
static void options_help(const struct option_set *set, const void *values)
{
    const struct option_row *row;

    printf("usage: %s [options]\n\n%s\n\n", set->program, set->summary);
    for (size_t i = 0; (row = row_at(set, i)) != NULL; i++) {
        char left[96];
        size_t used = (size_t)snprintf(left, sizeof left, "--%s", row->name);

        if (row->value)
            snprintf(left + used, sizeof left - used, " %s", row->value);
        for (int c = 0; row->choices && row->choices[c]; c++)
            used += (size_t)snprintf(left + used, sizeof left - used, "%s%s", c ? "|" : " ",
                                     row->choices[c]);
        printf("  %-32s %s", left, row->help);
        print_default(row, values);
        putchar('\n');
    }
}

static void list_variants(const struct option_set *set)
{
    const char *name, *summary;

    for (size_t i = 0; (name = set->variant(i, &summary)) != NULL; i++)
        printf("%-22s %s\n", name, summary);
}

static bool known_variant(const struct option_set *set, const char *wanted)
{
    const char *name, *summary;

    for (size_t i = 0; (name = set->variant(i, &summary)) != NULL; i++)
        if (strcmp(name, wanted) == 0)
            return true;
    return false;
}

int options_end(const struct option_set *set, const void *values, const void *defaults)
{
    const struct common_options *common = values;

    if (common->help) {
        options_help(set, defaults);
        return 0;
    }
    if (common->list_variants) {
        list_variants(set);
        return 0;
    }
    if (common->variant && !known_variant(set, common->variant)) {
        fprintf(stderr, "%s: no such variant: %s: --list-variants shows them\n", set->program,
                common->variant);
        return 2;
    }
    return -1;
}
