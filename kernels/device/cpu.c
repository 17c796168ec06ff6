/* The CPU backend: buffers are plain memory, a launch runs its groups on a pool of threads and
 * returns when they are done. It is what a workload falls back to without any device, and the
 * "before" of the GPU-over-CPU comparisons, so it computes in the same precision as the devices.
 *
 * Groups are handed out by an atomic counter in portions of 1/8 of a thread's fair share: the
 * portions even out unequal groups at a cost far below a microsecond per launch.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/device/backend.h"
#include "kernels/device/clock.h"
#include "kernels/device/parallel.h"
#include "perfkit/annotate.h"

#define MAX_THREADS 256

struct cpu_dev {
    struct dev base;
    uint32_t threads; /* including the one that launches */
    pthread_t worker[MAX_THREADS];
    uint32_t workers;
    pthread_mutex_t lock;
    pthread_cond_t work_ready, work_done;
    uint64_t round; /* counts launches; a worker sleeps until it changes */
    uint32_t busy;  /* workers that have not finished this round */
    bool closing;
    /* the launch of this round */
    const struct dev_cpu_launch *launch;
    dev_cpu_function function;
    uint32_t portion;
    atomic_uint next_group;
};

static struct cpu_dev *self(struct dev *dev)
{
    return (struct cpu_dev *)dev;
}

/* ---- the pool -------------------------------------------------------------------------------- */

static void run_portions(struct cpu_dev *cpu)
{
    uint32_t groups = cpu->launch->groups;

    for (;;) {
        uint32_t first = atomic_fetch_add(&cpu->next_group, cpu->portion);

        if (first >= groups)
            return;
        cpu->function(cpu->launch, first,
                      groups - first < cpu->portion ? groups : first + cpu->portion);
    }
}

static void *work(void *argument)
{
    struct cpu_dev *cpu = argument;
    uint64_t seen = 0;

    perfkit_thread_name("cpu kernel worker");
    pthread_mutex_lock(&cpu->lock);
    for (;;) {
        while (cpu->round == seen && !cpu->closing)
            pthread_cond_wait(&cpu->work_ready, &cpu->lock);
        if (cpu->closing)
            break;
        seen = cpu->round;
        pthread_mutex_unlock(&cpu->lock);
        run_portions(cpu);
        pthread_mutex_lock(&cpu->lock);
        if (--cpu->busy == 0)
            pthread_cond_signal(&cpu->work_done);
    }
    pthread_mutex_unlock(&cpu->lock);
    return NULL;
}

static void run_launch(struct cpu_dev *cpu, dev_cpu_function function,
                       const struct dev_cpu_launch *launch)
{
    uint32_t share = launch->groups / cpu->threads / 8;

    cpu->function = function;
    cpu->launch = launch;
    cpu->portion = share ? share : 1;
    atomic_store(&cpu->next_group, 0);
    if (cpu->workers == 0) {
        run_portions(cpu);
        return;
    }
    pthread_mutex_lock(&cpu->lock);
    cpu->round++;
    cpu->busy = cpu->workers;
    pthread_cond_broadcast(&cpu->work_ready);
    pthread_mutex_unlock(&cpu->lock);
    run_portions(cpu);
    pthread_mutex_lock(&cpu->lock);
    while (cpu->busy > 0)
        pthread_cond_wait(&cpu->work_done, &cpu->lock);
    pthread_mutex_unlock(&cpu->lock);
}

/* ---- the interface --------------------------------------------------------------------------- */

static int cpu_alloc(struct dev *dev, struct dev_buffer *buffer)
{
    size_t rounded = (buffer->bytes + 63) / 64 * 64;

    buffer->handle = rounded ? aligned_alloc(64, rounded) : NULL; /* 0: beyond a size_t */
    return buffer->handle ? 0 : dev_fail(dev, "dev_alloc", "out of memory");
}

static int cpu_view(struct dev_buffer *view, size_t offset)
{
    view->handle = (char *)view->parent->handle + offset;
    return 0;
}

static void cpu_free(struct dev_buffer *buffer)
{
    if (!buffer->parent)
        free(buffer->handle);
}

static int cpu_alloc_host(struct dev *dev, struct dev_host *host)
{
    host->pointer = malloc(host->bytes);
    return host->pointer ? 0 : dev_fail(dev, "dev_alloc_host", "out of memory");
}

static void cpu_free_host(struct dev_host *host)
{
    free(host->pointer);
}

static int cpu_queue_create(struct dev_queue *queue)
{
    (void)queue;
    return 0;
}

static void cpu_queue_destroy(struct dev_queue *queue)
{
    (void)queue;
}

static int cpu_queue_finish(struct dev_queue *queue)
{
    (void)queue;
    return 0;
}

static int cpu_queue_flush(struct dev_queue *queue)
{
    (void)queue;
    return 0;
}

static int cpu_queue_wait(struct dev_queue *queue, struct dev_event *event)
{
    (void)queue;
    (void)event;
    return 0;
}

static void note_duration(struct dev_event *event, uint64_t start_ns)
{
    if (!event)
        return;
    event->end_ns = now_ns();
    event->duration_ns = event->end_ns - start_ns;
}

static int cpu_write(struct dev_queue *queue, struct dev_buffer *to, size_t offset,
                     const void *from, size_t bytes, enum dev_sync sync, struct dev_event *event)
{
    uint64_t start_ns = now_ns();

    (void)queue;
    (void)sync;
    memcpy((char *)to->handle + offset, from, bytes);
    note_duration(event, start_ns);
    return 0;
}

static int cpu_read(struct dev_queue *queue, const struct dev_buffer *from, size_t offset, void *to,
                    size_t bytes, enum dev_sync sync, struct dev_event *event)
{
    uint64_t start_ns = now_ns();

    (void)queue;
    (void)sync;
    memcpy(to, (const char *)from->handle + offset, bytes);
    note_duration(event, start_ns);
    return 0;
}

static int cpu_fill(struct dev_queue *queue, struct dev_buffer *to, uint8_t byte,
                    struct dev_event *event)
{
    uint64_t start_ns = now_ns();

    (void)queue;
    memset(to->handle, byte, to->bytes);
    note_duration(event, start_ns);
    return 0;
}

static int cpu_copy(struct dev_queue *queue, const struct dev_buffer *from, size_t from_offset,
                    struct dev_buffer *to, size_t to_offset, size_t bytes, struct dev_event *event)
{
    uint64_t start_ns = now_ns();

    (void)queue;
    memcpy((char *)to->handle + to_offset, (const char *)from->handle + from_offset, bytes);
    note_duration(event, start_ns);
    return 0;
}

static int cpu_mark(struct dev_queue *queue, struct dev_event *event)
{
    (void)queue;
    note_duration(event, now_ns());
    return 0;
}

static int cpu_elapsed_ns(struct dev_event *from, struct dev_event *to, uint64_t *out_ns)
{
    *out_ns = to->end_ns > from->end_ns ? to->end_ns - from->end_ns : 0;
    return 0;
}

/* A library that computes on the host, with no stream. */
static int cpu_call(struct dev_queue *queue, int (*call)(void *stream, void *context),
                    void *context, struct dev_event *event)
{
    uint64_t start_ns = now_ns();
    int result = call(NULL, context);

    (void)queue;
    note_duration(event, start_ns);
    return result;
}

static int cpu_kernel(struct dev *dev, const struct dev_module *module, struct dev_kernel *kernel)
{
    for (const struct dev_cpu_kernel *row = module->cpu; row && row->name; row++) {
        if (strcmp(row->name, kernel->name) == 0) {
            kernel->cpu = row->function;
            return 0;
        }
    }
    return dev_fail(dev, kernel->name, "no such CPU kernel in %s", module->name);
}

static void cpu_kernel_free(struct dev_kernel *kernel)
{
    (void)kernel;
}

static int cpu_launch(struct dev_queue *queue, struct dev_kernel *kernel, struct dev_grid grid,
                      const struct dev_arg *args, size_t arg_count, struct dev_event *event)
{
    struct cpu_dev *cpu = self(queue->dev);
    struct dev_arg copied[DEV_MAX_ARGS];
    struct dev_cpu_launch launch = {
        .groups = grid.groups, .group_items = grid.group_items, .threads = cpu->threads};
    uint64_t start_ns = now_ns();

    memcpy(copied, args, arg_count * sizeof args[0]);
    for (size_t i = 0; i < arg_count; i++) {
        switch (args[i].kind) {
        case DEV_ARG_BUFFER:
            launch.arg[i] = args[i].value.buffer->handle;
            break;
        case DEV_ARG_U32:
            launch.arg[i] = &copied[i].value.u32;
            break;
        case DEV_ARG_F32:
            launch.arg[i] = &copied[i].value.f32;
            break;
        case DEV_ARG_LOCAL:
            break;
        }
    }
    run_launch(cpu, kernel->cpu, &launch);
    note_duration(event, start_ns);
    return 0;
}

static int cpu_event_wait(struct dev_event *event)
{
    (void)event;
    return 0;
}

static int cpu_event_duration_ns(struct dev_event *event, uint64_t *out_ns)
{
    *out_ns = event->duration_ns;
    return 0;
}

static void cpu_event_release(struct dev_event *event)
{
    (void)event;
}

/* ---- opening --------------------------------------------------------------------------------- */

static void cpu_close(struct dev *dev)
{
    struct cpu_dev *cpu = self(dev);

    pthread_mutex_lock(&cpu->lock);
    cpu->closing = true;
    pthread_cond_broadcast(&cpu->work_ready);
    pthread_mutex_unlock(&cpu->lock);
    for (uint32_t i = 0; i < cpu->workers; i++)
        pthread_join(cpu->worker[i], NULL);
    pthread_cond_destroy(&cpu->work_done);
    pthread_cond_destroy(&cpu->work_ready);
    pthread_mutex_destroy(&cpu->lock);
    free(cpu);
}

static const struct dev_ops cpu_ops = {
    .close = cpu_close,
    .alloc = cpu_alloc,
    .view = cpu_view,
    .free = cpu_free,
    .alloc_host = cpu_alloc_host,
    .free_host = cpu_free_host,
    .queue_create = cpu_queue_create,
    .queue_destroy = cpu_queue_destroy,
    .queue_finish = cpu_queue_finish,
    .queue_flush = cpu_queue_flush,
    .queue_wait = cpu_queue_wait,
    .write = cpu_write,
    .read = cpu_read,
    .fill = cpu_fill,
    .copy = cpu_copy,
    .mark = cpu_mark,
    .elapsed_ns = cpu_elapsed_ns,
    .call = cpu_call,
    .kernel = cpu_kernel,
    .kernel_free = cpu_kernel_free,
    .launch = cpu_launch,
    .event_wait = cpu_event_wait,
    .event_duration_ns = cpu_event_duration_ns,
    .event_release = cpu_event_release,
};

static void read_cpu_name(char *name, size_t bytes)
{
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[256];
    const char *colon;

    snprintf(name, bytes, "CPU");
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, "model name", 10) == 0 && (colon = strchr(line, ':')) != NULL) {
            line[strcspn(line, "\n")] = '\0';
            snprintf(name, bytes, "%s", colon + 2);
            break;
        }
    }
    if (file)
        fclose(file);
}

/* The last level of cache. sysconf adds up those of all sockets and virtual ones. */
static size_t read_cache_bytes(void)
{
    size_t kilobytes = 0;
    FILE *in = fopen("/sys/devices/system/cpu/cpu0/cache/index3/size", "re");

    if (in && fscanf(in, "%zuK", &kilobytes) != 1)
        kilobytes = 0;
    if (in)
        fclose(in);
    return kilobytes << 10;
}

struct dev *dev_open_cpu(uint32_t threads, char *why, size_t why_bytes)
{
    struct cpu_dev *cpu = calloc(1, sizeof *cpu);
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    struct dev_info *info;

    if (!cpu) {
        snprintf(why, why_bytes, "out of memory");
        return NULL;
    }
    if (threads == 0)
        threads = parallel_cores();
    cpu->threads = threads > MAX_THREADS ? MAX_THREADS : threads;
    cpu->base.ops = &cpu_ops;
    pthread_mutex_init(&cpu->lock, NULL);
    pthread_cond_init(&cpu->work_ready, NULL);
    pthread_cond_init(&cpu->work_done, NULL);
    while (cpu->workers + 1 < cpu->threads &&
           pthread_create(&cpu->worker[cpu->workers], NULL, work, cpu) == 0)
        cpu->workers++;
    cpu->threads = cpu->workers + 1;
    info = &cpu->base.info;
    info->backend = DEV_CPU;
    info->is_cpu = true;
    read_cpu_name(info->name, sizeof info->name);
    snprintf(info->platform, sizeof info->platform, "%u thread%s", cpu->threads,
             cpu->threads == 1 ? "" : "s");
    info->compute_units = cpu->threads;
    info->max_group_items = 4096;
    info->local_bytes = 64 * 1024;
    info->global_bytes = pages > 0 && page_bytes > 0 ? (size_t)pages * (size_t)page_bytes : 0;
    info->cache_bytes = read_cache_bytes();
    return &cpu->base;
}
