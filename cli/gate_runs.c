/* Captures become runs here, and runs become rows of a baseline. What tells one capture from
 * another is where and when it was recorded, not its path: files are copied and renamed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/gate_runs.h"
#include "libprof/base/array.h"
#include "libprof/store/store.h"

/* ---- in ---------------------------------------------------------------------------------------
 */

/* Takes the run, name and identity, also when it fails. */
static enum prof_status add_gate_run(struct gate_runs *runs, struct prof_run run, const char *path,
                                     char *identity, int64_t recorded_s, struct prof_error *err)
{
    size_t need = runs->count + 1;
    char *name = path ? strdup(path) : NULL;
    if (identity && (name || !path) &&
        prof_array_room(&runs->data, &runs->room, need, sizeof *runs->data) &&
        prof_array_room(&runs->names, &runs->name_room, need, sizeof *runs->names) &&
        prof_array_room(&runs->identities, &runs->identity_room, need, sizeof *runs->identities) &&
        prof_array_room(&runs->recorded_s, &runs->time_room, need, sizeof *runs->recorded_s)) {
        runs->data[runs->count] = run;
        runs->names[runs->count] = name;
        runs->identities[runs->count] = identity;
        runs->recorded_s[runs->count++] = recorded_s;
        return PROF_OK;
    }
    prof_run_free(&run);
    free(name);
    free(identity);
    return prof_fail(err, PROF_NOMEM, "out of memory");
}

static char *identity_of(const struct prof_info *info)
{
    char *text;
    return asprintf(&text, "%s %s %lld", info->host ? info->host : "?",
                    info->boot_id ? info->boot_id : "?", (long long)info->start_realtime_ns) < 0
               ? NULL
               : text;
}

static enum prof_status reduce_capture(struct prof_capture *capture, const char *path,
                                       const struct prof_run_options *iterations,
                                       struct prof_run *run, struct prof_error *err)
{
    enum prof_state state = prof_info(capture)->state;
    if (state == PROF_STATE_RECORDING || state == PROF_STATE_CLOSING)
        return prof_fail(err, PROF_BUSY, "%s is still being recorded: wait for its end", path);
    return prof_run_extract(capture, iterations, run, err);
}

enum prof_status gate_runs_add_capture(struct gate_runs *runs, const char *path,
                                       const struct prof_run_options *iterations, int64_t session,
                                       struct prof_error *err)
{
    struct prof_capture *capture;
    struct prof_run run = {0};
    prof_store_settle(path);
    enum prof_status status = prof_open(path, &capture, err);
    if (status)
        return status;
    status = reduce_capture(capture, path, iterations, &run, err);
    if (!status) {
        const struct prof_info *info = prof_info(capture);
        run.session = session;
        status = add_gate_run(runs, run, path, identity_of(info),
                              info->start_realtime_ns / 1000000000, err);
    }
    prof_close(capture);
    return status;
}

enum prof_status gate_runs_add_baseline(struct gate_runs *runs,
                                        const struct prof_baseline *baseline,
                                        struct prof_error *err)
{
    enum prof_status status = PROF_OK;
    for (size_t i = 0; !status && i < baseline->session_count; i++) {
        const struct prof_baseline_session *session = &baseline->sessions[i];
        for (size_t j = 0; !status && j < session->run_count; j++) {
            const struct prof_baseline_run *from = &session->runs[j];
            struct prof_error why = {0};
            struct prof_run run;
            status = prof_run_decode(from->metrics, from->metrics_bytes, &run, &why);
            if (status)
                return prof_fail(err, status, "baseline '%s', session %lld: %s", baseline->name,
                                 (long long)session->id, why.message);
            run.session = session->id;
            status = add_gate_run(runs, run, from->capture, strdup(from->identity),
                                  from->recorded_s, err);
        }
    }
    return status;
}

/* ---- out --------------------------------------------------------------------------------------
 */

/* Of the project in this folder: 40 digits, with "-dirty" where files differ from it. NULL: no git,
 * no project. */
static char *commit_here(void)
{
    char line[128] = "";
    FILE *git = popen("git -c core.fsmonitor=false describe --always --dirty --abbrev=40 "
                      "--exclude='*' 2>/dev/null",
                      "re");
    bool got = git && fgets(line, sizeof line, git);
    if (!git || pclose(git) != 0 || !got)
        return NULL;
    line[strcspn(line, "\n")] = '\0';
    return strdup(line);
}

static bool put_facts(const struct prof_run *from, struct prof_baseline_run *to)
{
    to->facts = calloc(from->environment_count + 1, sizeof *to->facts);
    for (size_t i = 0; to->facts && i < from->environment_count; i++) {
        const struct prof_environment *e = &from->environment[i];
        if (!e->value)
            continue;
        struct prof_baseline_fact *fact = &to->facts[to->fact_count];
        *fact = (struct prof_baseline_fact){strdup(e->name), strdup(e->value)};
        to->fact_count++;
        if (!fact->name || !fact->value)
            return false;
    }
    return to->facts != NULL;
}

static enum prof_status encode_run(const struct gate_runs *runs, size_t i,
                                   struct prof_baseline_run *to, struct prof_error *err)
{
    enum prof_status status =
        prof_run_encode(&runs->data[i], &to->metrics, &to->metrics_bytes, err);
    if (status)
        return status;
    to->capture = runs->names[i] ? strdup(runs->names[i]) : NULL;
    to->identity = strdup(runs->identities[i]);
    to->recorded_s = runs->recorded_s[i];
    return to->identity && put_facts(&runs->data[i], to)
               ? PROF_OK
               : prof_fail(err, PROF_NOMEM, "out of memory");
}

enum prof_status gate_runs_session(const struct gate_runs *runs, const char *label,
                                   struct prof_baseline_session *session, struct prof_error *err)
{
    enum prof_status status = PROF_OK;
    *session = (struct prof_baseline_session){
        .label = label ? strdup(label) : NULL,
        .commit = commit_here(),
        .runs = calloc(runs->count + 1, sizeof *session->runs),
    };
    if (!session->runs || (label && !session->label))
        status = prof_fail(err, PROF_NOMEM, "out of memory");
    for (; !status && session->run_count < runs->count; session->run_count++)
        status = encode_run(runs, session->run_count, &session->runs[session->run_count], err);
    if (status)
        prof_baseline_session_free(session);
    return status;
}

size_t gate_runs_shared(const struct gate_runs *base, const struct gate_runs *cand)
{
    for (size_t i = 0; i < cand->count; i++)
        for (size_t j = 0; j < base->count; j++)
            if (!strcmp(cand->identities[i], base->identities[j]))
                return i;
    return SIZE_MAX;
}

size_t gate_runs_repeated(const struct gate_runs *runs)
{
    for (size_t i = 1; i < runs->count; i++)
        for (size_t j = 0; j < i; j++)
            if (!strcmp(runs->identities[i], runs->identities[j]))
                return i;
    return SIZE_MAX;
}

void gate_runs_free(struct gate_runs *runs)
{
    for (size_t i = 0; i < runs->count; i++) {
        prof_run_free(&runs->data[i]);
        free(runs->names[i]);
        free(runs->identities[i]);
    }
    free(runs->data);
    free(runs->names);
    free(runs->identities);
    free(runs->recorded_s);
    *runs = (struct gate_runs){0};
}
