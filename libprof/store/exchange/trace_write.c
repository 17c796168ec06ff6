/* Events of a Chrome trace to rows in the tables of nsys.h. What torch.profiler writes (the Kineto
 * dialect) is known by its categories and becomes kernels, copies, calls; any other slice is a
 * range of its thread. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/gpu/names.h"
#include "libprof/store/exchange/feed.h"
#include "libprof/store/exchange/trace.h"

#define MOST_OPEN 65536u /* of B without E, on all threads */

/* ---- the device's rows ----------------------------------------------------------------------- */

/* start, end, device, context, stream, correlation: the first columns of every device record */
static void bind_device(sqlite3_stmt *sql, const struct trace_event *event, int64_t end)
{
    int64_t pid;
    const struct trace_bytes *row = &event->texts[TRACE_TEXT_PID]; /* the device's number, there */
    sqlite3_bind_int64(sql, 1, event->numbers[TRACE_TS]);
    sqlite3_bind_int64(sql, 2, end);
    trace_bind_number(sql, 3, event, TRACE_DEVICE);
    if (!trace_event_has(event, TRACE_DEVICE))
        sqlite3_bind_int64(sql, 3, trace_decimal(row->data, row->count, 1, &pid) ? pid : 0);
    trace_bind_number(sql, 4, event, TRACE_CONTEXT);
    trace_bind_number(sql, 5, event, TRACE_STREAM);
    trace_bind_number(sql, 6, event, TRACE_CORRELATION);
}

static bool stage_kernel(struct trace_sink *sink, const struct trace_event *event, int64_t end)
{
    static const enum trace_number numbers[] = {TRACE_REGISTERS, TRACE_GRID_X,     TRACE_GRID_Y,
                                                TRACE_GRID_Z,    TRACE_BLOCK_X,    TRACE_BLOCK_Y,
                                                TRACE_BLOCK_Z,   TRACE_GRAPH_NODE, TRACE_GRAPH};
    sqlite3_stmt *sql = sink->sql[SQL_KERNEL];
    int64_t name = trace_name_of(sink, event);
    bind_device(sql, event, end);
    sqlite3_bind_int64(sql, 7, name);
    for (int i = 0; i < 9; i++)
        trace_bind_number(sql, 8 + i, event, numbers[i]);
    return name && trace_run(sink, SQL_KERNEL);
}

/* "Memcpy HtoD (Pageable -> Device)": the kinds are in the name only. Numbers as in nsys.h's enums.
 */
static int word_in(const char *text, const char *const *words, int otherwise)
{
    for (int i = 0; words[i]; i++)
        if (*words[i] && !strncmp(text, words[i], strlen(words[i])))
            return i;
    return otherwise;
}

static int memory_in(const char *text)
{
    static const char *const words[] = {"Pageable", "Pinned",        "Device",         "Array",
                                        "Managed",  "Device Static", "Managed Static", NULL};
    return word_in(text, words, 7);
}

static bool stage_copy(struct trace_sink *sink, const struct trace_event *event, int64_t end)
{
    static const char *const kinds[] = {"",     "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
                                        "AtoD", "DtoA", "DtoD", "HtoH", "PtoP", NULL};
    sqlite3_stmt *sql = sink->sql[SQL_COPY];
    const char *name = trace_text(event, TRACE_TEXT_NAME), *kind = strchr(name, ' '),
               *open = strchr(name, '('), *arrow = strstr(name, "-> ");
    bind_device(sql, event, end);
    sqlite3_bind_int64(sql, 7,
                       trace_event_has(event, TRACE_BYTES) ? event->numbers[TRACE_BYTES] : 0);
    sqlite3_bind_int(sql, 8, kind ? word_in(kind + 1, kinds, 0) : 0);
    sqlite3_bind_int(sql, 9, open ? memory_in(open + 1) : 7);
    sqlite3_bind_int(sql, 10, arrow ? memory_in(arrow + 3) : 7);
    trace_bind_number(sql, 11, event, TRACE_GRAPH_NODE);
    return trace_run(sink, SQL_COPY);
}

static bool stage_memset(struct trace_sink *sink, const struct trace_event *event, int64_t end)
{
    sqlite3_stmt *sql = sink->sql[SQL_FILL];
    const char *open = strchr(trace_text(event, TRACE_TEXT_NAME), '(');
    bind_device(sql, event, end);
    sqlite3_bind_int64(sql, 7,
                       trace_event_has(event, TRACE_BYTES) ? event->numbers[TRACE_BYTES] : 0);
    sqlite3_bind_int(sql, 8, open ? memory_in(open + 1) : 7);
    trace_bind_number(sql, 9, event, TRACE_GRAPH_NODE);
    return trace_run(sink, SQL_FILL);
}

static bool stage_synchronization(struct trace_sink *sink, const struct trace_event *event,
                                  int64_t end)
{
    static const char *const kinds[] = {
        "", "Event Sync", "Stream Wait Event", "Stream Sync", "Context Sync", NULL};
    sqlite3_stmt *sql = sink->sql[SQL_WAIT];
    bind_device(sql, event, end);
    if (trace_event_has(event, TRACE_SYNCHRONIZED))
        trace_bind_number(sql, 5, event, TRACE_SYNCHRONIZED);
    sqlite3_bind_int(sql, 7, word_in(trace_text(event, TRACE_TEXT_NAME), kinds, 0));
    trace_bind_number(sql, 8, event, TRACE_EVENT);
    return trace_run(sink, SQL_WAIT);
}

/* ---- XLA's rows of devices: JAX, TensorFlow -------------------------------------------------- */

static void take_detail(struct trace_event *event, const char *details, const char *key,
                        enum trace_number first, int count)
{
    const char *at = strstr(details, key);
    for (int i = 0; at && i < count; i++) {
        char *end;
        at += i ? 1 : strlen(key);
        event->numbers[(int)first + i] = strtoll(at, &end, 10);
        event->has |= end > at ? 1ull << ((int)first + i) : 0;
        at = *end == ',' ? end : NULL;
    }
}

/* The kind of memory behind `key`, as Kineto writes it: "pinned" is Pinned. */
static void take_memory_kind(char out[16], const char *details, const char *key)
{
    const char *at = strstr(details, key);
    snprintf(out, 16, "%.*s", at ? (int)strcspn(at + strlen(key), " ") : 0,
             at ? at + strlen(key) : "");
    if (*out >= 'a' && *out <= 'z')
        *out = (char)(*out - 'a' + 'A');
}

/* The row's process is the device, whose number its name has (trace_sink.c), and its thread the
 * stream. "MemcpyH2D" is Kineto's "Memcpy HtoD (Pinned -> Device)". */
static bool stage_xla(struct trace_sink *sink, const struct trace_event *event, int64_t end)
{
    struct trace_event made = *event; /* shares the texts */
    const char *kernel = trace_text(event, TRACE_TEXT_KERNEL_DETAILS),
               *copy = trace_text(event, TRACE_TEXT_COPY_DETAILS),
               *name = trace_text(event, TRACE_TEXT_NAME);
    char kinded[80], from[16], to[16];
    int64_t stream;
    const struct trace_bytes *row = &event->texts[TRACE_TEXT_TID];
    sink->is_xla = true;
    if (trace_decimal(row->data, row->count, 1, &stream)) {
        made.numbers[TRACE_STREAM] = stream;
        made.has |= 1ull << TRACE_STREAM;
    }
    if (*kernel) {
        take_detail(&made, kernel, "regs:", TRACE_REGISTERS, 1);
        take_detail(&made, kernel, "grid:", TRACE_GRID_X, 3);
        take_detail(&made, kernel, "block:", TRACE_BLOCK_X, 3);
        return stage_kernel(sink, &made, end);
    }
    if (!*copy) {
        take_detail(&made, trace_text(event, TRACE_TEXT_FILL_DETAILS), "size_bytes:", TRACE_BYTES,
                    1);
        return stage_memset(sink, &made, end);
    }
    take_detail(&made, copy, "size:", TRACE_BYTES, 1);
    take_memory_kind(from, copy, "kind_src:");
    take_memory_kind(to, copy, "kind_dst:");
    bool known = !strncmp(name, "Memcpy", 6) && strlen(name) >= 9;
    snprintf(kinded, sizeof kinded, "Memcpy %cto%c (%s -> %s)", known ? name[6] : '?',
             known ? name[8] : '?', from, to);
    made.texts[TRACE_TEXT_NAME] =
        (struct trace_bytes){.data = kinded, .count = strlen(kinded), .capacity = sizeof kinded};
    return stage_copy(sink, &made, end);
}

static bool is_xla(const struct trace_event *event)
{
    return !*trace_text(event, TRACE_TEXT_CATEGORY) &&
           (*trace_text(event, TRACE_TEXT_KERNEL_DETAILS) ||
            *trace_text(event, TRACE_TEXT_COPY_DETAILS) ||
            *trace_text(event, TRACE_TEXT_FILL_DETAILS));
}

/* ---- the host's rows ------------------------------------------------------------------------- */

static bool count_process_call(struct trace_sink *sink, int64_t process)
{
    uint64_t *calls = prof_map_get(&sink->calls_of, (uint64_t)process);
    if (calls)
        ++*calls;
    return calls || trace_memory(sink, prof_map_put(&sink->calls_of, (uint64_t)process, 1));
}

static bool stage_call(struct trace_sink *sink, const struct trace_event *event, int64_t end)
{
    sqlite3_stmt *sql = sink->sql[SQL_CALL];
    int64_t thread = trace_thread_of(sink, event), name = trace_name_of(sink, event);
    sqlite3_bind_int64(sql, 1, event->numbers[TRACE_TS]);
    sqlite3_bind_int64(sql, 2, end);
    sqlite3_bind_int(sql, 3, !strcmp(trace_text(event, TRACE_TEXT_CATEGORY), "cuda_driver"));
    sqlite3_bind_int64(sql, 4, thread);
    trace_bind_number(sql, 5, event, TRACE_CORRELATION);
    sqlite3_bind_int64(sql, 6, name);
    return thread >= 0 && name && count_process_call(sink, trace_process_of(thread)) &&
           trace_run(sink, SQL_CALL);
}

/* Domain of a category: that of operators and of what the program marks itself is the default one,
 * so that they nest in each other. -1: failed. */
static int64_t trace_domain_of(struct trace_sink *sink, const struct trace_event *event,
                               int64_t thread)
{
    const char *category = trace_text(event, TRACE_TEXT_CATEGORY);
    char key[96];
    static const char *const own[] = {"", "cpu_op", "user_annotation", "Operator"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (!strcmp(category, own[i]))
            return 0;
    int length =
        snprintf(key, sizeof key, "%lld %.64s", (long long)trace_process_of(thread), category);
    uint32_t *known = prof_names_get(&sink->domains, key, (size_t)length);
    if (known)
        return *known;
    int64_t number = (int64_t)sink->domains.count + 1;
    sqlite3_stmt *sql = sink->sql[SQL_DOMAIN];
    sqlite3_bind_int64(sql, 1, trace_process_of(thread));
    sqlite3_bind_text(sql, 2, category, -1, SQLITE_STATIC);
    sqlite3_bind_int64(sql, 3, number);
    return trace_run(sink, SQL_DOMAIN) &&
                   trace_memory(
                       sink, prof_names_put(&sink->domains, key, (size_t)length, (uint32_t)number))
               ? number
               : -1;
}

/* Operators that their name does not show as such ("TorchDynamo Cache Lookup") carry the category,
 * by which they are operators again in our own traces. -1: failed. */
static int operator_category(struct trace_sink *sink, const struct trace_event *event,
                             int64_t thread)
{
    char key[40];
    if (strcmp(trace_text(event, TRACE_TEXT_CATEGORY), "cpu_op") != 0 ||
        prof_range_name_is_operator(trace_text(event, TRACE_TEXT_NAME)))
        return 0;
    int length = snprintf(key, sizeof key, "%lld", (long long)trace_process_of(thread));
    if (prof_names_get(&sink->categories, key, (size_t)length))
        return 1;
    sqlite3_stmt *sql = sink->sql[SQL_CATEGORY];
    sqlite3_bind_int64(sql, 1, trace_process_of(thread));
    sqlite3_bind_text(sql, 2, "cpu_op", -1, SQLITE_STATIC);
    return trace_run(sink, SQL_CATEGORY) &&
                   trace_memory(sink, prof_names_put(&sink->categories, key, (size_t)length, 1))
               ? 1
               : -1;
}

/* Of PyTorch's scalar types. Those of one digit of bits (Float8_e5m2, Int4, Float4_e2m1fn_x2) take
 * a byte: smaller values are counted by the byte that holds them. 0 = unknown. */
static int element_bytes(const char *type)
{
    static const struct {
        const char *name;
        int bytes;
    } types[] = {{"Float", 4},          {"Half", 2},   {"BFloat16", 2},    {"Double", 8},
                 {"Long", 8},           {"Int", 4},    {"Byte", 1},        {"Char", 1},
                 {"Bool", 1},           {"Short", 2},  {"ComplexHalf", 4}, {"ComplexFloat", 8},
                 {"ComplexDouble", 16}, {"UInt16", 2}, {"UInt32", 4},      {"UInt64", 8},
                 {"QInt32", 4},         {"Bits16", 2}};
    static const char *const of_a_byte[] = {"Float", "Int", "UInt", "QInt", "QUInt", "Bits"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(type, types[i].name))
            return types[i].bytes;
    for (size_t i = 0; i < sizeof of_a_byte / sizeof *of_a_byte; i++)
        if (!strncmp(type, of_a_byte[i], strlen(of_a_byte[i]))) {
            const char *bits = type + strlen(of_a_byte[i]);
            if (*bits >= '1' && *bits <= '8' && !isdigit((unsigned char)bits[1]))
                return 1;
        }
    return 0;
}

/* What PyTorch says of a collective operation: see RANGE of SINK_SQL_MAP. Bytes as NCCL counts
 * them: what one rank gives, or gets of a reduce-scatter. */
static void bind_collective(sqlite3_stmt *sql, const struct trace_event *event)
{
    const char *name = trace_text(event, TRACE_TEXT_COLLECTIVE),
               *type = trace_text(event, TRACE_TEXT_ELEMENT);
    enum trace_number which =
        strstr(name, "reduce_scatter") ? TRACE_OUT_ELEMENTS : TRACE_IN_ELEMENTS;
    for (int i = 0; i < 3; i++) {
        static const enum trace_text texts[] = {TRACE_TEXT_COLLECTIVE, TRACE_TEXT_GROUP,
                                                TRACE_TEXT_GROUP_RANKS};
        const struct trace_bytes *text = &event->texts[texts[i]];
        sqlite3_bind_text(sql, 8 + i, text->count ? text->data : NULL, -1, SQLITE_STATIC);
    }
    int64_t count = trace_event_has(event, which) ? event->numbers[which] : -1;
    int bytes = element_bytes(type);
    if (bytes && count >= 0 && count <= FEED_FARTHEST_NS / 16)
        sqlite3_bind_int64(sql, 11, count * bytes);
}

/* The inputs and the sequence number of an operator. Arguments are kept of convolutions only: those
 * of others would make texts that differ in what nothing reads. */
static bool bind_operator(struct trace_sink *sink, const struct trace_event *event)
{
    const struct trace_bytes *sizes = &event->texts[TRACE_TEXT_SIZES],
                             *types = &event->texts[TRACE_TEXT_TYPES],
                             *arguments = &event->texts[TRACE_TEXT_ARGUMENTS];
    sqlite3_stmt *sql = sink->sql[SQL_RANGE];
    if (trace_event_has(event, TRACE_SEQUENCE) && event->numbers[TRACE_SEQUENCE] >= 0)
        sqlite3_bind_int64(sql, 13, event->numbers[TRACE_SEQUENCE]);
    if (!sizes->count)
        return true;
    bool called = arguments->count && strstr(trace_text(event, TRACE_TEXT_NAME), "convolution");
    if (sizes->count + types->count + (called ? arguments->count : 0) > TRACE_RAW_BYTES) {
        sink->skipped[SKIPPED_INPUTS]++;
        return true;
    }
    char *text = sqlite3_mprintf("{\"sizes\":%s%s%s%s%s}", sizes->data,
                                 types->count ? ",\"types\":" : "", types->count ? types->data : "",
                                 called ? ",\"arguments\":" : "", called ? arguments->data : "");
    sqlite3_bind_text(sql, 12, text, -1, sqlite3_free);
    return trace_memory(sink, text != NULL);
}

bool trace_put_range(struct trace_sink *sink, int type, const struct opened *range,
                     const int64_t *end)
{
    sqlite3_stmt *sql = sink->sql[SQL_RANGE];
    sqlite3_bind_int64(sql, 1, range->start);
    if (end)
        sqlite3_bind_int64(sql, 2, *end);
    else
        sqlite3_bind_null(sql, 2);
    sqlite3_bind_int(sql, 3, type);
    sqlite3_bind_int64(sql, 4, range->tid);
    sqlite3_bind_int64(sql, 5, range->name);
    sqlite3_bind_int64(sql, 6, range->domain);
    sqlite3_bind_int(sql, 7, range->category);
    if (sink->any_pid < 0)
        sink->any_pid = trace_process_of(range->tid);
    return range->name && range->tid >= 0 && range->domain >= 0 && range->category >= 0 &&
           trace_run(sink, SQL_RANGE);
}

static struct opened opened_range(struct trace_sink *sink, const struct trace_event *event)
{
    struct opened range = {.tid = trace_thread_of(sink, event),
                           .start = event->numbers[TRACE_TS],
                           .name = trace_name_of(sink, event)};
    range.domain = range.tid < 0 ? -1 : trace_domain_of(sink, event, range.tid);
    range.category = range.tid < 0 ? -1 : operator_category(sink, event, range.tid);
    return range;
}

static bool begin_range(struct trace_sink *sink, const struct trace_event *event)
{
    struct opened *slot = sink->open.count < MOST_OPEN ? prof_array_add(&sink->open) : NULL;
    if (!slot) {
        sink->skipped[SKIPPED_UNCLOSED]++;
        return trace_memory(sink, sink->open.count >= MOST_OPEN);
    }
    *slot = opened_range(sink, event);
    return slot->tid >= 0 && slot->domain >= 0 && slot->name;
}

static bool end_range(struct trace_sink *sink, const struct trace_event *event)
{
    int64_t thread = trace_thread_of(sink, event), end = event->numbers[TRACE_TS];
    size_t at = sink->open.count;
    while (at && sink->open.data[at - 1].tid != thread)
        at--;
    if (!at) {
        sink->skipped[SKIPPED_UNOPENED]++;
        return thread >= 0;
    }
    struct opened range = sink->open.data[at - 1];
    memmove(&sink->open.data[at - 1], &sink->open.data[at], (sink->open.count - at) * sizeof range);
    sink->open.count--;
    return trace_put_range(sink, 59, &range, &end);
}

static bool stage_overhead(struct trace_sink *sink, const struct trace_event *event, int64_t end)
{
    /* 100 + kinds of a capture: ENUM_CUPTI_OVERHEAD_TYPE lacks some */
    static const char *const kinds[] = {"",
                                        "Driver Compiler",
                                        "Buffer Flush",
                                        "Instrumentation",
                                        "Resource",
                                        "Runtime Triggered Module Loading",
                                        "Lazy Function Loading",
                                        "Command Buffer Full",
                                        "Activity Buffer Request",
                                        "UVM",
                                        NULL};
    sqlite3_stmt *sql = sink->sql[SQL_OVERHEAD];
    sqlite3_bind_int64(sql, 1, event->numbers[TRACE_TS]);
    sqlite3_bind_int64(sql, 2, end);
    sqlite3_bind_null(sql, 3); /* its pid and tid are made up there */
    sqlite3_bind_int(sql, 4, 100 + word_in(trace_text(event, TRACE_TEXT_NAME), kinds, 0));
    return trace_run(sink, SQL_OVERHEAD);
}

/* A framework's allocator records what it gives out and takes back, by address. */
static bool stage_memory_event(struct trace_sink *sink, const struct trace_event *event)
{
    sqlite3_stmt *sql = sink->sql[SQL_MEMORY];
    int64_t thread = trace_thread_of(sink, event), bytes = event->numbers[TRACE_MEMORY_BYTES];
    bool device =
        trace_event_has(event, TRACE_DEVICE_TYPE) && event->numbers[TRACE_DEVICE_TYPE] == 1;
    sink->allocator = true;
    sqlite3_bind_int64(sql, 1, event->numbers[TRACE_TS]);
    sqlite3_bind_int64(sql, 2, trace_process_of(thread));
    if (device)
        trace_bind_number(sql, 3, event, TRACE_DEVICE_ID);
    else
        sqlite3_bind_null(sql, 3);
    sqlite3_bind_int64(sql, 4, event->numbers[TRACE_ADDRESS]);
    sqlite3_bind_int64(sql, 5, bytes < 0 && bytes != INT64_MIN ? -bytes : bytes);
    sqlite3_bind_int(sql, 6, device ? 2 : 0);
    sqlite3_bind_int(sql, 7, bytes < 0);
    return thread >= 0 && trace_run(sink, SQL_MEMORY);
}

/* ---- events ---------------------------------------------------------------------------------- */

static bool skip(struct trace_sink *sink, enum skipped why)
{
    sink->skipped[why]++;
    return true;
}

static const struct {
    const char *category;
    bool (*put)(struct trace_sink *, const struct trace_event *, int64_t end);
    int needs; /* a number without which it is something else; -1 = none */
} slices[] = {
    {"kernel", stage_kernel, TRACE_STREAM},
    {"gpu_memcpy", stage_copy, TRACE_STREAM},
    {"gpu_memset", stage_memset, TRACE_STREAM},
    {"cuda_sync", stage_synchronization, -1},
    {"cuda_runtime", stage_call, -1},
    {"cuda_driver", stage_call, -1},
    {"opencl", stage_call, -1},
    {"overhead", stage_overhead, -1},
    /* Kineto's words until PyTorch 1.11 */
    {"Kernel", stage_kernel, TRACE_STREAM},
    {"Memcpy", stage_copy, TRACE_STREAM},
    {"Memset", stage_memset, TRACE_STREAM},
    {"Runtime", stage_call, TRACE_CORRELATION},
};

static bool put_slice(struct trace_sink *sink, const struct trace_event *event)
{
    const char *category = trace_text(event, TRACE_TEXT_CATEGORY);
    int64_t duration = trace_event_has(event, TRACE_DUR) ? event->numbers[TRACE_DUR] : 0;
    int64_t end = event->numbers[TRACE_TS] + duration; /* each below 2^61 */
    if (duration < 0)
        return skip(sink, SKIPPED_NEGATIVE);
    if (!strcmp(category, "gpu_user_annotation"))
        return skip(sink, SKIPPED_PROJECTION);
    if (!strcmp(category, "off_cpu")) /* of perfkit's own traces */
        return skip(sink, SKIPPED_SAMPLE);
    if (!strcmp(category, "cuda_event"))
        return skip(sink, SKIPPED_RECORDED);
    if (!strcmp(category, "Trace")) /* the profiler's own span */
        return true;
    for (size_t i = 0; i < sizeof slices / sizeof *slices; i++) {
        if (strcmp(category, slices[i].category) ||
            (slices[i].needs >= 0 && !trace_event_has(event, (enum trace_number)slices[i].needs)))
            continue;
        sink->is_kineto = true;
        return slices[i].put(sink, event, end);
    }
    if (is_xla(event))
        return stage_xla(sink, event, end);
    struct opened range = opened_range(sink, event);
    if (event->texts[TRACE_TEXT_COLLECTIVE].count)
        bind_collective(sink->sql[SQL_RANGE], event);
    bool ok = bind_operator(sink, event) && trace_put_range(sink, 59, &range, &end);
    for (int at = 8; at <= 13; at++)
        sqlite3_bind_null(sink->sql[SQL_RANGE], at);
    return ok;
}

static bool put_instant(struct trace_sink *sink, const struct trace_event *event)
{
    const char *name = trace_text(event, TRACE_TEXT_NAME);
    if (!strcmp(name, "[memory]") && trace_event_has(event, TRACE_ADDRESS) &&
        trace_event_has(event, TRACE_MEMORY_BYTES))
        return stage_memory_event(sink, event);
    if (!strncmp(name, "Iteration Start: ", 17) || !strcmp(name, "Record Window End"))
        return true; /* of the profiler itself */
    struct opened mark = opened_range(sink, event);
    return trace_put_range(sink, 34, &mark, NULL);
}

static bool put_metadata(struct trace_sink *sink, const struct trace_event *event)
{
    const char *name = trace_text(event, TRACE_TEXT_NAME),
               *given = trace_text(event, TRACE_TEXT_GIVEN);
    bool process = !strcmp(name, "process_name"), thread = !strcmp(name, "thread_name");
    int64_t number = process || (thread && *given) ? trace_thread_of(sink, event) : 0;
    if (process && number >= 0) {
        sqlite3_stmt *sql = sink->sql[SQL_PROCESS];
        sqlite3_bind_int64(sql, 1, trace_process_of(number));
        sqlite3_bind_int64(sql, 2, trace_process_of(number) >> 24 & 0xffffff);
        sqlite3_bind_text(sql, 3, given, -1, SQLITE_STATIC);
        return trace_run(sink, SQL_PROCESS);
    }
    if (thread && *given && number >= 0) {
        int64_t text = trace_string_of(sink, given, strlen(given));
        sqlite3_bind_int64(sink->sql[SQL_THREAD], 1, text);
        sqlite3_bind_int64(sink->sql[SQL_THREAD], 2, number);
        return text && trace_run(sink, SQL_THREAD);
    }
    return number >= 0;
}

bool trace_sink_event(struct trace_sink *sink, const struct trace_event *event)
{
    char phase = *trace_text(event, TRACE_TEXT_PHASE);
    sink->events++;
    if (phase == 'M')
        return put_metadata(sink, event);
    if (phase == 's' || phase == 't' || phase == 'f') /* flows: correlation numbers say the same */
        return true;
    if (phase == 'C' || phase == 'P')
        return skip(sink, phase == 'C' ? SKIPPED_COUNTER : SKIPPED_SAMPLE);
    if (!phase || !strchr("XBEiIR", phase))
        return skip(sink,
                    phase && strchr("bneNODSTFpvcV(),=", phase) ? SKIPPED_ASYNC : SKIPPED_UNKNOWN);
    if (!trace_event_has(event, TRACE_TS))
        return skip(sink, SKIPPED_NO_TIME);
    switch (phase) {
    case 'X':
        return put_slice(sink, event);
    case 'B':
        return begin_range(sink, event);
    case 'E':
        return end_range(sink, event);
    default:
        return put_instant(sink, event);
    }
}

bool trace_sink_device(struct trace_sink *sink, const struct trace_event *device)
{
    static const enum trace_number numbers[] = {TRACE_GPU_MEMORY, TRACE_GPU_UNITS, TRACE_GPU_MAJOR,
                                                TRACE_GPU_MINOR, TRACE_GPU_BLOCK};
    static const enum trace_number more[] = {TRACE_GPU_WARP, TRACE_GPU_SHARED_BLOCK,
                                             TRACE_GPU_SHARED_UNIT, TRACE_GPU_REGISTERS};
    sqlite3_stmt *sql = sink->sql[SQL_GPU];
    sink->is_kineto = true;
    trace_bind_number(sql, 1, device, TRACE_GPU_ID);
    sqlite3_bind_text(sql, 2, trace_text(device, TRACE_TEXT_GPU_NAME), -1, SQLITE_STATIC);
    for (int i = 0; i < 5; i++)
        trace_bind_number(sql, 3 + i, device, numbers[i]);
    bool known = trace_event_has(device, TRACE_GPU_WARP) && device->numbers[TRACE_GPU_WARP] > 0;
    if (known && trace_event_has(device, TRACE_GPU_THREADS))
        sqlite3_bind_int64(sql, 8,
                           device->numbers[TRACE_GPU_THREADS] / device->numbers[TRACE_GPU_WARP]);
    else
        sqlite3_bind_null(sql, 8);
    for (int i = 0; i < 4; i++)
        trace_bind_number(sql, 9 + i, device, more[i]);
    return trace_run(sink, SQL_GPU);
}
