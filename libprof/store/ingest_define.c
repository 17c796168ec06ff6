/* The definition stream: local ids of one process become rows of the capture. Texts and launch
 * configurations are shared by all processes, everything else belongs to its process. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/cxx_name.h"
#include "libprof/store/ingest_private.h"
#include "libprof/store/ingest_stack.h"

/* Ids are given out one by one, so an id far above the number of definitions is damage. */
#define MAX_LOST_IDS (1u << 20)

bool ingest_set_local(struct ingest_spool *spool, uint32_t local, uint32_t kind, int64_t global,
                      uint32_t extra)
{
    spool->defined++;
    if (local == 0 || local > spool->defined * 2 + MAX_LOST_IDS)
        return true; /* the id stays unknown */
    if (!prof_array_reserve(&spool->locals,
                            local + 1 > spool->locals.count ? local + 1 - spool->locals.count : 0))
        return false;
    while (spool->locals.count <= local)
        spool->locals.data[spool->locals.count++] = (struct ingest_local){0};
    spool->locals.data[local] = (struct ingest_local){kind, extra, global};
    return true;
}

enum prof_status ingest_map_row(struct prof_ingest *ingest, int64_t spool, int64_t local,
                                uint32_t kind, int64_t global, uint32_t extra)
{
    const int64_t values[] = {spool, local, kind, global, extra};
    for (int i = 0; i < 5; i++)
        ingest_bind(ingest->sql[INGEST_SQL_MAP], i + 1, values[i]);
    return ingest_run(ingest, INGEST_SQL_MAP);
}

enum prof_status ingest_define_local(struct prof_ingest *ingest, struct ingest_spool *spool,
                                     uint32_t local, uint32_t kind, int64_t global, uint32_t extra)
{
    PROF_TRY(ingest_memory(ingest, ingest_set_local(spool, local, kind, global, extra),
                           "numbers of definitions"));
    return ingest_map_row(ingest, spool->id, local, kind, global, extra);
}

const struct ingest_local *ingest_lookup(const struct ingest_spool *spool, uint32_t local,
                                         uint32_t kind)
{
    if (local == 0 || local >= spool->locals.count || spool->locals.data[local].kind != kind)
        return NULL;
    return &spool->locals.data[local];
}

int64_t ingest_global(const struct ingest_spool *spool, uint32_t local, uint32_t kind)
{
    const struct ingest_local *found = ingest_lookup(spool, local, kind);
    return found ? found->global : 0;
}

int64_t ingest_string_row(struct prof_ingest *ingest, const char *text, size_t length)
{
    uint32_t *known = prof_names_get(&ingest->strings, text, length);
    if (known)
        return *known;
    sqlite3_stmt *sql = ingest->insert[SCHEMA_string];
    ingest_bind(sql, COLUMN_AT(string, id), ++ingest->last_string);
    ingest_check(ingest, sqlite3_bind_text64(sql, COLUMN_AT(string, value), text, length,
                                             SQLITE_STATIC, SQLITE_UTF8));
    enum prof_status status = ingest_insert(ingest, SCHEMA_string);
    sqlite3_clear_bindings(sql);
    if (!status)
        status = ingest_memory(
            ingest, prof_names_put(&ingest->strings, text, length, (uint32_t)ingest->last_string),
            "texts");
    return status ? 0 : ingest->last_string;
}

static enum prof_status string_definition(struct prof_ingest *ingest, struct ingest_spool *spool,
                                          const struct wire_string *string)
{
    if (spool->partial_id != string->head.aux)
        spool->partial.count = 0; /* the rest of another name was dropped */
    spool->partial_id = string->head.aux;
    PROF_TRY(ingest_memory(ingest, prof_array_append(&spool->partial, string->text, string->length),
                           "a long name"));
    if (string->head.flags & WIRE_STRING_MORE)
        return PROF_OK;
    int64_t row = ingest_string_row(ingest, spool->partial.data ? spool->partial.data : "",
                                    spool->partial.count);
    spool->partial_id = 0;
    spool->partial.count = 0;
    return row ? ingest_define_local(ingest, spool, string->head.aux, WIRE_STRING, row, 0)
               : ingest->error.status;
}

char *ingest_text_of(struct prof_ingest *ingest, const struct ingest_spool *spool, uint32_t local)
{
    int64_t row = ingest_global(spool, local, WIRE_STRING);
    sqlite3_stmt *sql;
    if (!row || ingest_query(ingest, "SELECT value FROM string WHERE id=?1", &sql) != PROF_OK)
        return NULL;
    sqlite3_bind_int64(sql, 1, row);
    bool there = sqlite3_step(sql) == SQLITE_ROW;
    const char *value = there ? (const char *)sqlite3_column_text(sql, 0) : NULL;
    char *text = value ? strdup(value) : NULL;
    ingest_query_end(ingest, sql, ingest_memory(ingest, !there || text, "a text"));
    return text;
}

void ingest_bind_local_text(struct prof_ingest *ingest, const struct ingest_spool *spool,
                            sqlite3_stmt *sql, int at, uint32_t local)
{
    PROF_FREED char *text = ingest_text_of(ingest, spool, local);
    ingest_bind_text(ingest, sql, at, text);
}

static int64_t demangled_row(struct prof_ingest *ingest, const struct ingest_spool *spool,
                             uint32_t local)
{
    PROF_FREED char *mangled = ingest_text_of(ingest, spool, local);
    PROF_FREED char *readable = mangled ? prof_demangle(mangled) : NULL;
    return readable ? ingest_string_row(ingest, readable, strlen(readable)) : 0;
}

/* What makes two configurations the same row: `values` are those of wire_config from its grid on,
 * in the order of launch_config's columns. */
enum { KEY_BLOCK = 3, KEY_REGISTERS = 9, KEY_SHARED = 10, KEY_LOCAL = 12, KEY_VALUES };
struct config_key {
    int64_t name;
    uint64_t flags;
    uint32_t values[KEY_VALUES];
    uint32_t pad;
};
#define KEY_OF(field)                                                                              \
    ((offsetof(struct wire_config, field) - offsetof(struct wire_config, grid)) / 4)
_Static_assert(KEY_OF(block) == KEY_BLOCK && KEY_OF(registers) == KEY_REGISTERS &&
                   KEY_OF(shared_static) == KEY_SHARED && KEY_OF(local_per_thread) == KEY_LOCAL,
               "config_key.values");

enum prof_status ingest_config_restore(struct prof_ingest *ingest, sqlite3_stmt *row)
{
    struct config_key key = {.name = sqlite3_column_int64(row, 1)};
    static const uint8_t present[KEY_VALUES] = {[KEY_REGISTERS] = WIRE_CONFIG_HAS_REGISTERS,
                                                [KEY_SHARED] = WIRE_CONFIG_HAS_SHARED,
                                                [KEY_LOCAL] = WIRE_CONFIG_HAS_LOCAL};
    for (int i = 0; i < KEY_VALUES; i++) {
        bool known = sqlite3_column_type(row, 2 + i) != SQLITE_NULL;
        key.values[i] = (uint32_t)sqlite3_column_int64(row, 2 + i);
        if (known)
            key.flags |= present[i];
        else if (i == KEY_BLOCK)
            key.flags |= WIRE_CONFIG_RUNTIME_CHOSEN;
    }
    if (sqlite3_column_int64(row, 2 + KEY_VALUES))
        key.flags |= WIRE_CONFIG_RAGGED;
    bool put = prof_names_put(&ingest->configs, (const char *)&key, sizeof key,
                              (uint32_t)sqlite3_column_int64(row, 0));
    return ingest_memory(ingest, put, "launch configurations");
}

/* The filter is evaluated once for each configuration of a process. */
static bool is_unwanted(struct prof_ingest *ingest, const struct ingest_spool *spool, uint32_t name)
{
    if (!ingest->has_kernel_filter)
        return false;
    char *text = ingest_text_of(ingest, spool, name), *readable = text ? prof_demangle(text) : NULL;
    bool unwanted = text && ingest_filters(ingest, readable ? readable : text);
    free(readable);
    free(text);
    return unwanted;
}

static enum prof_status config_definition(struct prof_ingest *ingest, struct ingest_spool *spool,
                                          const struct wire_config *config)
{
    struct config_key key = {.name = ingest_global(spool, config->name, WIRE_STRING),
                             .flags = config->head.flags};
    memcpy(key.values, config->grid, sizeof key.values);
    if (is_unwanted(ingest, spool, config->name))
        return ingest_define_local(ingest, spool, config->head.aux, WIRE_CONFIG, 0,
                                   INGEST_CONFIG_FILTERED);
    uint32_t *known = prof_names_get(&ingest->configs, (const char *)&key, sizeof key);
    if (known)
        return ingest_define_local(ingest, spool, config->head.aux, WIRE_CONFIG, *known, 0);

    sqlite3_stmt *sql = ingest->insert[SCHEMA_launch_config];
    uint8_t flags = config->head.flags;
    bool chosen = flags & WIRE_CONFIG_RUNTIME_CHOSEN;
    int64_t demangled = demangled_row(ingest, spool, config->name);
    ingest_bind(sql, COLUMN_AT(launch_config, id), ++ingest->last_config);
    ingest_bind_known(sql, COLUMN_AT(launch_config, name), key.name);
    ingest_bind_known(sql, COLUMN_AT(launch_config, demangled), demangled);
    for (int i = 0; i < 3; i++) {
        ingest_bind(sql, COLUMN_AT(launch_config, grid_x) + i, config->grid[i]);
        ingest_bind_if(sql, COLUMN_AT(launch_config, block_x) + i, !chosen, config->block[i]);
        ingest_bind_known(sql, COLUMN_AT(launch_config, cluster_x) + i, config->cluster[i]);
    }
    const struct {
        int at;
        uint8_t flag;
        uint32_t value;
    } known_values[] = {
        {COLUMN_AT(launch_config, registers), WIRE_CONFIG_HAS_REGISTERS, config->registers},
        {COLUMN_AT(launch_config, shared_static), WIRE_CONFIG_HAS_SHARED, config->shared_static},
        {COLUMN_AT(launch_config, shared_dynamic), WIRE_CONFIG_HAS_SHARED, config->shared_dynamic},
        {COLUMN_AT(launch_config, local_bytes), WIRE_CONFIG_HAS_LOCAL, config->local_per_thread}};
    for (size_t i = 0; i < sizeof known_values / sizeof known_values[0]; i++) {
        if (flags & known_values[i].flag)
            ingest_bind(sql, known_values[i].at, known_values[i].value);
        else
            sqlite3_bind_null(sql, known_values[i].at);
    }
    ingest_bind_known(sql, COLUMN_AT(launch_config, ragged), flags & WIRE_CONFIG_RAGGED ? 1 : 0);
    PROF_TRY(ingest_insert(ingest, SCHEMA_launch_config));
    PROF_TRY(ingest_memory(ingest,
                           prof_names_put(&ingest->configs, (const char *)&key, sizeof key,
                                          (uint32_t)ingest->last_config),
                           "launch configurations"));
    return ingest_define_local(ingest, spool, config->head.aux, WIRE_CONFIG, ingest->last_config,
                               0);
}

/* A thing defined again under its id, now that more is known of it, keeps its row. */
static int64_t definition_row(const struct ingest_spool *spool, uint32_t local, uint32_t kind,
                              int64_t *last)
{
    int64_t row = ingest_global(spool, local, kind);
    return row ? row : ++*last;
}

static enum prof_status device_definition(struct prof_ingest *ingest, struct ingest_spool *spool,
                                          const struct wire_device *device)
{
    uint8_t flags = device->head.flags;
    int64_t id = definition_row(spool, device->head.aux, WIRE_DEVICE, &ingest->last_device);
    struct ingest_row *row;
    PROF_TRY(ingest_record_begin(ingest, spool, 0, &device->head, &row));
    row_set(row, COLUMN_AT(device, id), id);
    row_text(ingest, row, SCHEMA_device, COLUMN_AT(device, kind),
             flags & WIRE_DEVICE_GPU   ? "gpu"
             : flags & WIRE_DEVICE_CPU ? "cpu"
                                       : "other");
    if (device->compute_major) /* x.0 is a value, not an absence */
        row_set(row, COLUMN_AT(device, compute_minor), device->compute_minor);
    bool cuda = wire_space(device->source) == WIRE_SOURCE_CUDA;
    PROF_TRY(ingest_row_end(ingest, SCHEMA_device));
    PROF_TRY(ingest_define_local(ingest, spool, device->head.aux, WIRE_DEVICE, id,
                                 COLUMN_AT(device, label)));
    if (cuda)
        PROF_TRY(ingest_object(ingest, spool, WIRE_NAMED_CUDA_DEVICE, device->ordinal, id));
    return PROF_OK;
}

static enum prof_status context_definition(struct prof_ingest *ingest, struct ingest_spool *spool,
                                           const struct wire_context *context)
{
    int64_t id = definition_row(spool, context->head.aux, WIRE_CONTEXT, &ingest->last_context);
    struct ingest_row *row;
    PROF_TRY(ingest_record_begin(ingest, spool, 0, &context->head, &row));
    row_set(row, COLUMN_AT(context, id), id);
    row_known(row, COLUMN_AT(context, green), context->head.flags & WIRE_CONTEXT_GREEN ? 1 : 0);
    bool cuda = wire_space(context->source) == WIRE_SOURCE_CUDA;
    PROF_TRY(ingest_row_end(ingest, SCHEMA_context));
    PROF_TRY(ingest_define_local(ingest, spool, context->head.aux, WIRE_CONTEXT, id,
                                 (uint32_t)context->native));
    if (cuda)
        PROF_TRY(ingest_object(ingest, spool, WIRE_NAMED_CUDA_CONTEXT, context->native, id));
    return PROF_OK;
}

static enum prof_status stream_definition(struct prof_ingest *ingest, struct ingest_spool *spool,
                                          const struct wire_stream *stream)
{
    int64_t id = definition_row(spool, stream->head.aux, WIRE_STREAM, &ingest->last_stream);
    struct ingest_row *row;
    PROF_TRY(ingest_record_begin(ingest, spool, 0, &stream->head, &row));
    row_set(row, COLUMN_AT(stream, id), id);
    row_set(row, COLUMN_AT(stream, priority), stream->priority);
    row_text(ingest, row, SCHEMA_stream, COLUMN_AT(stream, clock),
             stream->clock ? "device" : "CLOCK_MONOTONIC");
    const struct ingest_local *context = ingest_lookup(spool, stream->context, WIRE_CONTEXT);
    bool is_object = context && wire_space(stream->source) == WIRE_SOURCE_CUDA;
    /* Read now: define_local may move what `context` points to. */
    uint64_t object = is_object ? ingest_stream_object(context->extra, stream->native) : 0;
    PROF_TRY(ingest_row_end(ingest, SCHEMA_stream));
    PROF_TRY(ingest_define_local(ingest, spool, stream->head.aux, WIRE_STREAM, id, stream->clock));
    if (is_object)
        PROF_TRY(ingest_object(ingest, spool, WIRE_NAMED_CUDA_STREAM, object, id));
    return PROF_OK;
}

static enum prof_status write_module_definition(struct prof_ingest *ingest,
                                                struct ingest_spool *spool,
                                                const struct wire_module *module)
{
    if (module->head.flags & WIRE_MODULE_UNLOADED)
        return ingest_unmapped(ingest, spool->process, module->address, module->time);
    PROF_FREED char *path = ingest_text_of(ingest, spool, module->path);
    PROF_FREED char *build_id = ingest_text_of(ingest, spool, module->build_id);
    struct ingest_mapping mapping = {.path = path ? path : "",
                                     .build_id = build_id,
                                     .address = module->address,
                                     .bytes = module->bytes,
                                     .segment = -1,
                                     .time_ns = module->time};
    return ingest_mapped(ingest, spool->process, &mapping);
}

/* A stack's entries to those of the file; -1 = failed. */
static int stack_entries(struct prof_ingest *ingest, struct ingest_spool *spool,
                         const struct wire_stack *stack, struct ingest_entry *entries)
{
    int count = 0;
    for (size_t i = 0; i < stack->count; i++) {
        uint64_t value = stack->entries[i] & WIRE_ENTRY_VALUE;
        uint64_t kind = stack->entries[i] >> WIRE_ENTRY_SHIFT;
        if (kind == WIRE_ENTRY_PYTHON &&
            ingest_python_entry(ingest, spool, value, &entries[count++]) != PROF_OK)
            return -1;
        if (kind != WIRE_ENTRY_RETURN && kind != WIRE_ENTRY_PC)
            continue; /* Python's, or of a later version */
        bool is_return = kind == WIRE_ENTRY_RETURN && value;
        entries[count++] = (struct ingest_entry){.kind = PROF_STORE_FRAME_NATIVE,
                                                 .address = is_return ? value - 1 : value};
    }
    if (stack->head.flags & (WIRE_STACK_CUT | WIRE_STACK_ENDED))
        entries[count++] = (struct ingest_entry){.kind = PROF_STORE_FRAME_MISSING};
    return count;
}

static enum prof_status write_stack_definition(struct prof_ingest *ingest,
                                               struct ingest_spool *spool,
                                               const struct wire_stack *stack)
{
    struct ingest_entry entries[WIRE_STACK_ENTRIES + 1];
    int count = stack_entries(ingest, spool, stack, entries);
    int64_t row = count < 0 ? 0 : ingest_stack(ingest, spool->process, entries, (size_t)count);
    if (row <= 0) /* an empty one stays unknown */
        return ingest->error.status;
    PROF_TRY(ingest_memory(ingest, prof_map_put(&spool->stacks, stack->head.aux, (uint64_t)row),
                           "stacks"));
    return ingest_map_row(ingest, spool->id, stack->head.aux, WIRE_STACK, row, 0);
}

int64_t ingest_stack_of(const struct ingest_spool *spool, uint32_t local)
{
    const uint64_t *row = local ? prof_map_get(&spool->stacks, local) : NULL;
    return row ? (int64_t)*row : 0;
}

struct ingest_clock *ingest_clock_of(struct ingest_spool *spool, uint32_t id, bool make)
{
    for (size_t i = 0; i < spool->clocks.count; i++) {
        if (spool->clocks.data[i].id == id)
            return &spool->clocks.data[i];
    }
    struct ingest_clock *clock = make ? prof_array_add(&spool->clocks) : NULL;
    if (clock)
        *clock = (struct ingest_clock){.id = id};
    return clock;
}

static enum prof_status store_anchor(struct prof_ingest *ingest, struct ingest_spool *spool,
                                     struct ingest_clock *clock, const struct wire_clock *anchor)
{
    sqlite3_stmt *sql = ingest->insert[SCHEMA_clock_sync];
    ingest_bind(sql, COLUMN_AT(clock_sync, process), spool->process);
    ingest_bind_known(sql, COLUMN_AT(clock_sync, device),
                      ingest_global(spool, anchor->device, WIRE_DEVICE));
    ingest_bind_local_text(ingest, spool, sql, COLUMN_AT(clock_sync, clock), anchor->name);
    ingest_bind(sql, COLUMN_AT(clock_sync, source_ns), (int64_t)anchor->source_ns);
    ingest_bind(sql, COLUMN_AT(clock_sync, mono_ns), (int64_t)anchor->mono_ns);
    ingest_bind(sql, COLUMN_AT(clock_sync, error_ns), (int64_t)anchor->error_ns);
    clock->stored_mono_ns = anchor->mono_ns;
    clock->last_stored = true;
    return ingest_insert(ingest, SCHEMA_clock_sync);
}

#define RECENT_ANCHORS 64u
#define ANCHOR_PERIOD_NS 1000000000u

/* Anchors come with every harvest; all serve conversion, one a second is kept in the file. */
static enum prof_status clock_definition(struct prof_ingest *ingest, struct ingest_spool *spool,
                                         const struct wire_clock *anchor)
{
    struct ingest_clock *clock = ingest_clock_of(spool, anchor->head.aux, true);
    if (!clock ||
        !prof_clockmap_add(&clock->map, anchor->source_ns, anchor->mono_ns, anchor->error_ns))
        return ingest_no_memory(ingest, "a device's clock");
    if (clock->recent.count == RECENT_ANCHORS) {
        clock->recent.count = RECENT_ANCHORS / 2;
        memmove(clock->recent.data, clock->recent.data + RECENT_ANCHORS / 2,
                RECENT_ANCHORS / 2 * sizeof *clock->recent.data);
    }
    struct wire_clock *kept = prof_array_add(&clock->recent);
    if (!kept)
        return ingest_no_memory(ingest, "a device's clock");
    *kept = clock->last = *anchor;
    clock->last_stored = false;
    if (clock->stored_mono_ns && anchor->mono_ns - clock->stored_mono_ns < ANCHOR_PERIOD_NS)
        return PROF_OK;
    return store_anchor(ingest, spool, clock, anchor);
}

enum prof_status ingest_clocks_finish(struct prof_ingest *ingest, struct ingest_spool *spool)
{
    for (size_t i = 0; i < spool->clocks.count; i++) {
        struct ingest_clock *clock = &spool->clocks.data[i];
        if (clock->recent.count && !clock->last_stored)
            PROF_TRY(store_anchor(ingest, spool, clock, &clock->last));
    }
    return PROF_OK;
}

static const struct {
    const char *text;
    enum prof_health_code code;
} health_states[] = {
    [WIRE_HEALTH_RUNNING] = {"running", PROF_HEALTH_collector_running},
    [WIRE_HEALTH_REFUSED] = {"refused", PROF_HEALTH_collector_refused},
    [WIRE_HEALTH_DEGRADED] = {"degraded", PROF_HEALTH_collector_degraded},
    [WIRE_HEALTH_NOTE] = {"note", PROF_HEALTH_collector_note},
    [WIRE_HEALTH_ENDED] = {"ended", PROF_HEALTH_collector_ended},
    [WIRE_HEALTH_CONTENDED] = {"contended", PROF_HEALTH_collector_contended},
    [WIRE_HEALTH_YIELDED] = {"yielded", PROF_HEALTH_collector_yielded},
};

static enum prof_status health_definition(struct prof_ingest *ingest, struct ingest_spool *spool,
                                          const struct wire_health *health)
{
    uint32_t state = health->head.flags;
    if (state == 0 || state >= sizeof health_states / sizeof health_states[0])
        return PROF_OK;
    if (state == WIRE_HEALTH_RUNNING && health->head.aux == WIRE_SOURCE_CUDA)
        spool->tally[TALLY_CUDA_STARTED] = 1;
    char item[48];
    snprintf(item, sizeof item, "%s %s", ingest_api_name(health->head.aux),
             health_states[state].text);
    PROF_FREED char *why = ingest_text_of(ingest, spool, health->why);
    int64_t value = health->value;
    return ingest_health_line(ingest, spool->process, health_states[state].code, item,
                              value ? &value : NULL, why);
}

struct thread_key {
    int64_t process;
    uint64_t tid;
};

int64_t ingest_thread_row(struct prof_ingest *ingest, int64_t process, uint32_t tid,
                          const char *name, bool *is_new)
{
    struct thread_key key = {process, tid};
    const uint32_t *known = prof_names_get(&ingest->thread_rows, (const char *)&key, sizeof key);
    *is_new = !known;
    if (known)
        return *known;
    sqlite3_stmt *sql = ingest->insert[SCHEMA_thread];
    ingest_bind(sql, COLUMN_AT(thread, id), ++ingest->last_thread);
    ingest_bind(sql, COLUMN_AT(thread, process), process);
    ingest_bind(sql, COLUMN_AT(thread, tid), tid);
    ingest_bind_text(ingest, sql, COLUMN_AT(thread, name), name);
    bool ok = ingest_insert(ingest, SCHEMA_thread) == PROF_OK &&
              ingest_memory(ingest,
                            prof_names_put(&ingest->thread_rows, (const char *)&key, sizeof key,
                                           (uint32_t)ingest->last_thread),
                            "threads") == PROF_OK;
    return ok ? ingest->last_thread : 0;
}

enum prof_status ingest_thread_rows_load(struct prof_ingest *ingest)
{
    sqlite3_stmt *sql;
    enum prof_status status = ingest_query(ingest, "SELECT id,process,tid FROM thread", &sql);
    while (!status && sqlite3_step(sql) == SQLITE_ROW) {
        struct thread_key key = {sqlite3_column_int64(sql, 1),
                                 (uint64_t)sqlite3_column_int64(sql, 2)};
        bool put = prof_names_put(&ingest->thread_rows, (const char *)&key, sizeof key,
                                  (uint32_t)sqlite3_column_int64(sql, 0));
        status = ingest_memory(ingest, put, "threads");
    }
    return ingest_query_end(ingest, sql, status);
}

struct ingest_thread *ingest_thread_of(struct prof_ingest *ingest, struct ingest_spool *spool,
                                       uint32_t tid)
{
    if (spool->last_thread && spool->last_tid == tid)
        return &spool->thread_list.data[spool->last_thread - 1];
    uint64_t *known = prof_map_get(&spool->threads, tid);
    size_t at;
    if (known)
        at = (size_t)*known;
    else {
        at = spool->thread_list.count;
        struct ingest_thread *thread = prof_array_add(&spool->thread_list);
        if (!thread || !prof_map_put(&spool->threads, tid, at)) {
            ingest_no_memory(ingest, "threads");
            return NULL;
        }
        char comm[16];
        bool is_new;
        *thread = (struct ingest_thread){.tid = tid, .looked = 1, .first_ns = ingest->now_ns};
        thread->named = ingest_comm(ingest, spool, tid, comm);
        thread->row =
            ingest_thread_row(ingest, spool->process, tid, thread->named ? comm : NULL, &is_new);
        if (!thread->row)
            return NULL;
        thread->named &= is_new; /* else its row was made without, and is named at the next look */
    }
    spool->last_tid = tid;
    spool->last_thread = at + 1;
    return &spool->thread_list.data[at];
}

enum prof_status ingest_definition(struct prof_ingest *ingest, struct ingest_spool *spool,
                                   const struct wire_head *head)
{
    const void *record = head;
    switch (head->type) {
    case WIRE_STRING:
        return string_definition(ingest, spool, record);
    case WIRE_CONFIG:
        return config_definition(ingest, spool, record);
    case WIRE_DEVICE:
        return device_definition(ingest, spool, record);
    case WIRE_CONTEXT:
        return context_definition(ingest, spool, record);
    case WIRE_STREAM:
        return stream_definition(ingest, spool, record);
    case WIRE_NAME:
        return ingest_name(ingest, spool, record);
    case WIRE_HANDLE:
        return ingest_handle(ingest, spool, record);
    case WIRE_MODULE:
        return write_module_definition(ingest, spool, record);
    case WIRE_STACK:
        return write_stack_definition(ingest, spool, record);
    case WIRE_CLOCK:
        return clock_definition(ingest, spool, record);
    case WIRE_HEALTH:
        return health_definition(ingest, spool, record);
    case WIRE_CPU_PROCESS:
    case WIRE_CPU_MODULE:
    case WIRE_CPU_STACK:
        return ingest_cpu_definition(ingest, spool, head);
    case WIRE_PYTHON_CODE:
        return ingest_python_code(ingest, spool, record);
    case WIRE_COUNTER_DEVICE:
    case WIRE_COUNTER:
        return ingest_counter_definition(ingest, spool, head);
    case WIRE_STALL_FUNCTION:
        return ingest_stall(ingest, spool, head);
    default:
        return PROF_OK;
    }
}
