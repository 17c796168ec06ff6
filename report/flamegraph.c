/* Folded stacks for flamegraph.pl, speedscope and their kin: "range;range;call;kernel NANOSECONDS",
 * one line per distinct stack, sorted by bytes so that two captures can be compared with diff.
 * Weights that are 0 are left out: no tool shows them. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/utf8.h"
#include "report/writers.h"

struct line {
    char *stack;
    int64_t weight;
};

static int by_stack(const void *a, const void *b)
{
    return strcmp(((const struct line *)a)->stack, ((const struct line *)b)->stack);
}

static char *path_of(const struct prof_flame *flame, size_t node)
{
    size_t length = prof_flame_path(flame, node, NULL, 0);
    char *stack = malloc(length + 1);
    if (!stack)
        return NULL;
    prof_flame_path(flame, node, stack, length + 1);
    char *clean = prof_report_clean(stack); /* the tools put names into SVG as they are */
    free(stack);
    return clean;
}

static enum prof_status collect(const struct prof_flame *flame, struct line *lines, size_t *count,
                                struct prof_error *err)
{
    for (size_t i = 1; i < flame->count; i++) {
        if (flame->nodes[i].self <= 0)
            continue;
        char *stack = path_of(flame, i);
        if (!stack)
            return prof_fail(err, PROF_NOMEM, "cannot write the flame graph: out of memory");
        lines[(*count)++] = (struct line){stack, flame->nodes[i].self};
    }
    return PROF_OK;
}

/* Different names may fold to the same text (';' becomes ':'): such lines are one. */
static void print(FILE *out, const struct line *lines, size_t count)
{
    for (size_t i = 0; i < count;) {
        int64_t weight = 0;
        size_t first = i;
        do
            weight += lines[i++].weight;
        while (i < count && !strcmp(lines[i].stack, lines[first].stack));
        fprintf(out, "%s %" PRId64 "\n", lines[first].stack, weight);
    }
}

enum prof_status prof_report_write_flamegraph(struct prof_capture *capture,
                                              const struct prof_report_options *options, FILE *out,
                                              struct prof_error *err)
{
    struct prof_flame flame = {0};
    struct line *lines = NULL;
    size_t count = 0;
    enum prof_status status =
        prof_flame(capture, options ? options->filter : NULL, PROF_FLAME_DEVICE_NS, &flame, err);
    if (!status && flame.count) {
        lines = calloc(flame.count, sizeof *lines);
        status = lines ? collect(&flame, lines, &count, err)
                       : prof_fail(err, PROF_NOMEM, "cannot write the flame graph: out of memory");
    }
    if (!status) {
        if (count)
            qsort(lines, count, sizeof *lines, by_stack);
        print(out, lines, count);
        status = prof_report_flush(out, err);
    }
    for (size_t i = 0; i < count; i++)
        free(lines[i].stack);
    free(lines);
    prof_flame_free(&flame);
    return status;
}
