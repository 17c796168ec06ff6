/* What holds for the findings of every capture: figures in a sentence are the finding's numbers, a
 * bound is what its formula says, and bounds sum to no more than the time. See programs.h. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libprof/base/saturate.h"
#include "tests/check_main.h"
#include "tests/diagnosis/programs.h"

const struct prof_finding *finding_of(const struct prof_findings *findings, const char *rule)
{
    for (size_t i = 0; i < findings->count; i++) {
        if (!strcmp(findings->rows[i].rule->id, rule))
            return &findings->rows[i];
    }
    return NULL;
}

void findings_list(const struct prof_findings *findings)
{
    for (size_t i = 0; i < findings->count; i++)
        fprintf(stderr, "    %s %.1f %%: %s\n", findings->rows[i].rule->id,
                100 * findings->rows[i].bound_share, findings->rows[i].seen);
}

/* Is what `seen` has at `at` the text of one of the finding's numbers? */
static bool is_a_number(const struct prof_finding *finding, const char *at)
{
    at -= at > finding->seen && strchr("<>-", at[-1]) != NULL;
    for (size_t i = 0; i < finding->number_count; i++) {
        const char *text = prof_number_text(&finding->numbers[i]).text;
        size_t length = strlen(text);
        if (!strncmp(text, at, length) && !isdigit((unsigned char)at[length]))
            return true;
    }
    return false;
}

/* How much of the sentence from `at` on is the name of a kernel. */
static size_t name_length(const struct prof_finding *finding, const char *at)
{
    size_t length = 0;
    for (size_t i = 0; i < finding->place_count; i++) {
        const char *name = finding->places[i].name;
        if (name && !strncmp(name, at, strlen(name)))
            length = strlen(name);
    }
    return length;
}

/* Every figure of the sentence; digits within words are names ("FP32", "a.c:5"). */
static void sentence_check(const struct prof_finding *finding)
{
    const char *seen = finding->seen;
    ck_assert_msg(seen[0] && !strchr(seen, '{'), "%s: %s", finding->rule->id, seen);
    for (const char *at = seen; *at; at++) {
        at += name_length(finding, at);
        if (!isdigit((unsigned char)*at))
            continue;
        if (at == seen || !(isalnum((unsigned char)at[-1]) || strchr("_:/", at[-1])))
            ck_assert_msg(is_a_number(finding, at), "%s: %.12s... is none of the numbers: %s",
                          finding->rule->id, at, seen);
        while (isdigit((unsigned char)at[1]) ||
               (strchr(".,", at[1]) && isdigit((unsigned char)at[2])))
            at++;
    }
}

const struct prof_number *number_named(const struct prof_finding *finding, const char *name)
{
    for (size_t i = 0; i < finding->number_count; i++) {
        if (!strcmp(finding->numbers[i].name, name))
            return &finding->numbers[i];
    }
    return NULL;
}

double number_of(const struct prof_finding *finding, const char *name)
{
    const struct prof_number *number = number_named(finding, name);
    return number ? number->value : -1;
}

/* The bound, by its formula from the numbers; without what other findings have it is that of the
 * finding on its own. */
static void bound_check(const struct prof_finding *finding)
{
    char formula[600], *rest = formula, *word;
    double bound = 0, alone = 0, sign = 1;
    prof_finding_formula(finding, formula, sizeof formula);
    while ((word = strsep(&rest, " "))) {
        if (!strcmp(word, "+") || !strcmp(word, "-")) {
            sign = word[0] == '+' ? 1 : -1;
            continue;
        }
        const struct prof_number *number = number_named(finding, word);
        ck_assert_msg(number, "%s: the formula names %s", finding->rule->id, word);
        ck_assert_int_eq(number->unit, PROF_NUMBER_NS);
        bound += sign * number->value;
        alone += strcmp(word, PROF_NUMBER_ELSEWHERE) ? sign * number->value : 0;
    }
    ck_assert_msg((int64_t)bound == finding->bound_ns, "%s: %.0f of %lld ns", finding->rule->id,
                  bound, (long long)finding->bound_ns);
    ck_assert_int_eq((int64_t)alone, finding->alone_ns);
}

/* What is predicted to be saved is no more than what the finding says. */
static void prediction_check(const struct prof_findings *findings,
                             const struct prof_prediction *prediction)
{
    double times = fmax(1, (double)findings->phases[prediction->phase].iterations);
    bool within = false;
    for (size_t i = 0; i < findings->count; i++) {
        const struct prof_finding *finding = &findings->rows[i];
        int64_t most = prof_max(finding->bound_ns, finding->alone_ns);
        within |= finding->rule == prediction->rule && finding->phase == prediction->phase &&
                  prediction->saved_ns * times <= (double)most + 1;
    }
    ck_assert_msg(within, "%s: %.0f ns an iteration", prediction->rule->id, prediction->saved_ns);
}

void findings_check(const struct prof_findings *findings)
{
    int64_t sum = 0;
    for (size_t i = 0; i < findings->prediction_count; i++) {
        prediction_check(findings, &findings->predictions[i]);
        ck_assert(!i || findings->predictions[i].saved_ns <= findings->predictions[i - 1].saved_ns);
    }
    for (size_t i = 0; i < findings->count; i++) {
        const struct prof_finding *finding = &findings->rows[i];
        sentence_check(finding);
        ck_assert_uint_le(finding->place_count, PROF_FINDING_PLACES);
        ck_assert_uint_lt(finding->number_count, PROF_FINDING_NUMBERS); /* none was left out */
        if (finding->bound_ns == PROF_UNKNOWN)
            continue;
        ck_assert_int_ge(finding->bound_ns, 0);
        bound_check(finding);
        sum += finding->bound_ns;
    }
    ck_assert_int_le(sum, findings->window_ns);
}
