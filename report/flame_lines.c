/* The flame graph's tree as text, a line for each distinct stack: what folded stacks and their
 * difference are made of. Weights that are 0 are left out: no tool shows them. */
#include <stdlib.h>
#include <string.h>

#include "report/flame_lines.h"
#include "libprof/base/utf8.h"

static int by_stack(const void *a, const void *b)
{
    return strcmp(((const struct prof_flame_line *)a)->stack,
                  ((const struct prof_flame_line *)b)->stack);
}

static char *flame_line_path(const struct prof_flame *flame, size_t node)
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

static bool collect_flame_lines(const struct prof_flame *flame, struct prof_flame_lines *result)
{
    for (size_t i = 1; i < flame->count; i++) {
        if (flame->nodes[i].self <= 0)
            continue;
        char *stack = flame_line_path(flame, i);
        if (!stack)
            return false;
        result->rows[result->count++] = (struct prof_flame_line){stack, flame->nodes[i].self};
    }
    return true;
}

/* Different names may fold to the same text (';' becomes ':'): such lines are one. */
static void merge_flame_lines(struct prof_flame_lines *lines)
{
    size_t kept = 0;
    for (size_t i = 0; i < lines->count; i++) {
        if (kept && !strcmp(lines->rows[kept - 1].stack, lines->rows[i].stack)) {
            lines->rows[kept - 1].weight += lines->rows[i].weight;
            free(lines->rows[i].stack);
        } else {
            lines->rows[kept++] = lines->rows[i];
        }
    }
    lines->count = kept;
}

enum prof_status prof_flame_lines(struct prof_capture *capture, const struct prof_filter *filter,
                                  enum prof_flame_weight weight, struct prof_flame_lines *result,
                                  struct prof_error *err)
{
    struct prof_flame flame = {0};
    *result = (struct prof_flame_lines){0};
    enum prof_status status = prof_flame(capture, filter, weight, &flame, err);
    if (!status && flame.count) {
        result->rows = calloc(flame.count, sizeof *result->rows);
        if (!result->rows || !collect_flame_lines(&flame, result))
            status = prof_fail(err, PROF_NOMEM, "cannot write the flame graph: out of memory");
    }
    if (!status && result->count) {
        qsort(result->rows, result->count, sizeof *result->rows, by_stack);
        merge_flame_lines(result);
    }
    prof_flame_free(&flame);
    if (status)
        prof_flame_lines_free(result);
    return status;
}

void prof_flame_lines_free(struct prof_flame_lines *result)
{
    for (size_t i = 0; i < result->count; i++)
        free(result->rows[i].stack);
    free(result->rows);
    *result = (struct prof_flame_lines){0};
}
