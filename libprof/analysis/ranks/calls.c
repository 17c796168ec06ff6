/* NVTX ranges of collective operations: NCCL's, MPI wrappers', and the program's own, with what
 * their payloads say. Most captures have none: then only the texts are looked at. */
#include "libprof/analysis/ranks/ranks.h"

/* What NCCL calls the fields of its payloads (src/include/nvtx_payload_schemas.h, 2.18 to 2.30). */
enum field {
    FIELD_NONE,
    FIELD_COMMUNICATOR,
    FIELD_BYTES,
    FIELD_REDUCTION,
    FIELD_PEER,
    FIELD_RANKS,
    FIELD_RANK,
    FIELD_DEVICE,
    FIELD_COLLECTIVE,
    FIELD_GROUP
};
static const struct {
    const char *name;
    enum field field;
} fields[] = {
    {"NCCL communicator ID", FIELD_COMMUNICATOR},
    {"Message size [bytes]", FIELD_BYTES},
    {"Bytes", FIELD_BYTES},
    {"Reduction operation", FIELD_REDUCTION},
    {"Peer rank", FIELD_PEER},
    {"No. of ranks", FIELD_RANKS},
    {"Rank", FIELD_RANK},
    {"CUDA device", FIELD_DEVICE},
    /* What PyTorch calls them in its traces. */
    {"Collective name", FIELD_COLLECTIVE},
    {"Process Group Name", FIELD_GROUP},
    {"Process Group Ranks", FIELD_GROUP},
};

#define INTERESTING                                                                                \
    "domain IN (SELECT id FROM string WHERE value IN ('NCCL', 'perfkit.collective')) OR name IN "  \
    "(SELECT id FROM string WHERE value GLOB 'MPI_*' OR value = 'record_param_comms')"

static bool parse_rank_call(const char *domain, const char *name, struct rank_call *call)
{
    static const struct {
        const char *name;
        enum rank_call_kind kind;
    } others[] = {
        {"ncclGroupStart", RANK_CALL_GROUP_START},    {"ncclGroupEnd", RANK_CALL_GROUP_END},
        {"ncclCommInitRank", RANK_CALL_INIT},         {"ncclCommInitRankConfig", RANK_CALL_INIT},
        {"ncclCommInitRankScalable", RANK_CALL_INIT}, {"ncclCommSplit", RANK_CALL_INIT},
        {"ncclCommShrink", RANK_CALL_INIT},           {"ncclCommGrow", RANK_CALL_INIT},
    };
    bool nccl = domain && strcmp(domain, "NCCL") == 0;
    /* Its fields say which operation it is, if any. */
    bool pytorch = !domain && name && strcmp(name, "record_param_comms") == 0;
    call->operation = prof_collective_range(domain, name);
    call->kind = RANK_CALL_OPERATION;
    call->on_host = !nccl && !pytorch;
    if (call->operation != PROF_COLLECTIVE_NONE || pytorch)
        return true;
    for (size_t i = 0; nccl && name && i < sizeof others / sizeof *others; i++) {
        call->kind = others[i].kind;
        if (strcmp(name, others[i].name) == 0)
            return true;
    }
    return false;
}

static bool add_rank_range(void *user, const struct prof_event_row *row)
{
    struct rank_work *w = user;
    const struct prof_thread *thread = prof_thread(w->capture, row->thread);
    int64_t start = row->start_ns, duration = row->duration_ns;
    struct rank_call call = {
        .range = row->id,
        .start = start,
        .end = duration == PROF_UNKNOWN ? INT64_MAX : prof_add(start, duration),
        .thread = thread ? thread->id : 0,
        .process = thread ? thread->process : 0,
        .bytes = PROF_UNKNOWN,
        .peer = PROF_UNKNOWN,
        .ranks = PROF_UNKNOWN,
        .rank = PROF_UNKNOWN,
        .device = PROF_UNKNOWN,
    };
    const char *domain = prof_string(w->capture, row->domain, NULL);
    const char *name = prof_string(w->capture, row->name, NULL);
    if (!thread || start == PROF_UNKNOWN || !parse_rank_call(domain, name, &call) ||
        !prof_scope_place(&w->scope, 0, call.thread, call.process, 0) ||
        (call.kind != RANK_CALL_INIT && !prof_scope_time(&w->scope, start)))
        return true;
    if (call.on_host && !row->payload_is_real)
        call.bytes = prof_size(row->payload);
    return prof_array_push(&w->calls, call);
}

PROF_ORDER(by_range, struct rank_call, PROF_ASCENDING(range))

/* The outer one first. */
PROF_ORDER(by_call_thread_and_start, struct rank_call, PROF_ASCENDING(thread),
           PROF_ASCENDING(start), PROF_DESCENDING(end))

static enum field field_of(struct rank_work *w, int64_t name)
{
    const char *text = prof_string(w->capture, name, NULL);
    for (size_t i = 0; text && i < sizeof fields / sizeof *fields; i++)
        if (strcmp(text, fields[i].name) == 0)
            return fields[i].field;
    return FIELD_NONE;
}

#define MOST_REDUCTIONS 64 /* a program's own have numbers, not names */

/* One copy of each text, however many rows have it. */
static const char *intern_column_text(struct rank_work *w, sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);
    for (size_t i = 0; text && i < w->texts.count; i++)
        if (strcmp(w->texts.data[i], text) == 0)
            return w->texts.data[i];
    if (!text || w->texts.count >= MOST_REDUCTIONS)
        return NULL;
    const char *copy = prof_array_reserve(&w->texts, 1)
                           ? prof_arena_copy(&w->capture->string_texts, text, strlen(text))
                           : NULL;
    if (!copy)
        prof_note(PROF_NOMEM);
    if (copy)
        w->texts.data[w->texts.count++] = copy;
    return copy;
}

/* Fowler, Noll and Vo's, 64 bits. */
static uint64_t hash_process_group(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash;
}

static bool add_call_field(void *user, sqlite3_stmt *row)
{
    struct rank_work *w = user;
    struct rank_call key = {.range = prof_column_id(row, 0)};
    struct rank_call *call =
        w->calls.count ? bsearch(&key, w->calls.data, w->calls.count, sizeof key, by_range) : NULL;
    if (!call)
        return true;
    int64_t value = prof_column_int(row, 2);
    const char *text = (const char *)sqlite3_column_text(row, 2);
    switch (field_of(w, prof_column_id(row, 1))) {
    case FIELD_COMMUNICATOR:
        call->communicator = value == PROF_UNKNOWN ? 0 : (uint64_t)value;
        break;
    case FIELD_BYTES:
        call->bytes = value < 0 ? PROF_UNKNOWN : value;
        break;
    case FIELD_REDUCTION:
        call->reduction = intern_column_text(w, row, 2);
        break;
    case FIELD_PEER:
        call->peer = value;
        break;
    case FIELD_RANKS:
        call->ranks = value > 0 ? value : PROF_UNKNOWN;
        break;
    case FIELD_RANK:
        call->rank = value;
        break;
    case FIELD_DEVICE:
        call->device = value;
        break;
    case FIELD_COLLECTIVE:
        call->operation = prof_collective_pytorch(text ? text : "");
        break;
    case FIELD_GROUP: /* the same on all of its ranks */
        call->communicator ^= hash_process_group(text ? text : "");
        break;
    default:
        break;
    }
    return true;
}

enum prof_status rank_calls_read(struct rank_work *w, struct prof_error *err)
{
    static const struct prof_event_query query = {
        .tables = PROF_OPS(RANGE),
        .fields = PROF_FIELD(ID) | PROF_FIELD(START) | PROF_FIELD(DURATION) | PROF_FIELD(THREAD) |
                  PROF_FIELD(NAME) | PROF_FIELD(DOMAIN) | PROF_FIELD(PAYLOAD),
        .where = INTERESTING,
    };
    enum prof_status status = prof_event_rows(w->capture, &query, add_rank_range, w, err);
    if (status || !w->calls.count)
        return status;
    prof_array_sort(&w->calls, by_range);
    status =
        prof_scan(w->capture, "SELECT range, name, value FROM range_field", add_call_field, w, err);
    size_t kept = 0;
    for (size_t i = 0; i < w->calls.count; i++)
        if (w->calls.data[i].operation || w->calls.data[i].kind != RANK_CALL_OPERATION)
            w->calls.data[kept++] = w->calls.data[i];
    w->calls.count = kept;
    if (kept)
        qsort(w->calls.data, kept, sizeof *w->calls.data, by_call_thread_and_start);
    return status;
}

static bool see_any(void *user, sqlite3_stmt *row)
{
    bool *any = user;
    *any |= sqlite3_column_int(row, 0) != 0;
    return true;
}

enum prof_status rank_calls_exist(struct prof_capture *capture, bool *exist, struct prof_error *err)
{
    return prof_scan(capture,
                     "SELECT count(*) FROM string WHERE value IN ('NCCL', 'perfkit.collective') OR "
                     "value GLOB 'MPI_*'",
                     see_any, exist, err);
}
