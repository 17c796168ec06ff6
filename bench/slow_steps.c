/* How often `perfkit report --why` names the cause that was planted in a slow iteration, and how
 * often it names one where nothing was planted:
 *     bench_slow_steps FIRST_SEED LAST_SEED [FORM [FOLDER]]
 * FORM: 0, or 1 for the second forms (tests/diagnosis/slow_steps.h). Of form 0 the seeds 1 to 10
 * were looked at while the rules were made. PERFKIT_VERBOSE=1 says what was named instead.
 * FOLDER: the captures are left there, as KIND-SEED.sqlite, and not scored. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check_main.h"
#include "tests/diagnosis/slow_steps.h"

struct score {
    int runs, named, right;
    long long iterations, slow;
};

static bool verbose;
static int form;

static void score_run(enum slow_kind kind, uint64_t seed, struct score *score)
{
    struct prof_error err = {0};
    struct prof_iteration_list list;
    struct prof_iteration_choice explain = {.slow = 1000};
    struct prof_capture *capture = slow_steps_record(kind, form, seed);
    if (prof_iteration_list(capture, NULL, &explain, &list, &err)) {
        fprintf(stderr, "%s\n", err.message);
        exit(1);
    }
    const struct prof_iteration_row *planted = slow_steps_planted(&list);
    bool right = false;
    for (size_t i = 0; i < list.why_count; i++) {
        const struct prof_iteration_why *why = &list.whys[i];
        bool own = planted && why->number == planted->number;
        right |= own && slow_kind_is_named(kind, form, why);
        score->named += !planted && why->has_cause;
        if (verbose && (own || !planted) && !(own && slow_kind_is_named(kind, form, why)))
            printf("  %s, seed %llu: %s: %s; %s\n", slow_kind_name(kind), (unsigned long long)seed,
                   why->has_cause ? prof_part_kind_name(why->parts[why->cause].kind) : "none",
                   why->seen, why->place.path);
    }
    if (verbose && planted && !planted->slow)
        printf("  %s, seed %llu: not slow\n", slow_kind_name(kind), (unsigned long long)seed);
    score->runs++;
    score->right += right;
    for (size_t s = 0; s < list.series_count; s++) {
        score->iterations += list.series[s].count;
        score->slow += list.series[s].slow;
    }
    prof_iteration_list_free(&list);
    prof_close(capture);
}

static int first_seed, last_seed;
static const char *folder;

static void save_run(enum slow_kind kind, int seed)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s-%d.sqlite", folder, slow_kind_name(kind), seed);
    ck_assert_msg(slow_steps_save(kind, form, (uint64_t)seed, path), "%s", path);
}

/* Scenes check what they do, which Check only allows in a test. */
START_TEST(score_all)
{
    int right = 0, runs = 0;
    for (int kind = 0; kind < SLOW_KINDS; kind++) {
        struct score score = {0};
        for (int seed = first_seed; seed <= last_seed; seed++) {
            if (folder)
                save_run((enum slow_kind)kind, seed);
            else
                score_run((enum slow_kind)kind, (uint64_t)seed, &score);
        }
        if (folder)
            continue;
        if (kind == SLOW_KIND_NOTHING) {
            printf("%-18s a cause is named in %d of %lld iterations\n", slow_kind_name(kind),
                   score.named, score.iterations);
            continue;
        }
        printf("%-18s %2d of %2d right; slow: %lld of %lld iterations\n",
               slow_kind_name((enum slow_kind)kind), score.right, score.runs, score.slow,
               score.iterations);
        right += score.right;
        runs += score.runs;
    }
    if (!folder)
        printf("right: %d of %d\n", right, runs);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: %s FIRST_SEED LAST_SEED [FORM [FOLDER]]\n", argv[0]);
        return 2;
    }
    first_seed = atoi(argv[1]);
    last_seed = atoi(argv[2]);
    form = argc > 3 && atoi(argv[3]) == 1;
    folder = argc > 4 ? argv[4] : NULL;
    verbose = getenv("PERFKIT_VERBOSE") != NULL;
    return check_run_here(score_all);
}
