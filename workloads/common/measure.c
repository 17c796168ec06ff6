/* Sessions and measurements; see measure.h. */
#include "workloads/common/measure.h"

#include <math.h>
#include <stdlib.h>

#include "perfkit/annotate.h"

int session_open(struct session *session, struct dev *dev)
{
    *session = (struct session){.dev = dev};
    return dev_queue_create(dev, &session->queue);
}

static void release_commands(struct session *session)
{
    for (size_t i = 0; i < session->command_count; i++)
        dev_event_release(session->commands[i].event);
    session->command_count = 0;
}

void session_close(struct session *session)
{
    release_commands(session);
    free(session->commands);
    dev_queue_destroy(session->queue);
    *session = (struct session){0};
}

/* Where the next command's event goes: *out, NULL while recording or untimed. -1 when memory ran
 * out, which fails the command: later ones may have to wait for its event. */
static int next_event(struct session *session, enum command_kind kind, struct dev_event ***out)
{
    *out = NULL;
    if (session->recording || session->untimed)
        return 0;
    if (session->command_count == session->command_capacity) {
        size_t capacity = session->command_capacity ? 2 * session->command_capacity : 64;
        void *commands = realloc(session->commands, capacity * sizeof session->commands[0]);

        if (!commands)
            return dev_fail(session->dev, "events", "out of host memory");
        session->commands = commands;
        session->command_capacity = capacity;
    }
    session->commands[session->command_count] = (struct timed_command){.kind = kind};
    *out = &session->commands[session->command_count++].event;
    return 0;
}

/* Opens the declaration of one launch and counts it. */
static void work_begin(struct session *session, const struct work *work)
{
    if (session->recording)
        return;
    perfkit_work_push(work->label, work->flop, work->bytes_read, work->bytes_written);
    session->tally.launches++;
    session->tally.flop += work->flop;
    session->tally.bytes_read += work->bytes_read;
    session->tally.bytes_written += work->bytes_written;
}

static void work_end(const struct session *session)
{
    if (!session->recording)
        perfkit_work_pop();
}

int session_launch(struct session *session, struct dev_queue *queue, struct dev_kernel *kernel,
                   struct dev_grid grid, const struct dev_arg *args, size_t arg_count,
                   const struct work *work)
{
    struct dev_event **event;
    int result;

    if (next_event(session, COMMAND_KERNEL, &event) != 0)
        return -1;
    work_begin(session, work);
    result = dev_launch(queue, kernel, grid, args, arg_count, event);
    work_end(session);
    return result;
}

int session_call(struct session *session, struct dev_queue *queue,
                 int (*call)(void *stream, void *context), void *context, const struct work *work)
{
    struct dev_event **event;
    int result;

    if (next_event(session, COMMAND_KERNEL, &event) != 0)
        return -1;
    work_begin(session, work);
    result = dev_call(queue, call, context, event);
    work_end(session);
    return result;
}

int session_graph_begin(struct session *session, struct dev_queue *queue)
{
    int result = dev_graph_begin(queue);

    session->recording = result == 0;
    return result;
}

int session_graph_end(struct session *session, struct dev_queue *queue, struct dev_graph **out)
{
    session->recording = false;
    return dev_graph_end(queue, out);
}

int session_graph_launch(struct session *session, struct dev_queue *queue, struct dev_graph *graph,
                         const struct work *work)
{
    struct dev_event **event;
    int result;

    if (next_event(session, COMMAND_KERNEL, &event) != 0)
        return -1;
    work_begin(session, work);
    result = dev_graph_launch(queue, graph, event);
    work_end(session);
    return result;
}

int session_clear(struct session *session, struct dev_queue *queue, struct dev_buffer *buffer)
{
    struct dev_event **event;

    if (next_event(session, COMMAND_KERNEL, &event) != 0)
        return -1;
    session->tally.launches += !session->recording;
    return dev_fill(queue, buffer, 0, event);
}

static int next_transfer(struct session *session, size_t bytes, struct dev_event ***event)
{
    if (!session->recording) {
        session->tally.transfers++;
        session->tally.transfer_bytes += bytes;
    }
    return next_event(session, COMMAND_TRANSFER, event);
}

int session_write(struct session *session, struct dev_queue *queue, struct dev_buffer *to,
                  const void *from, size_t bytes, enum dev_sync sync)
{
    struct dev_event **event;

    if (next_transfer(session, bytes, &event) != 0)
        return -1;
    return dev_write(queue, to, 0, from, bytes, sync, event);
}

int session_read(struct session *session, struct dev_queue *queue, const struct dev_buffer *from,
                 void *to, size_t bytes, enum dev_sync sync)
{
    struct dev_event **event;

    if (next_transfer(session, bytes, &event) != 0)
        return -1;
    return dev_read(queue, from, 0, to, bytes, sync, event);
}

int session_alloc(struct session *session, size_t bytes, struct dev_buffer **out)
{
    session->tally.allocations++;
    return dev_alloc(session->dev, bytes, out);
}

struct dev_event *session_last_event(const struct session *session)
{
    return session->command_count ? session->commands[session->command_count - 1].event : NULL;
}

/* Sums the device times of the finished iteration by kind. */
static int collect(struct session *session, double *kernel_ns, double *transfer_ns)
{
    *kernel_ns = *transfer_ns = 0;
    for (size_t i = 0; i < session->command_count; i++) {
        uint64_t ns = 0;

        if (!session->commands[i].event)
            continue;
        if (dev_event_duration_ns(session->commands[i].event, &ns) != 0)
            return -1;
        if (session->commands[i].kind == COMMAND_KERNEL)
            *kernel_ns += (double)ns;
        else
            *transfer_ns += (double)ns;
    }
    return 0;
}

/* The step of a subject that is timed as a whole. */
static int step_between_marks(struct session *session, struct subject *subject, double *kernel_ns,
                              double *host_ns)
{
    struct dev_event *before = NULL, *after = NULL;
    bool untimed = session->untimed;
    uint64_t ns = 0, start_ns;
    int result = dev_mark(session->queue, &before);

    session->untimed = true;
    start_ns = now_ns();
    if (result == 0)
        result = subject->step(subject->context);
    *host_ns = (double)(now_ns() - start_ns);
    session->untimed = untimed;
    if (result == 0)
        result = dev_mark(session->queue, &after);
    if (dev_queue_finish(session->queue) != 0)
        result = -1;
    if (result == 0)
        result = dev_elapsed_ns(before, after, &ns);
    dev_event_release(before);
    dev_event_release(after);
    *kernel_ns = (double)ns;
    return result;
}

/* The times of one iteration. */
enum sample { KERNEL, TRANSFER, HOST, WALL, SAMPLES };

static int run_once(struct session *session, struct subject *subject, const char *phase,
                    double sample[SAMPLES])
{
    uint64_t start_ns;
    int result;

    perfkit_range_push(subject->name);
    perfkit_range_push(phase);
    session->tally = (struct tally){0};
    release_commands(session);
    start_ns = now_ns();
    if (subject->whole) {
        result = step_between_marks(session, subject, &sample[KERNEL], &sample[HOST]);
    } else {
        result = subject->step(subject->context);
        sample[HOST] = (double)(now_ns() - start_ns);
        if (dev_queue_finish(session->queue) != 0)
            result = -1;
    }
    sample[WALL] = (double)(now_ns() - start_ns);
    perfkit_range_pop();
    perfkit_range_pop();
    if (result == 0 && !subject->whole)
        result = collect(session, &sample[KERNEL], &sample[TRANSFER]);
    subject->result.tally = session->tally;
    release_commands(session);
    return result;
}

int measure(struct session *session, struct subject *subjects, size_t count, uint32_t iterations,
            uint32_t warmup)
{
    double *samples = calloc(count * SAMPLES * iterations, sizeof samples[0]);
    double one[SAMPLES] = {0};
    int result = samples ? 0 : dev_fail(session->dev, "samples", "out of host memory");

    for (uint32_t i = 0; i < warmup && result == 0; i++)
        for (size_t s = 0; s < count && result == 0; s++)
            result = run_once(session, &subjects[s], "warmup", one);
    for (uint32_t i = 0; i < iterations && result == 0; i++) {
        for (size_t s = 0; s < count && result == 0; s++) {
            result = run_once(session, &subjects[s], "step", one);
            for (size_t kind = 0; kind < SAMPLES; kind++)
                samples[(s * SAMPLES + kind) * iterations + i] = one[kind];
        }
    }
    for (size_t s = 0; s < count && result == 0; s++) {
        struct measurement *m = &subjects[s].result;
        double *of = samples + s * SAMPLES * iterations;

        m->kernel = stats_of(of + KERNEL * iterations, iterations);
        m->transfer = stats_of(of + TRANSFER * iterations,
                               m->tally.transfers && !subjects[s].whole ? iterations : 0);
        m->host = stats_of(of + HOST * iterations, iterations);
        m->wall = stats_of(of + WALL * iterations, iterations);
    }
    free(samples);
    return result;
}

bool check_passed(const struct check *check)
{
    return check->error <= check->tolerance;
}

double relative_error(const float *out, const double *reference, size_t count)
{
    double difference = 0, norm = 0;

    for (size_t i = 0; i < count; i++) {
        double d = (double)out[i] - reference[i];

        difference += d * d;
        norm += reference[i] * reference[i];
    }
    if (norm == 0)
        return difference == 0 ? 0 : INFINITY;
    return sqrt(difference / norm);
}

void check_note(struct check *check, double error)
{
    if (!check->done || isnan(error) || error > check->error)
        check->error = error;
    check->done = true;
}
