/* Interned data of a Perfetto trace; see perfetto_interned.h. Frames have no mapping: a mapping's
 * frames are told apart by their address in the object file, ours by function, file and line, which
 * are known already. Perfetto takes such frames for symbolized ones. */
#include "report/perfetto_interned.h"

/* Field numbers, by message. */
enum {
    ENTRY_IID = 1,
    ENTRY_TEXT = 2,
    FRAME_FUNCTION = 2,
    FRAME_SOURCE_PATH = 5,
    FRAME_LINE = 6,
    FRAME_KIND = 7,
    CALLSTACK_FRAME = 2,
};

enum { KIND_NATIVE = 1, KIND_KERNEL = 2, KIND_INTERPRETED = 3 };

/* The number of what `key` stands for; `fresh` when it has none so far. */
static int64_t interned_number(struct prof_perfetto_interned *in, enum prof_perfetto_kind kind,
                               uint64_t key, bool *fresh)
{
    const uint64_t *known = prof_map_get(&in->numbers[kind], key);
    *fresh = !known;
    if (known)
        return (int64_t)*known;
    uint64_t number = in->numbers[kind].count + 1;
    if (!prof_map_put(&in->numbers[kind], key, number))
        in->no_memory = true;
    return (int64_t)number;
}

static void begin_entry(struct prof_perfetto_interned *in, int64_t iid)
{
    prof_protobuf_clear(&in->entry);
    prof_protobuf_int(&in->entry, ENTRY_IID, iid);
}

static void end_entry(struct prof_perfetto_interned *in, enum prof_perfetto_kind kind)
{
    prof_protobuf_message(&in->fresh, kind, &in->entry);
}

int64_t prof_perfetto_text(struct prof_perfetto_interned *in, enum prof_perfetto_kind kind,
                           const char *text)
{
    bool fresh;
    int64_t iid = interned_number(in, kind, (uint64_t)(uintptr_t)text, &fresh);
    if (fresh) {
        begin_entry(in, iid);
        prof_protobuf_text(&in->entry, ENTRY_TEXT, text);
        end_entry(in, kind);
    }
    return iid;
}

static int64_t frame_kind(const struct prof_frame *frame)
{
    return frame->kind == PROF_FRAME_NATIVE   ? KIND_NATIVE
           : frame->kind == PROF_FRAME_KERNEL ? KIND_KERNEL
           : frame->kind == PROF_FRAME_PYTHON ? KIND_INTERPRETED
                                              : 0;
}

static int64_t interned_frame(struct prof_perfetto_interned *in,
                              const struct prof_report_stacks *stacks, uint32_t place)
{
    bool fresh;
    int64_t iid = interned_number(in, PROF_PERFETTO_FRAME, place, &fresh);
    if (!fresh)
        return iid;
    const struct prof_frame *frame = prof_report_stacks_frame(stacks, place);
    const char *path = frame->file ? frame->file : frame->module;
    int64_t function = prof_perfetto_text(in, PROF_PERFETTO_FUNCTION, frame->function);
    int64_t source = path ? prof_perfetto_text(in, PROF_PERFETTO_SOURCE_PATH, path) : 0;
    begin_entry(in, iid);
    prof_protobuf_int(&in->entry, FRAME_FUNCTION, function);
    if (source)
        prof_protobuf_int(&in->entry, FRAME_SOURCE_PATH, source);
    if (frame->file && frame->line > 0 && frame->line <= UINT32_MAX)
        prof_protobuf_int(&in->entry, FRAME_LINE, frame->line);
    if (frame_kind(frame))
        prof_protobuf_int(&in->entry, FRAME_KIND, frame_kind(frame));
    end_entry(in, PROF_PERFETTO_FRAME);
    return iid;
}

int64_t prof_perfetto_stack(struct prof_perfetto_interned *in,
                            const struct prof_report_stacks *stacks, uint32_t node)
{
    bool fresh;
    int64_t iid = interned_number(in, PROF_PERFETTO_CALLSTACK, node, &fresh);
    PROF_ARRAY(int64_t) frames = {0}; /* innermost first */
    if (!fresh)
        return iid;
    for (; node; node = stacks->nodes.data[node - 1].parent) {
        int64_t *slot = prof_array_add(&frames);
        if (slot)
            *slot = interned_frame(in, stacks, stacks->nodes.data[node - 1].place);
        else
            in->no_memory = true;
    }
    begin_entry(in, iid);
    for (size_t i = frames.count; i-- > 0;)
        prof_protobuf_int(&in->entry, CALLSTACK_FRAME, frames.data[i]);
    end_entry(in, PROF_PERFETTO_CALLSTACK);
    prof_array_free(&frames);
    return iid;
}

void prof_perfetto_interned_free(struct prof_perfetto_interned *in)
{
    for (size_t i = 0; i < PROF_PERFETTO_KINDS; i++)
        prof_map_free(&in->numbers[i]);
    prof_protobuf_free(&in->fresh);
    prof_protobuf_free(&in->entry);
}
