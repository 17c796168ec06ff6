/* Whether the waterfall of `perfkit report --why` adds up, to the nanosecond, for every iteration
 * of captures, slow or not: what its parts take to the iteration's duration, what they usually take
 * to the median, and their differences to the difference.
 *     bench_why_adds_up CAPTURE... */
#include <stdio.h>
#include <stdlib.h>

#include "libprof/analysis/iterations/iterations.h"

struct sums {
    long long captures, iterations, slow, caused, wrong;
};

static bool adds_up(const struct prof_iteration_why *why, const struct prof_iteration_row *row)
{
    int64_t here = 0, usual = 0, more = 0;
    for (size_t p = 0; p < why->part_count; p++) {
        here += why->parts[p].ns;
        usual += why->parts[p].usual_ns;
        more += why->parts[p].more_ns;
    }
    return here == row->duration_ns && why->duration_ns == row->duration_ns &&
           usual == why->usual_ns && more == row->duration_ns - why->usual_ns;
}

static bool check_capture(const char *path, struct sums *sums)
{
    struct prof_capture *capture;
    struct prof_facts facts;
    struct prof_error err = {0};
    struct prof_iteration_list list = {0};
    if (prof_open(path, &capture, &err)) {
        fprintf(stderr, "%s: %s\n", path, err.message);
        return false;
    }
    enum prof_status status = prof_facts_load_phases(&facts, capture, NULL, &err);
    if (!status)
        status = prof_iterations_of_facts(&facts, NULL, &list, &err);
    sums->captures++;
    for (size_t i = 0; !status && i < list.count; i++) {
        struct prof_iteration_choice explain = {.number = (int64_t)i + 1};
        struct prof_iteration_list one = list;
        status = prof_iterations_explain(&facts, &explain, &one, &err);
        if (!status) {
            const struct prof_iteration_why *why = one.whys;
            sums->iterations++;
            sums->slow += list.rows[i].slow;
            sums->caused += list.rows[i].slow && why->has_cause;
            if (!adds_up(why, &list.rows[i])) {
                sums->wrong++;
                printf("%s: iteration %zu does not add up\n", path, i + 1);
            }
            if (list.rows[i].slow)
                printf("%s: iteration %zu of %zu: %s\n", path, i + 1, list.count, why->seen);
        }
        list.whys = NULL;
        for (size_t k = 0; k < one.why_count; k++) {
            free(one.whys[k].parts);
            free(one.whys[k].texts);
        }
        free(one.whys);
    }
    if (status)
        fprintf(stderr, "%s: %s\n", path, err.message);
    prof_iteration_list_free(&list);
    prof_facts_free(&facts);
    prof_close(capture);
    return !status;
}

int main(int argc, char **argv)
{
    struct sums sums = {0};
    bool ok = argc > 1;
    for (int i = 1; i < argc; i++)
        ok &= check_capture(argv[i], &sums);
    printf("%lld captures, %lld iterations: %lld do not add up; %lld slow, a cause named in %lld\n",
           sums.captures, sums.iterations, sums.wrong, sums.slow, sums.caused);
    return !ok || sums.wrong;
}
