/* By how much recording may have delayed the host, where that was neither measured nor estimated
 * from what this machine takes: events counted x what recording one costs on the machines that were
 * looked at (H200: a launch 0.9 to 3 us, PoCL: 0.3 us, with a stack up to 8; PyTorch's naming of an
 * operator 1.5 to 5 us, XLA's of a thunk or module 1 to 6). The range is wide: it is there to keep
 * a report from calling critical what recording made. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/rules/judge.h"
#include "libprof/gpu/names.h"

/* What recording one adds, ns, at least and at most, and what it takes without. */
struct event_price {
    double least, most, bare;
};
static const struct event_price cuda_call_price = {800, 3000, 2200},
                                opencl_call_price = {150, 600, 500}, stack_price = {500, 5000, 0},
                                range_price = {50, 300, 0}, operator_price = {1500, 5000, 1200},
                                xla_price = {1000, 6000, 0};

/* And an operator's launch: Python, and PyTorch's way to it. The three prices together are the
 * minimum for a launch of 34 PyTorch programs that are limited by the host without perfkit, too. */
#define OPERATOR_CALL_NS 4800

/* Where in the range the truth is likely to be: of 30 PyTorch programs whose host was behind, with
 * and without perfkit on an H200, the middle half was at 0.38 to 1.04 of it, the median at 0.73. */
#define LIKELY 0.75

static void add_events(struct prof_recording_delay *sum, double count,
                       const struct event_price *price)
{
    sum->least_ns += count * price->least;
    sum->most_ns += count * price->most;
    sum->host_ns += count * price->bare;
}

double prof_recorded_call_ns(const struct prof_judge *judge)
{
    const struct event_price *call = prof_is_cuda(judge) ? &cuda_call_price : &opencl_call_price;
    double stack = judge->has_stacks ? 0.5 * (stack_price.least + stack_price.most) : 0;
    return 0.5 * (call->least + call->most) + stack;
}

/* On the device, by calls of their own. */
static double count_own_launches(const struct prof_facts *f, uint32_t device)
{
    double count = 0;
    for (size_t i = 0; i < f->shapes.count; i++)
        if (f->shapes.data[i].device == device && !f->shapes.data[i].in_graph)
            count += (double)f->shapes.data[i].count;
    return count;
}

/* Of what is launched on the device; operations stand for their calls. */
static double count_recorded_calls(const struct prof_facts *f, uint32_t device)
{
    static const unsigned launching = 1u << WIRE_CLASS_LAUNCH | 1u << WIRE_CLASS_TRANSFER |
                                      1u << WIRE_CLASS_MEMSET | 1u << WIRE_CLASS_GRAPH_LAUNCH;
    double count = count_own_launches(f, device);
    for (int class = 0; class < WIRE_CLASSES; class ++)
        if (!(launching & 1u << class))
            count += (double)f->devices.data[device].calls[class].count;
    return count;
}

/* The frameworks make the text of a range, and more, only where a profiler listens. */
static const struct event_price *price_of_range(const struct prof_facts *f, uint32_t group)
{
    const char *text = f->range_texts.list.data[group];
    bool xla = text && (!strncmp(text, "Thunk:#", 7) || !strncmp(text, "XlaModule:#", 11));
    return f->is_operator[group] ? &operator_price : xla ? &xla_price : &range_price;
}

/* Of threads that launch on the device. Returns how many are of operators. */
static double add_recorded_ranges(struct prof_facts *f, uint32_t device,
                                  struct prof_recording_delay *sum)
{
    const struct prof_intervals *host = &f->phase->host;
    int64_t begin = host->count ? host->data[0].begin : 0;
    int64_t end = host->count ? host->data[host->count - 1].end : 0;
    uint64_t key, launches;
    size_t at = 0;
    double operators = 0;
    while (prof_map_next(&f->launchers, &at, &key, &launches)) {
        const struct prof_range_thread *of =
            (uint32_t)key == device ? prof_range_thread(&f->ranges, (int64_t)(key >> 32)) : NULL;
        for (size_t i = 0; of && i < of->lanes.count; i++) {
            const struct prof_range_lane *lane = &of->lanes.data[i];
            const struct prof_range_node *nodes = f->ranges.nodes.data;
            size_t k;
            PROF_FIND_FIRST(k, at_node, lane->count, nodes[lane->nodes[at_node]].begin >= begin);
            for (; k < lane->count && nodes[lane->nodes[k]].begin < end; k++) {
                const struct prof_range_node *node = &nodes[lane->nodes[k]];
                if (!prof_facts_called(f, node->begin))
                    continue;
                add_events(sum, 1, price_of_range(f, node->group));
                sum->events++;
                operators += f->is_operator[node->group];
            }
        }
    }
    sum->operators = operators > 0;
    return operators;
}

void prof_recorded_events(const struct prof_facts *facts, uint32_t device, bool stacks,
                          struct prof_recording_delay *sum)
{
    /* Searching moves a lane's hint only: the facts stay what they are. */
    struct prof_facts *f = (struct prof_facts *)(uintptr_t)facts;
    double calls = count_recorded_calls(f, device);
    const struct prof_device *of = f->devices.data[device].device;
    bool cuda = of && of->api && !strcmp(of->api, "cuda");
    *sum = (struct prof_recording_delay){.events = calls};
    add_events(sum, calls, cuda ? &cuda_call_price : &opencl_call_price);
    if (stacks)
        add_events(sum, calls, &stack_price);
    double operators = add_recorded_ranges(f, device, sum);
    sum->host_ns += fmin(count_own_launches(f, device), operators) * OPERATOR_CALL_NS;
}

void prof_recorded_on(const struct prof_judge *judge, uint32_t device,
                      struct prof_recording_delay *sum)
{
    const struct prof_facts *f = judge->facts;
    const struct prof_overhead *overhead = &f->phase->overhead;
    double window = (double)prof_facts_window_ns(f), waiting = 0;
    const int64_t *slices = f->devices.data[device].slice_ns;
    *sum = (struct prof_recording_delay){0};
    for (int i = PROF_SLICE_SYNC; i <= PROF_SLICE_HOST; i++)
        waiting += (double)slices[i];
    if (overhead->source != PROF_OVERHEAD_UNKNOWN && !overhead->in_part) {
        sum->least_ns = fmin(fmax(window * (1 - 1 / overhead->low), 0), waiting);
        sum->most_ns = fmin(fmax(window * (1 - 1 / overhead->high), 0), waiting);
        sum->likely_ns = 0.5 * (sum->least_ns + sum->most_ns);
        return;
    }
    prof_recorded_events(f, device, judge->has_stacks, sum);
    /* What the host takes for them without recording, and the device does not hide, stays. */
    double stays = fmin(fmax(sum->host_ns - (window - waiting), 0), waiting);
    sum->counted = true;
    sum->most_ns = fmin(sum->most_ns, waiting - stays);
    sum->least_ns = fmin(sum->least_ns, sum->most_ns);
    sum->likely_ns = sum->least_ns + LIKELY * (sum->most_ns - sum->least_ns);
}

/* ---- what it makes of a finding -------------------------------------------------------------- */

/* As good as all. Counted events say less: of 30 programs that were timed without perfkit, too, a
 * quarter had lost more than `most`, up to 1.4 times as much. */
#define ALL_MEASURED 0.99
#define ALL_COUNTED 0.97

bool prof_slice_has_few_events(int slice)
{
    return slice != PROF_SLICE_LAUNCH && slice != PROF_SLICE_HOST;
}

struct prof_made prof_made_by_recording(const struct prof_device_facts *device,
                                        const struct prof_recording_delay *recorded)
{
    struct prof_made made = {0};
    double in_calls = 0;
    for (int i = PROF_SLICE_SYNC; i <= PROF_SLICE_HOST; i++) {
        made.all_ns += (double)device->slice_ns[i];
        in_calls += prof_slice_has_few_events(i) ? (double)device->slice_ns[i] : 0;
    }
    if (made.all_ns > 0) {
        double between = made.all_ns - in_calls, beyond = recorded->likely_ns - between;
        made.between = between > 0 ? fmin(recorded->likely_ns / between, 1) : 0;
        made.in_calls = in_calls > 0 ? fmin(fmax(beyond, 0) / in_calls, 1) : 0;
        made.least = fmin(recorded->least_ns / made.all_ns, 1);
        made.likely = fmin(recorded->likely_ns / made.all_ns, 1);
        made.most = fmin(recorded->most_ns / made.all_ns, 1);
        made.all = made.most >= (recorded->counted ? ALL_COUNTED : ALL_MEASURED);
    }
    return made;
}

/* What the recording overhead leaves of a bound; see prof_finding.net_min_ns. Which part of the
 * payment the bound leaves out, where it is less, is not known. */
void prof_set_net_bound(struct prof_finding *finding, int64_t paid, int64_t waiting,
                        const struct prof_made *made)
{
    int64_t bound = finding->bound_ns, busy = paid - waiting;
    int64_t own = prof_min(waiting, bound), own_least = bound > busy ? bound - busy : 0;
    if (own <= 0)
        return;
    finding->net_min_ns = bound - (int64_t)fmin((double)own, made->most * made->all_ns);
    finding->net_max_ns =
        bound - (int64_t)fmax(made->least * made->all_ns - (made->all_ns - (double)own_least), 0);
}

/* The severity is that of the program, not of its recording: it leaves out the part of the waiting
 * that recording is likely to have made, and all of it where it may have made all. */
void prof_leave_recording_out(struct prof_draft *draft, int64_t waiting, int64_t in_calls,
                              const struct prof_made *made)
{
    struct prof_finding *finding = &draft->finding;
    int64_t bound = finding->bound_ns, own = prof_min(waiting, bound);
    if (own <= 0 || made->most <= 0)
        return;
    double likely =
        made->between + (made->in_calls - made->between) * (double)in_calls / (double)waiting;
    double left = 1 - (made->all ? 1 : likely) * (double)own / (double)bound;
    double before = (double)finding->typical_phase_ns;
    double phase = fmax(before - made->likely * made->all_ns, before * left); /* no larger share */
    finding->typical_ns = (int64_t)((double)finding->typical_ns * left);
    if (!made->all)
        finding->typical_phase_ns = (int64_t)fmax(phase, (double)finding->typical_ns);
    else if (2 * own > bound)
        prof_say(draft, " Recording may have made all of that time.");
}
