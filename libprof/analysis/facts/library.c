/* What a library, XLA or PyTorch, does for itself in the program's process: it compiles, which NVTX
 * ranges show, and may try kernels meanwhile on threads of its own; and XLA copies on threads that
 * launch nothing. Without it such time looks like the program's own work. */
#include <string.h>

#include "libprof/analysis/capture.h"
#include "libprof/analysis/facts/facts.h"
#include "libprof/base/saturate.h"
#include "libprof/gpu/names.h"

/* XLA's range around all that it does to compile one function (TraceMe "XlaCompile:#module=...").
 */
static bool is_xla_range(const char *name)
{
    static const char xla[] = "XlaCompile:";
    return name && !strncmp(name, xla, sizeof xla - 1);
}

/* Ours around what torch.compile does (collectors/nvtx/pytorch.c). */
static bool is_torch_range(struct prof_capture *capture, const struct prof_event_row *row,
                           const char *name)
{
    if (!name || strcmp(name, "torch.compile") != 0)
        return false;
    const char *domain = prof_string(capture, row->domain, NULL);
    return domain && !strcmp(domain, "PyTorch");
}

bool prof_facts_note_range(struct prof_facts *f, const struct prof_event_row *row)
{
    const struct prof_thread *thread = prof_thread(f->capture, row->thread);
    const char *name = prof_string(f->capture, row->name, NULL);
    bool xla = is_xla_range(name);
    if (!thread || row->start_ns < 0 || row->start_ns >= f->end_ns || row->duration_ns <= 0 ||
        (!xla && !is_torch_range(f->capture, row, name)))
        return true;
    struct prof_compile one = {.begin = row->start_ns,
                               .end =
                                   prof_min(prof_add(row->start_ns, row->duration_ns), f->end_ns),
                               .process = thread->process,
                               .thread = (uint32_t)row->thread,
                               .xla = xla};
    f->total_ns = prof_add(f->total_ns, one.end - one.begin);
    return prof_array_push(&f->compiles, one);
}

PROF_ORDER(compiles_by_thread, struct prof_compile, PROF_ASCENDING(process), PROF_ASCENDING(thread),
           PROF_ASCENDING(begin))

/* Compiling within compiling is one. Returns how many are left of those in order. */
static size_t join_stretches(struct prof_compile *all, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        const struct prof_compile one = all[i];
        struct prof_compile *last = kept ? &all[kept - 1] : NULL;
        if (!last || last->process != one.process || last->thread != one.thread ||
            one.begin > last->end)
            all[kept++] = one;
        else {
            last->end = one.end > last->end ? one.end : last->end;
            last->xla |= one.xla;
        }
    }
    return kept;
}

static bool join_compiles(struct prof_facts *f)
{
    prof_array_sort(&f->compiles, compiles_by_thread);
    f->compiles.count = join_stretches(f->compiles.data, f->compiles.count);
    for (size_t i = 0; i < f->compiles.count; i++) {
        struct prof_compile one = f->compiles.data[i];
        one.thread = 0;
        if (!prof_array_push(&f->process_compiles, one))
            return false;
    }
    prof_array_sort(&f->process_compiles, compiles_by_thread);
    f->process_compiles.count = join_stretches(f->process_compiles.data, f->process_compiles.count);
    return true;
}

/* Keys of processes in the map, beside those of threads. */
#define PROCESS (UINT64_C(1) << 63)

/* Processes in which XLA works: it compiles there, or kernels of its making are launched. A thread
 * of any other that only copies may as well be the program's own. */
static bool find_xla_processes(const struct prof_facts *f, struct prof_map *processes)
{
    bool ok = true;
    for (size_t i = 0; ok && i < f->compiles.count; i++)
        ok = !f->compiles.data[i].xla ||
             prof_map_put(processes, (uint64_t)f->compiles.data[i].process, 1);
    for (size_t i = 0; ok && i < f->places.count; i++) {
        const struct prof_op_place *place = &f->places.data[i];
        const struct prof_shape *shape = &f->shapes.data[place->shape];
        const struct prof_thread *thread = prof_thread(f->capture, place->thread);
        if (thread && shape->config && prof_name_library(shape->config->name) == PROF_LIBRARY_XLA)
            ok = prof_map_put(processes, (uint64_t)thread->process, 1);
    }
    return ok;
}

static bool find_launching(struct prof_facts *f, const struct prof_map *xla)
{
    uint32_t last = 0;
    for (enum prof_op_kind kind = PROF_OP_KERNEL; kind <= PROF_OP_GRAPH; kind++) {
        for (size_t i = 0; i < f->ops[kind].count; i++) {
            struct prof_op op = prof_facts_op(f, kind, i);
            if (!prof_is_kernel(&f->shapes.data[op.shape]) || op.thread == last || !op.thread ||
                op.call == PROF_UNKNOWN || prof_map_get(&f->launching, op.thread) ||
                prof_facts_compile_at(f, op.thread, op.call))
                continue;
            const struct prof_thread *thread = prof_thread(f->capture, op.thread);
            last = op.thread;
            if (!prof_map_put(&f->launching, op.thread, 1) ||
                (thread && prof_map_get(xla, (uint64_t)thread->process) &&
                 !prof_map_put(&f->launching, PROCESS | (uint64_t)thread->process, 1)))
                return false;
        }
    }
    return true;
}

bool prof_facts_library(struct prof_facts *f)
{
    struct prof_map xla = {0};
    bool ok = (!f->compiles.count || join_compiles(f)) && find_xla_processes(f, &xla) &&
              find_launching(f, &xla);
    prof_map_free(&xla);
    return ok;
}

bool prof_facts_only_copies(const struct prof_facts *f, uint32_t thread)
{
    const struct prof_thread *row = thread ? prof_thread(f->capture, thread) : NULL;
    return row && !prof_map_get(&f->launching, thread) &&
           prof_map_get(&f->launching, PROCESS | (uint64_t)row->process);
}

bool prof_facts_is_argument(const struct prof_facts *f, const struct prof_shape *shape,
                            uint32_t thread)
{
    return prof_is_copy(shape) && shape->copy_kind == WIRE_COPY_HTOD && shape->bytes >= 0 &&
           shape->bytes <= PROF_SCALAR_BYTES && prof_facts_only_copies(f, thread);
}

const struct prof_compile *prof_facts_compile_before(const struct prof_facts *f, uint32_t thread,
                                                     int64_t time)
{
    const struct prof_thread *row =
        f->compiles.count && thread ? prof_thread(f->capture, thread) : NULL;
    bool own = row && prof_map_get(&f->launching, thread);
    const struct prof_compile *all = own ? f->compiles.data : f->process_compiles.data;
    size_t low, count = own ? f->compiles.count : f->process_compiles.count;
    if (!row)
        return NULL;
    struct prof_compile last = {.process = row->process, .thread = own ? thread : 0, .begin = time};
    PROF_FIND_FIRST(low, at, count, compiles_by_thread(&all[at], &last) > 0);
    return low && all[low - 1].process == row->process && all[low - 1].thread == last.thread
               ? &all[low - 1]
               : NULL;
}

const struct prof_compile *prof_facts_compile_at(const struct prof_facts *f, uint32_t thread,
                                                 int64_t time)
{
    const struct prof_compile *last = prof_facts_compile_before(f, thread, time);
    return last && time < last->end ? last : NULL;
}
