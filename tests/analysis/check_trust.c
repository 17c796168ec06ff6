/* The trust block: balances that close and that do not, losses, warnings and notes. */
#include <string.h>

#include "libprof/store/health.h"
#include "tests/analysis/fixture.h"

static const struct prof_statement *statement(const struct prof_trust *t, const char *words)
{
    for (size_t i = 0; i < t->statement_count; i++) {
        if (strstr(t->statements[i].text, words))
            return &t->statements[i];
    }
    ck_abort_msg("no statement with \"%s\"", words);
    return NULL;
}

START_TEST(a_balanced_capture_is_complete)
{
    struct prof_capture *c = fixture_with_base(
        "INSERT INTO capture_health(process, subject, item, value) VALUES"
        "(1, 'launch', 'called', 100), (1, 'launch', 'recorded', 90), (1, 'launch', 'failed', 4),"
        "(1, 'launch', 'captured', 3), (1, 'launch', 'dropped', 0), (1, 'launch', 'outstanding', "
        "3),"
        "(1, 'launch', 'remainder', 0), (1, 'range', 'called', 7), (1, 'range', 'recorded', 7);"
        "INSERT INTO capture_health(process, subject, item, value, note) VALUES"
        "(1, 'collector', 'cuda running', NULL, 'CUPTI 12.4'),"
        "(1, 'end', 'exit', 0, 'return from main or exit()')");
    struct prof_trust t;
    ck_ok(prof_trust(c, &t, &err));
    ck_assert(t.complete);
    ck_assert_uint_eq(t.balance_count, 2);
    ck_assert_str_eq(t.balances[0].subject, "launch");
    ck_assert_int_eq(t.balances[0].remainder, 0);
    ck_assert_int_eq(t.balances[0].outstanding, 3);
    ck_assert_int_eq(t.balances[1].failed, 0);
    ck_assert_int_eq(t.clock_error_ns, PROF_UNKNOWN);
    ck_assert_int_eq(statement(&t, "had not finished")->level, PROF_TRUST_WARNING);
    ck_assert_int_eq(statement(&t, "CUPTI 12.4")->level, PROF_TRUST_NOTE);
    ck_assert_str_eq(statement(&t, "ended by")->text,
                     "process 100: ended by exit: return from main or exit()");
    prof_trust_free(&t);
    prof_close(c);
}
END_TEST

START_TEST(a_remainder_or_a_drop_is_a_loss)
{
    struct prof_capture *c = fixture_with_base(
        "INSERT INTO process(pid) VALUES(200);"
        "INSERT INTO capture_health(process, subject, item, value) VALUES"
        "(1, 'launch', 'called', 100), (1, 'launch', 'recorded', 99),"
        "(2, 'launch', 'called', 10), (2, 'launch', 'recorded', 8), (2, 'launch', 'dropped', 2),"
        "(2, 'transfer', 'called', 1), (2, 'transfer', 'recorded', 3)");
    struct prof_trust t;
    ck_ok(prof_trust(c, &t, &err));
    ck_assert(!t.complete);
    ck_assert_int_eq(t.balances[0].remainder, 1);
    ck_assert_int_eq(t.balances[1].remainder, 0);
    ck_assert_int_eq(t.balances[2].remainder, -2);
    ck_assert_uint_eq(t.total_count, 2);
    ck_assert_int_eq(t.totals[0].called, 110);
    ck_assert_int_eq(t.totals[0].remainder, 1);
    ck_assert_int_eq(t.totals[0].dropped, 2);
    ck_assert_str_eq(statement(&t, "missing")->text,
                     "process 100: launch: 100 called, 99 accounted for: 1 missing");
    ck_assert_int_eq(statement(&t, "2 dropped")->level, PROF_TRUST_LOSS);
    ck_assert_int_eq(statement(&t, "2 too many")->process, 2);
    prof_trust_free(&t);
    prof_close(c);
}
END_TEST

START_TEST(what_was_recorded_without_being_counted_is_unknown)
{
    struct prof_capture *c =
        fixture_with_base("INSERT INTO capture_health(process, subject, item, value) VALUES"
                          "(1, 'launch', 'recorded', 99)");
    struct prof_trust t;
    ck_ok(prof_trust(c, &t, &err));
    ck_assert_int_eq(t.balances[0].called, PROF_UNKNOWN);
    ck_assert_int_eq(t.balances[0].remainder, PROF_UNKNOWN);
    ck_assert(t.complete);
    prof_trust_free(&t);
    prof_close(c);
}
END_TEST

START_TEST(statements_are_graded)
{
    struct prof_capture *c = fixture_with_base(
        "INSERT INTO capture_health(process, subject, item, value, note) VALUES"
        "(1, 'collector', 'opencl note', NULL, 'fine'),"
        "(NULL, 'collector', 'nested', NULL, 'a perfkit run inside the program recorded a part'),"
        "(1, 'record', 'times_repaired', 3, 'device times put back into order'),"
        "(1, 'record', 'dropped', 1234, 'a kernel execution'),"
        "(NULL, 'collector', 'cuda refused', NULL, 'another profiler is attached'),"
        "(NULL, 'ring', 'left', 0, 'only the last part was kept'),"
        "(1, 'end', 'signal', 9, 'killed by a signal');"
        "INSERT INTO clock_sync(clock, error_ns) VALUES('x', 40), ('x', 90)");
    struct prof_trust t;
    ck_ok(prof_trust(c, &t, &err));
    ck_assert(!t.complete);
    ck_assert_int_eq(t.clock_error_ns, 90);
    ck_assert_uint_eq(t.statement_count, 7);
    ck_assert_str_eq(statement(&t, "last part")->text,
                     "only the last part was kept; 0 rows deleted");
    ck_assert_int_eq(statement(&t, "nested")->level, PROF_TRUST_WARNING);
    for (size_t i = 1; i < t.statement_count; i++)
        ck_assert_int_le(t.statements[i].level, t.statements[i - 1].level);
    ck_assert_str_eq(statement(&t, "cuda")->text, "cuda refused: another profiler is attached");
    ck_assert_str_eq(statement(&t, "1,234")->text,
                     "process 100: 1,234 records dropped (no room): a kernel execution");
    ck_assert_int_eq(statement(&t, "put back")->level, PROF_TRUST_WARNING);
    ck_assert_str_eq(statement(&t, "SIGKILL (9)")->text,
                     "process 100: ended by SIGKILL (9): killed by a signal");
    prof_trust_free(&t);
    prof_close(c);
}
END_TEST

START_TEST(a_death_without_a_last_flush_is_a_risk)
{
    struct prof_capture *c = fixture_with_base(
        "DELETE FROM capture_health;"
        "INSERT INTO capture_health(process, subject, item, value, note) VALUES"
        "(1, 'end', 'signal', 11, 'killed by a signal'),"
        "(1, 'risk', 'device_records', 3, 'device records of its last 7 ms may be missing')");
    struct prof_trust t;
    ck_ok(prof_trust(c, &t, &err));
    ck_assert(!t.complete);
    ck_assert_int_eq(t.status, PROF_TRUST_AT_RISK);
    ck_assert_str_eq(prof_trust_status_name(t.status), "at risk");
    ck_assert_int_eq(t.lacking, 3);
    ck_assert_int_eq(t.statements[0].level, PROF_TRUST_RISK);
    ck_assert_str_eq(t.statements[0].text,
                     "process 100: device records of its last 7 ms may be missing");
    ck_assert_str_eq(t.statements[1].text,
                     "process 100: ended by SIGSEGV (11): killed by a signal");
    prof_trust_free(&t);
    prof_close(c);
    c = fixture_with_base("DELETE FROM capture_health;"
                          "INSERT INTO capture_health(process, subject, item, value, note) VALUES"
                          "(1, 'end', 'signal', 11, 'killed by a signal'),"
                          "(1, 'launch', 'called', 3, NULL), (1, 'launch', 'recorded', 3, NULL)");
    ck_ok(prof_trust(c, &t, &err));
    ck_assert(t.complete);
    ck_assert_int_eq(t.status, PROF_TRUST_COMPLETE_WITH_NOTES);
    ck_assert_str_eq(prof_trust_status_words(t.status), "complete with notes");
    prof_trust_free(&t);
    prof_close(c);
}
END_TEST

/* --stalls of a program that uses OpenCL only, or of kernels that are too short. */
START_TEST(stalls_that_sampled_nothing_say_why)
{
    static const struct {
        const char *more, *words;
    } cases[] = {
        {"", "no instructions were sampled (--stalls): only kernels of CUDA are sampled, and no "
             "process started CUDA"},
        {", (1, 'collector', 'cuda running', 12080)",
         "no sample fell on a recorded kernel of CUDA"},
        {", (1, 'collector', 'counters degraded', NULL)", NULL}, /* that is the reason */
        {"; INSERT INTO stall_context(process, samples) VALUES(1, 5)", NULL},
        {"; UPDATE capture SET state='recording'", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char sql[400];
        struct prof_trust t;
        snprintf(sql, sizeof sql,
                 "DELETE FROM capture_health; INSERT INTO capture_health(process, subject, item, "
                 "value) VALUES(NULL, 'collector', 'stalls', NULL)%s",
                 cases[i].more);
        struct prof_capture *c = fixture_with_base(sql);
        ck_ok(prof_trust(c, &t, &err));
        bool said = false;
        for (size_t k = 0; k < t.statement_count; k++)
            said |= !strcmp(t.statements[k].code, "stalls_none");
        ck_assert_int_eq(said, cases[i].words != NULL);
        if (said)
            ck_assert_int_eq(statement(&t, cases[i].words)->level, PROF_TRUST_WARNING);
        prof_trust_free(&t);
        prof_close(c);
    }
}
END_TEST

/* How the process ended makes no difference: a launch has a device record, and one that is counted
 * without it is missing. A call that did not return is no loss, but is counted. */
START_TEST(calls_without_records_are_counted)
{
    static const struct {
        const char *rows, *words;
        enum prof_trust_status status;
        int64_t lacking;
    } cases[] = {
        {"(1, 'launch', 'called', 9), (1, 'launch', 'recorded', 7), (1, 'launch', 'outstanding', "
         "2), (1, 'launch', 'unreturned', 2)",
         "launch: 2 calls had not returned when the process ended and have no record",
         PROF_TRUST_COMPLETE_WITH_NOTES, 2},
        {"(1, 'launch', 'called', 9), (1, 'launch', 'recorded', 8), (1, 'launch', 'outstanding', "
         "1), (1, 'launch', 'unanswered', 1)",
         "launch: 1 call has no device record", PROF_TRUST_INCOMPLETE, 1},
        {"(1, 'transfer', 'called', 9), (1, 'transfer', 'recorded', 7), (1, 'transfer', "
         "'outstanding', 2), (1, 'transfer', 'unanswered', 2)",
         "memcpy: 2 calls have no device record (one of 0 bytes makes none)",
         PROF_TRUST_COMPLETE_WITH_NOTES, 0},
        {"(1, 'range', 'called', 9), (1, 'range', 'recorded', 8), (1, 'range', 'outstanding', 1), "
         "(1, 'range', 'unreturned', 1)",
         "range: 1 call had not returned when the process ended and has no record",
         PROF_TRUST_COMPLETE_WITH_NOTES, 0},
        {"(1, 'launch', 'called', 9), (1, 'launch', 'recorded', 8), (1, 'launch', 'outstanding', "
         "1), (1, 'launch', 'unanswered', 1), (1, 'risk', 'device_records', 1)",
         "launch: 1 call has no device record", PROF_TRUST_AT_RISK, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char sql[600];
        snprintf(sql, sizeof sql,
                 "DELETE FROM capture_health; INSERT INTO capture_health(process, subject, item, "
                 "value) VALUES %s",
                 cases[i].rows);
        struct prof_capture *c = fixture_with_base(sql);
        struct prof_trust t;
        ck_ok(prof_trust(c, &t, &err));
        ck_assert_int_eq(t.balances[0].remainder, 0);
        ck_assert_int_eq(t.status, cases[i].status);
        ck_assert_int_eq(t.lacking, cases[i].lacking);
        ck_assert_ptr_nonnull(statement(&t, cases[i].words));
        prof_trust_free(&t);
        prof_close(c);
    }
}
END_TEST

/* "complete" is said of what was counted only. */
START_TEST(what_was_not_counted_is_not_complete)
{
    static const char *const cases[] = {
        "",
        "INSERT INTO capture_health(process, subject, item, value) VALUES(1, 'launch', "
        "'recorded', 99)",
        /* a merged capture: one part was counted, another comes from another tool's file */
        "INSERT INTO capture_health(process, subject, item, value) VALUES(1, 'launch', 'called', "
        "9), (1, 'launch', 'recorded', 9), (NULL, 'import', 'source', NULL)"};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char sql[400];
        snprintf(sql, sizeof sql, "DELETE FROM capture_health; %s", cases[i]);
        struct prof_capture *c = fixture_with_base(sql);
        struct prof_trust t;
        ck_ok(prof_trust(c, &t, &err));
        ck_assert_int_eq(t.status, PROF_TRUST_NO_LOSS_KNOWN);
        ck_assert(t.complete);
        ck_assert_str_eq(prof_trust_status_words(t.status), "no loss known");
        prof_trust_free(&t);
        prof_close(c);
    }
}
END_TEST

START_TEST(an_unfinished_capture_is_incomplete)
{
    struct prof_capture *c = fixture_with_base("UPDATE capture SET state = 'recording'");
    struct prof_trust t;
    ck_ok(prof_trust(c, &t, &err));
    ck_assert(!t.complete);
    ck_assert_ptr_nonnull(statement(&t, "still being recorded, or"));
    prof_trust_free(&t);
    prof_close(c);
    c = fixture_with_base("UPDATE capture SET state = 'recovered'");
    ck_ok(prof_trust(c, &t, &err));
    ck_assert(t.complete);
    prof_trust_free(&t);
    prof_close(c);
}
END_TEST

/* Level and code are what counts, and are shown; words are made of the rest. A row without them, of
 * an earlier version, is given the same. */
START_TEST(every_code_is_shown)
{
    for (int i = 0; i < PROF_HEALTH_CODES; i++) {
        const struct prof_health *h = &prof_health[i];
        if (!h->subject) /* made of balances, or a count */
            continue;
        for (int earlier = 0; earlier < 2; earlier++) {
            if (earlier && (!h->item || i == PROF_HEALTH_record_marks_dropped))
                continue;
            char sql[512], code[64], level[16];
            snprintf(code, sizeof code, earlier ? "NULL" : "'%s'", h->code);
            snprintf(level, sizeof level, earlier ? "NULL" : "'%s'",
                     prof_health_level_text(h->level));
            snprintf(sql, sizeof sql,
                     "INSERT INTO capture_health(process, subject, item, value, note, level, code) "
                     "VALUES(1, '%s', '%s', 7, 'these words', %s, %s)",
                     h->subject, h->item ? h->item : "cuda refused", level, code);
            struct prof_capture *c = fixture_with_base(sql);
            struct prof_trust t;
            ck_ok(prof_trust(c, &t, &err));
            ck_assert_uint_eq(t.statement_count, 1);
            ck_assert_str_eq(t.statements[0].code, h->code);
            ck_assert_msg((int)t.statements[0].level == (int)h->level, "%s", h->code);
            ck_assert_msg(strstr(t.statements[0].text, "these words") != NULL, "%s: %s", h->code,
                          t.statements[0].text);
            ck_assert_int_eq(t.marks_lost, i == PROF_HEALTH_record_marks_dropped);
            ck_assert_msg(*h->meaning, "%s", h->code);
            prof_trust_free(&t);
            prof_close(c);
        }
    }
}
END_TEST

/* What an earlier version wrote, by its words. */
START_TEST(earlier_rows_get_codes)
{
    static const struct {
        const char *subject, *item, *note;
        enum prof_health_code code;
    } rows[] = {
        {"collector", "cuda refused", "", PROF_HEALTH_collector_refused},
        {"collector", "counters degraded", "", PROF_HEALTH_collector_degraded},
        {"collector", "cuda contended", "", PROF_HEALTH_collector_contended},
        {"collector", "cuda note", "(--cupti=yield)", PROF_HEALTH_collector_yielded},
        {"collector", "scope", "", PROF_HEALTH_collector_note},
        {"record", "dropped", "recording began or stopped in this process",
         PROF_HEALTH_record_marks_dropped},
        {"launch", "dropped", "", PROF_HEALTH_count},
        {"graph", "whole", "", PROF_HEALTH_count},
        {"end", "quick_exit", "", PROF_HEALTH_end_normal},
        {"import", "left out", "", PROF_HEALTH_import_note},
        {"unheard", "of", "", PROF_HEALTH_other},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        ck_assert_int_eq(prof_health_guess(rows[i].subject, rows[i].item, rows[i].note),
                         rows[i].code);
}
END_TEST

CHECK_MAIN("trust", a_balanced_capture_is_complete, a_remainder_or_a_drop_is_a_loss,
           what_was_recorded_without_being_counted_is_unknown, statements_are_graded,
           calls_without_records_are_counted, what_was_not_counted_is_not_complete,
           an_unfinished_capture_is_incomplete, a_death_without_a_last_flush_is_a_risk,
           every_code_is_shown, earlier_rows_get_codes, stalls_that_sampled_nothing_say_why)
