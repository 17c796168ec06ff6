/* Host call stacks by name, read from the tables stack, frame, symbol and module at once: they are
 * as large as the program's code paths, not as its run. See prof_stack.h. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/group.h"
#include "libprof/base/utf8.h"
#include "libprof/include/prof_stack.h"
#include "libprof/store/ingest_stack.h"

_Static_assert((int)PROF_FRAME_MISSING == PROF_STORE_FRAME_MISSING &&
                   (int)PROF_FRAME_NATIVE == PROF_STORE_FRAME_NATIVE &&
                   (int)PROF_FRAME_PYTHON == PROF_STORE_FRAME_PYTHON &&
                   (int)PROF_FRAME_KERNEL == PROF_STORE_FRAME_KERNEL,
               "frame.kind");

#define DEEPEST 8192u /* frames of a stack; deeper ones are damage */

struct stack_row {
    int64_t id, parent, frame;
};

/* A frame of the file: its places stand from `first`, innermost first. */
struct frame_row {
    int64_t id, process;
    uint64_t address;
    uint32_t first, count;
};

struct module_row {
    int64_t id;
    const char *path;
};

struct prof_stacks {
    struct prof_capture *capture;
    PROF_ARRAY(struct stack_row) rows;
    PROF_ARRAY(struct frame_row) frames;
    PROF_ARRAY(struct module_row) modules;
    PROF_ARRAY(struct prof_frame) places; /* distinct */
    PROF_ARRAY(uint32_t) levels;          /* numbers of places, a frame's together */
    PROF_ARRAY(struct prof_frame) result;
    struct prof_names functions, known; /* what makes a function, a place -> number */
    struct prof_arena texts;
};

static const char *file_base_name(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash && slash[1] ? slash + 1 : path;
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool add_stack_module(void *user, sqlite3_stmt *row)
{
    struct prof_stacks *s = user;
    const char *path = (const char *)sqlite3_column_text(row, 1);
    struct module_row *module = prof_array_add(&s->modules);
    if (!module)
        return false;
    *module =
        (struct module_row){sqlite3_column_int64(row, 0),
                            prof_arena_copy(&s->texts, path ? path : "", path ? strlen(path) : 0)};
    return module->path != NULL;
}

/* The number of a key: a number and two texts; a new one is the count of those before. */
static bool stack_key_number(struct prof_names *names, const char *number_text, const char *first,
                             const char *second, uint32_t *number, bool *is_new)
{
    const char *parts[] = {number_text, first, second ? second : ""};
    size_t size = 0, lengths[3];
    for (int i = 0; i < 3; i++)
        size += lengths[i] = strlen(parts[i]) + 1;
    char *key = malloc(size), *at = key;
    if (!key)
        return false;
    for (int i = 0; i < 3; i++)
        at = (char *)memcpy(at, parts[i], lengths[i]) + lengths[i];
    *number = prof_names_number(names, key, size, is_new);
    free(key);
    return *number != UINT32_MAX;
}

static bool number_function(struct prof_stacks *s, struct prof_frame *place)
{
    char kind[16];
    bool is_new;
    snprintf(kind, sizeof kind, "%d", place->kind);
    return stack_key_number(&s->functions, kind, place->function, place->module,
                            &place->function_number, &is_new);
}

/* By the function's number: its name may be long. */
static bool number_place(struct prof_stacks *s, struct prof_frame *place, bool *is_new)
{
    char numbers[80];
    snprintf(numbers, sizeof numbers, "%u %d %d %lld", place->function_number, place->inlined,
             place->named, (long long)place->line);
    return stack_key_number(&s->known, numbers, "", place->file, &place->number, is_new);
}

static bool add_frame_level(struct prof_stacks *s, struct frame_row *row, struct prof_frame *place)
{
    bool is_new;
    uint32_t *level = prof_array_add(&s->levels);
    if (!level || !number_function(s, place) || !number_place(s, place, &is_new))
        return false;
    *level = place->number;
    row->count++;
    if (!is_new)
        return true;
    struct prof_frame *added = prof_array_add(&s->places);
    if (!added)
        return false;
    *added = *place;
    added->address = 0; /* a place may have many */
    return true;
}

/* What a frame without a symbol is called. */
static const char *made_name(struct prof_stacks *s, const struct prof_frame *place, int64_t offset)
{
    char text[160];
    if (place->kind == PROF_FRAME_MISSING)
        return "[callers unknown]";
    if (place->module && offset != PROF_UNKNOWN)
        snprintf(text, sizeof text, "%.*s+0x%llx",
                 prof_report_head(file_base_name(place->module), 120),
                 file_base_name(place->module), (unsigned long long)offset);
    else if (place->kind == PROF_FRAME_PYTHON)
        return "[Python]";
    else
        snprintf(text, sizeof text, "0x%llx", (unsigned long long)place->address);
    return prof_arena_copy(&s->texts, text, strlen(text));
}

static const char *module_path(const struct prof_stacks *s, int64_t id)
{
    size_t at = id ? prof_index_of(&s->modules, id) : SIZE_MAX;
    return at == SIZE_MAX || !s->modules.data[at].path[0] ? NULL : s->modules.data[at].path;
}

/* A row of the query below: one level of a frame. */
static bool read_level(void *user, sqlite3_stmt *row)
{
    struct prof_stacks *s = user;
    int64_t id = sqlite3_column_int64(row, 0), kind = sqlite3_column_int64(row, 1);
    struct frame_row *frame = s->frames.count ? &s->frames.data[s->frames.count - 1] : NULL;
    if (!frame || frame->id != id) {
        frame = prof_array_add(&s->frames);
        if (!frame)
            return false;
        *frame = (struct frame_row){.id = id,
                                    .process = sqlite3_column_int64(row, 10),
                                    .address = (uint64_t)sqlite3_column_int64(row, 2),
                                    .first = (uint32_t)s->levels.count};
    }
    struct prof_frame place = {
        .kind = kind >= PROF_FRAME_MISSING && kind <= PROF_FRAME_KERNEL ? (enum prof_frame_kind)kind
                                                                        : PROF_FRAME_NATIVE,
        .address = frame->address,
        .module = module_path(s, sqlite3_column_int64(row, 3)),
        .function = prof_string(s->capture, sqlite3_column_int64(row, 6), NULL),
        .file = prof_string(s->capture, sqlite3_column_int64(row, 7), NULL),
        .line = prof_column_int(row, 8),
        .inlined = sqlite3_column_int(row, 9) != 0,
    };
    place.named = place.function != NULL;
    if (!place.function)
        place.function = made_name(s, &place, prof_column_int(row, 4));
    return place.function && add_frame_level(s, frame, &place);
}

/* A level is inlined when there is a further one of its frame. */
static const char levels_sql[] =
    "SELECT f.id,f.kind,f.address,f.module,f.offset,s.level,s.function,s.file,s.line,"
    "lead(s.id) OVER (PARTITION BY f.id ORDER BY s.level,s.id) NOT NULL,f.process "
    "FROM frame f LEFT JOIN symbol s ON s.frame=f.id ORDER BY f.id,s.level,s.id";

static bool add_stack_row(void *user, sqlite3_stmt *row)
{
    struct prof_stacks *s = user;
    return prof_array_push(&s->rows, (struct stack_row){sqlite3_column_int64(row, 0),
                                                        sqlite3_column_int64(row, 1),
                                                        sqlite3_column_int64(row, 2)});
}

enum prof_status prof_stacks_open(struct prof_capture *capture, struct prof_stacks **stacks,
                                  struct prof_error *err)
{
    struct prof_stacks *s = *stacks = calloc(1, sizeof *s);
    if (!s)
        return prof_out_of_memory(err);
    s->capture = capture;
    enum prof_status status = prof_begin(capture, err);
    if (!status) {
        status = prof_scan(capture, "SELECT id,parent,frame FROM stack ORDER BY id", add_stack_row,
                           s, err);
        if (!status && s->rows.count)
            status = prof_scan(capture, "SELECT id,path FROM module ORDER BY id", add_stack_module,
                               s, err);
        if (!status && s->rows.count)
            status = prof_scan(capture, levels_sql, read_level, s, err);
        prof_end(capture);
    }
    if (status) {
        prof_stacks_close(s);
        *stacks = NULL;
    }
    return status;
}

void prof_stacks_close(struct prof_stacks *s)
{
    if (!s)
        return;
    prof_array_free(&s->rows);
    prof_array_free(&s->frames);
    prof_array_free(&s->modules);
    prof_array_free(&s->places);
    prof_array_free(&s->levels);
    prof_array_free(&s->result);
    prof_names_free(&s->functions);
    prof_names_free(&s->known);
    prof_arena_free(&s->texts);
    free(s);
}

/* ---- queries --------------------------------------------------------------------------------- */

size_t prof_stacks_count(const struct prof_stacks *s)
{
    return s->rows.count;
}

size_t prof_stacks_places(const struct prof_stacks *s, const struct prof_frame **frames)
{
    *frames = s->places.data;
    return s->places.count;
}

static bool add_result_frames(struct prof_stacks *s, const struct frame_row *row)
{
    if (!prof_array_reserve(&s->result, row->count))
        return false;
    for (uint32_t i = 0; i < row->count; i++) {
        struct prof_frame *frame = &s->result.data[s->result.count++];
        *frame = s->places.data[s->levels.data[row->first + i]];
        frame->address = row->address;
        frame->process = row->process;
    }
    return true;
}

static void reverse(struct prof_frame *frames, size_t count)
{
    for (size_t i = 0; i < count / 2; i++) {
        struct prof_frame swapped = frames[i];
        frames[i] = frames[count - 1 - i];
        frames[count - 1 - i] = swapped;
    }
}

size_t prof_stack_frames(struct prof_stacks *s, int64_t stack, const struct prof_frame **frames)
{
    *frames = NULL;
    s->result.count = 0;
    /* Callers have smaller numbers, so a damaged chain ends too. */
    for (int64_t at = stack, before = INT64_MAX; at > 0 && at < before;) {
        size_t row = prof_index_of(&s->rows, at);
        size_t frame =
            row == SIZE_MAX ? SIZE_MAX : prof_index_of(&s->frames, s->rows.data[row].frame);
        if (frame == SIZE_MAX || s->result.count >= DEEPEST)
            break;
        if (!add_result_frames(s, &s->frames.data[frame])) {
            prof_note(PROF_NOMEM);
            return 0;
        }
        before = at;
        at = s->rows.data[row].parent;
    }
    reverse(s->result.data, s->result.count);
    *frames = s->result.data;
    return s->result.count;
}

static bool is_of(const struct prof_frame *frame, const char *const *modules)
{
    const char *name = frame->module ? file_base_name(frame->module) : "";
    for (; *modules; modules++)
        if (strncmp(name, *modules, strlen(*modules)) == 0)
            return true;
    return false;
}

bool prof_frame_is_interpreter(const struct prof_frame *frame)
{
    static const char *const modules[] = {"libpython", "python2", "python3", NULL};
    return frame->kind == PROF_FRAME_NATIVE && is_of(frame, modules);
}

/* Of every program: where it calls the C library, or is called by it, shows more; the interpreter
 * is every Python program's. */
static bool is_runtime(const struct prof_frame *frame)
{
    static const char *const modules[] = {
        "libc.so", "ld-linux",    "ld-musl",      "libpthread.so",           "libm.so", "libc-2.",
        "[vdso]",  "libgcc_s.so", "libstdc++.so", "libperfkit_collector.so", NULL};
    return is_of(frame, modules) || prof_frame_is_interpreter(frame);
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

#define STUB "__device_stub__"

/* Is it the function that nvcc makes of a kernel? It has the kernel's name and line, and calls a
 * stub whose name holds that name. */
static bool is_of_stub(const struct prof_frame *frame, const struct prof_frame *callee)
{
    char name[128];
    if (!callee || !begins(callee->function, STUB))
        return false;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(frame->function, "(<"), frame->function);
    const char *last = strrchr(name, ':');
    return strstr(callee->function, last ? last + 1 : name);
}

/* What lies between a launch and the line that caused it: nvcc's stubs, and the CUDA runtime where
 * it is linked into the program. */
static bool is_glue(const struct prof_frame *frame, const struct prof_frame *callee)
{
    const char *name = frame->function;
    if (frame->kind != PROF_FRAME_NATIVE || !frame->named)
        return false;
    return begins(name, STUB) || begins(name, "__cuda") || begins(name, "libcudart_static_") ||
           begins(name, "cudart::") || (begins(name, "cuda") && name[4] >= 'A' && name[4] <= 'Z') ||
           is_of_stub(frame, callee);
}

static bool contains_any(const char *path, const char *const *parts)
{
    for (; path && *parts; parts++)
        if (strstr(path, *parts))
            return true;
    return false;
}

static bool is_installed(const struct prof_frame *frame)
{
    static const char *const python[] = {"/site-packages/", "/dist-packages/", "/lib/python",
                                         "<frozen ", NULL};
    const char *module = frame->module ? frame->module : "";
    return begins(module, "/usr/") || begins(module, "/lib") || contains_any(module, python) ||
           contains_any(frame->file, python);
}

enum prof_nearness prof_frame_nearness(const struct prof_frame *frame)
{
    bool installed = is_installed(frame);
    if (is_runtime(frame) || is_glue(frame, NULL))
        return PROF_NEAR_RUNTIME;
    bool generated = !frame->module; /* a function of Python, which may lack the line only */
    if (frame->file && (generated || frame->line != PROF_UNKNOWN))
        return installed ? PROF_NEAR_LIBRARY_LINE : PROF_NEAR_OWN_LINE;
    if (frame->named)
        return installed ? PROF_NEAR_LIBRARY_NAME : PROF_NEAR_OWN_NAME;
    return PROF_NEAR_NOTHING;
}

/* What stands between the program and the device is as far from a reader as the C library. */
static int frame_distance(const struct prof_frame *frame, const struct prof_frame *callee)
{
    enum prof_nearness near =
        is_glue(frame, callee) ? PROF_NEAR_RUNTIME : prof_frame_nearness(frame);
    if (frame->kind == PROF_FRAME_MISSING)
        return INT_MAX;
    return near == PROF_NEAR_RUNTIME && !frame->named ? (int)near + 1 : (int)near;
}

size_t prof_stack_near(struct prof_stacks *s, int64_t stack, const struct prof_frame **frames)
{
    size_t count = prof_stack_frames(s, stack, frames), kept = 0;
    int nearest = INT_MAX;
    reverse(s->result.data, count);
    for (size_t i = 0; i < count; i++) {
        int far = frame_distance(&s->result.data[i], i ? &s->result.data[i - 1] : NULL);
        nearest = far < nearest ? far : nearest;
    }
    struct prof_frame callee; /* as it was before frames moved */
    for (size_t i = 0; i < count; i++) {
        struct prof_frame frame = s->result.data[i];
        if (frame_distance(&frame, i ? &callee : NULL) == nearest)
            s->result.data[kept++] = frame;
        callee = frame;
    }
    return kept;
}

size_t prof_path_near(const struct prof_frame *places, const uint32_t *path, size_t depth,
                      uint32_t *near)
{
    size_t kept = 0;
    int nearest = INT_MAX;
    for (size_t i = 0; i < depth; i++) {
        int far = frame_distance(&places[path[i]], i ? &places[path[i - 1]] : NULL);
        if (far < nearest) {
            nearest = far;
            kept = 0;
        }
        if (far == nearest)
            near[kept++] = (uint32_t)i;
    }
    return kept;
}

const struct prof_frame *prof_stack_place(struct prof_stacks *s, int64_t stack)
{
    const struct prof_frame *frames;
    return prof_stack_near(s, stack, &frames) ? frames : NULL;
}

/* snprintf counts a name of 100 kB byte by byte, and callers have room for a line. */
static size_t put_frame_piece(char *out, size_t size, size_t used, const char *piece)
{
    size_t length = strlen(piece);
    if (used < size) {
        size_t fits = length < size - used ? length : size - used - 1;
        memcpy(out + used, piece, fits);
        out[used + fits] = 0;
    }
    return used + length;
}

size_t prof_frame_text(const struct prof_frame *frame, char *out, size_t size)
{
    char line[32] = "";
    const char *in = frame->file ? frame->file : frame->named ? frame->module : NULL;
    if (frame->file && frame->line != PROF_UNKNOWN)
        snprintf(line, sizeof line, ":%lld", (long long)frame->line);
    size_t used = put_frame_piece(out, size, 0, frame->function);
    if (!in)
        return used;
    used = put_frame_piece(out, size, used, " (");
    used = put_frame_piece(out, size, used, file_base_name(in));
    used = put_frame_piece(out, size, used, line);
    return put_frame_piece(out, size, used, ")");
}

char *prof_frame_text_new(const struct prof_frame *frame, const char *before)
{
    size_t length = prof_frame_text(frame, NULL, 0), used = strlen(before);
    char *text = malloc(used + length + 1);
    if (text) {
        memcpy(text, before, used);
        prof_frame_text(frame, text + used, length + 1);
    }
    return text;
}
