/* PyTorch's caching allocator seen through: blocks inside the segments that it got from the driver.
 * A block has the address of the segment it lies in; where a segment is not found (memory mapped
 * piecewise, or freed meanwhile) the block is counted for itself and holds nothing at the peak. */
#include <stdlib.h>

#include "libprof/analysis/memory/profile.h"
#include "libprof/base/saturate.h"
#include "libprof/wire/memory.h"

struct segment {
    int64_t process, address, bytes, start, until;
    int64_t reach; /* greatest end of this and all before it, in the same process */
    uint32_t item;
};

struct blocks {
    struct memory_work *work;
    PROF_ARRAY(struct segment) segments; /* by process, then address */
};

PROF_ORDER(by_segment_address, struct segment, PROF_ASCENDING(process), PROF_ASCENDING(address),
           PROF_ASCENDING(start))

enum { ADDRESS_ID, ADDRESS };

static bool add_address(void *user, sqlite3_stmt *row)
{
    struct prof_map *addresses = user;
    int64_t address = prof_column_int(row, ADDRESS);
    return address == PROF_UNKNOWN ||
           prof_map_put(addresses, (uint64_t)prof_column_id(row, ADDRESS_ID), (uint64_t)address);
}

/* The items stand in the order of those lifetimes that are in scope. */
static bool list_segments(struct blocks *b, const struct prof_map *addresses)
{
    struct memory_work *w = b->work;
    for (uint32_t i = 0; i < w->items.count; i++) {
        const struct memory_item *item = &w->items.data[i];
        const struct prof_lifetime *l = &w->facts->lifetimes.data[item->lifetime];
        const uint64_t *address = prof_map_get(addresses, (uint64_t)l->id);
        if (!address || w->sites.data[item->site].row.host)
            continue;
        if (!prof_array_push(&b->segments, (struct segment){.process = l->process,
                                                            .address = (int64_t)*address,
                                                            .bytes = item->bytes,
                                                            .start = item->start,
                                                            .until = item->until,
                                                            .item = i}))
            return false;
    }
    struct segment *s = b->segments.data;
    if (b->segments.count)
        qsort(s, b->segments.count, sizeof *s, by_segment_address);
    for (size_t i = 0; i < b->segments.count; i++) {
        int64_t end = prof_add(s[i].address, s[i].bytes);
        bool first = !i || s[i - 1].process != s[i].process;
        s[i].reach = first || s[i - 1].reach < end ? end : s[i - 1].reach;
    }
    return true;
}

/* The times of blocks are known to a microsecond. */
#define SLACK_NS 2000
#define LOOK_BACK 4096 /* segments at one address, one after the other */

static uint32_t segment_of(const struct blocks *b, int64_t process, int64_t address, int64_t start)
{
    const struct segment *s = b->segments.data;
    size_t low;
    PROF_FIND_FIRST(low, at, b->segments.count,
                    s[at].process != process ? s[at].process > process : s[at].address > address);
    size_t least = low > LOOK_BACK ? low - LOOK_BACK : 0;
    for (size_t i = low; i-- > least && s[i].process == process && s[i].reach > address;)
        if (prof_subtract(address, s[i].address) < s[i].bytes &&
            prof_subtract(s[i].start, SLACK_NS) <= start && s[i].until > start)
            return s[i].item;
    return MEMORY_NONE;
}

/* The program's first thread stands for all: the history shows none. */
static int64_t first_thread(const struct prof_capture *capture, int64_t process)
{
    const struct prof_process *its = prof_process(capture, process);
    const struct prof_thread *all;
    size_t count = prof_threads(capture, &all);
    for (size_t i = 0; its && i < count; i++)
        if (all[i].process == process && all[i].tid == its->pid)
            return all[i].id;
    return 0;
}

enum { PROCESS, DEVICE, START, END, BYTES, BLOCK_ADDRESS, STACK };
static const char select_blocks[] =
    "SELECT process, device, start, \"end\", bytes, address, stack FROM block ORDER BY start, id";

static bool block_in_scope(const struct memory_work *w, const struct memory_item *item,
                           int64_t process, int64_t device)
{
    return prof_scope_place(w->scope, 0, item->thread, process, device) &&
           prof_scope_called(w->scope, item->thread, item->start, 0, PROF_UNKNOWN) &&
           (!w->scope->by_time ||
            (item->start < w->scope->end_ns && item->until > w->scope->begin_ns));
}

static bool add_history_block(void *user, sqlite3_stmt *row)
{
    struct blocks *b = user;
    struct memory_work *w = b->work;
    int64_t start = prof_column_int(row, START), end = prof_column_int(row, END);
    int64_t bytes = prof_column_size(row, BYTES), process = prof_column_id(row, PROCESS);
    const struct prof_device *device = prof_device(w->capture, prof_column_id(row, DEVICE));
    if (start == PROF_UNKNOWN || bytes < 0 || bytes > INT64_MAX / 4)
        return true;
    struct memory_item item = {
        .start = start,
        .until = end == PROF_UNKNOWN ? INT64_MAX
                 : end < start       ? start
                                     : end,
        .bytes = bytes,
        .thread = (uint32_t)first_thread(w->capture, process),
        .inside = segment_of(b, process, prof_column_id(row, BLOCK_ADDRESS), start),
        .kept = end == PROF_UNKNOWN,
        .block = true,
    };
    int64_t where = device ? device->physical : 0;
    if (!block_in_scope(w, &item, process, where))
        return true;
    struct prof_call_site from = {.process = process,
                                  .thread = item.thread,
                                  .call_ns = start,
                                  .stack = prof_column_id(row, STACK)};
    uint32_t node = prof_call_tree_call(&w->tree, &from);
    item.site = node == PROF_NO_GROUP ? node : memory_site_of(w, node, where, WIRE_MEMORY_BLOCK);
    struct memory_item *slot = item.site == PROF_NO_GROUP ? NULL : prof_array_add(&w->items);
    if (!slot)
        return false;
    *slot = item;
    if (item.inside != MEMORY_NONE)
        w->items.data[item.inside].segment = true;
    memory_gather(w, slot, !item.kept && memory_in_one_step(w, item.thread, start, item.until),
                  NULL, NULL);
    return true;
}

enum prof_status memory_blocks(struct memory_work *w, struct prof_error *err)
{
    struct blocks b = {.work = w};
    struct prof_map addresses = {0};
    enum prof_status status = prof_scan(
        w->capture, "SELECT id, address FROM allocation WHERE EXISTS (SELECT 1 FROM block)",
        add_address, &addresses, err);
    if (!status && addresses.count && !list_segments(&b, &addresses))
        status = prof_out_of_memory(err);
    status = status ?: prof_scan(w->capture, select_blocks, add_history_block, &b, err);
    prof_array_free(&b.segments);
    prof_map_free(&addresses);
    return status;
}
