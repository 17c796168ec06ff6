/* prof_verify.h: whether a change did what the findings of the run before it promised. Part of
 * prof.h's interface; its conventions hold. */
#ifndef PERFKIT_PROF_VERIFY_H
#define PERFKIT_PROF_VERIFY_H

#include "libprof/include/prof_iterations.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Verdict, name in JSON, words for people. */
#define PROF_VERIFY_VERDICTS(X)                                                                    \
    X(GONE, "gone", "gone")              /* at most a tenth is left */                             \
    X(PARTLY, "partly", "partly gone")   /* at most seven tenths are */                            \
    X(MOVED, "moved", "moved elsewhere") /* gone or partly, and as much more is elsewhere */       \
    X(STILL, "still", "still there")                                                               \
    X(NOISE, "within_noise", "within the noise") /* gone, and less than iterations differ by */    \
    X(UNKNOWN, "not_checked", "not checked")     /* the run after lacks what the rule needs */     \
    X(NEW, "new", "new")

enum prof_verify_verdict {
#define PROF_VERIFY_VERDICT(verdict, name, text) PROF_VERIFY_##verdict,
    PROF_VERIFY_VERDICTS(PROF_VERIFY_VERDICT)
#undef PROF_VERIFY_VERDICT
        PROF_VERIFY_COUNT
};

const char *prof_verify_name(enum prof_verify_verdict verdict); /* never NULL */
const char *prof_verify_text(enum prof_verify_verdict verdict);

/* One rule. Its bound: what it costs at most, ns of an iteration, summed over phases; of a phase
 * that does not repeat, of the phase. NaN = the finding is about something other than time. */
struct prof_verify_row {
    const struct prof_rule_page *rule;
    enum prof_verify_verdict verdict;
    double before_ns, after_ns;            /* 0 = no finding there */
    double low_ns, high_ns;                /* before_ns - after_ns -+ the spread of both sides */
    const struct prof_rule_page *moved_to; /* MOVED: the rule that costs more; else NULL */
};

/* The iterations of one run that are compared. */
struct prof_verify_side {
    char phase[160]; /* "" = a period of the launches */
    int64_t count;
    double median_ns, low_ns, high_ns; /* with the 95 % interval by ranks; NaN without iterations */
    double spread_ns;                  /* half the distance of the quartiles */
    enum prof_trust_status trust;      /* of the capture */
    bool recording;                    /* it is not at its end yet */
};

struct prof_verify {
    struct prof_verify_row *rows; /* those of the run before by their bound, then the new ones */
    size_t count;
    struct prof_verify_side sides[2]; /* before, after */
    size_t phases;                    /* that the rows are about: of the run that has more */
    double predicted_ns; /* by which the bounds of what is gone and partly gone are less in the
                            phase whose iterations are compared; NaN = nothing was predicted */
    double saved_ns, saved_low_ns, saved_high_ns; /* of the median iteration, with its 95 % interval
                                                     (both sides' combined); NaN */
    const char *why_none; /* why findings are not compared; static; NULL = they are */
};

/* Compare findings above info (rule: that one, of any severity; NULL = all) of two captures, each
 * with its filter. PROF_NOTFOUND: the run before has no finding of the rule. */
enum prof_status prof_verify(struct prof_capture *before, struct prof_capture *after,
                             const struct prof_filter *filter, const char *rule,
                             struct prof_verify *result, struct prof_error *err);
void prof_verify_free(struct prof_verify *result);

#ifdef __cplusplus
}
#endif

#endif
