/* Rules about several ranks: one that holds the others up, time in collectives that nothing covers,
 * work that is dealt unevenly, a way between ranks that is slower than the others, and a rank that
 * does something else. They look at prof_ranks, whose times are of each rank's own iterations. */
#include <math.h>
#include <stdio.h>

#include "libprof/analysis/rules/judge.h"
#include "libprof/base/saturate.h"

#define OFTEN 0.5      /* of the collectives: a rank that is last so often is the one */
#define SLOW_LINK 0.7  /* of what the others reach */
#define LINK_SAMPLES 3 /* operations that a bandwidth rests on, at least */

static bool several(const struct prof_judge *judge)
{
    return judge->ranks && judge->ranks->count > 1;
}

/* The rank of the judge's device: the first, where it serves several. */
static const struct prof_rank_row *rank_here(const struct prof_judge *judge)
{
    for (size_t i = 0; judge->ranks && i < judge->ranks->count; i++) {
        const struct prof_rank_row *row = &judge->ranks->rows[i];
        const struct prof_device *device = prof_device(judge->facts->capture, row->device);
        if (device && device->physical == judge->device->id)
            return row;
    }
    return NULL;
}

/* "Rank 3", or "Process 4711" where it has none. */
static struct prof_text words_for(const struct prof_rank_row *row)
{
    struct prof_text text;
    snprintf(text.text, sizeof text.text, row->rank == PROF_UNKNOWN ? "Process %lld" : "Rank %lld",
             (long long)(row->rank == PROF_UNKNOWN ? row->pid : row->rank));
    return text;
}

static bool is_straggler(const struct prof_rank_row *row)
{
    return row->last_ns > 0 && (double)row->last_count >= OFTEN * (double)row->analysed;
}

static bool any_straggler(const struct prof_judge *judge)
{
    bool any = false;
    for (size_t i = 0; i < judge->ranks->count; i++)
        any |= is_straggler(&judge->ranks->rows[i]);
    return any;
}

/* Of what the rank's own window lost, the part that the judged one has. */
static int64_t scale_to_window(const struct prof_judge *judge, const struct prof_rank_row *row,
                               int64_t ns)
{
    int64_t window = prof_facts_window_ns(judge->facts);
    if (row->window_ns <= 0 || window >= row->window_ns)
        return ns;
    return (int64_t)((double)ns * ((double)window / (double)row->window_ns));
}

/* ---- a straggler ----------------------------------------------------------------------------- */

static struct prof_text because_of(const struct prof_rank_row *row, struct prof_short *kernel)
{
    static const char *const words[PROF_CAUSES] = {"of no known cause", "its kernels took longer",
                                                   "its copies took longer",
                                                   "its device waited for the host"};
    struct prof_text text;
    *kernel = prof_short_name(row->slow_kernel);
    snprintf(text.text, sizeof text.text, "%s", words[row->cause]);
    return text;
}

static void place_late(struct prof_judge *judge, struct prof_draft *draft,
                       const struct prof_rank_row *row)
{
    const struct prof_ranks *ranks = judge->ranks;
    for (size_t i = 0; i < ranks->late_count; i++) {
        const struct prof_rank_late *late = &ranks->late[i];
        if (&ranks->rows[late->rank] == row)
            prof_place(judge, draft,
                       &(struct prof_spot){prof_subtract(late->start_ns, late->late_ns),
                                           late->late_ns, 0, 0, 0});
    }
}

static void straggler(struct prof_judge *judge)
{
    static const enum prof_slice states[PROF_CAUSES] = {PROF_SLICE_KERNEL, PROF_SLICE_KERNEL,
                                                        PROF_SLICE_COPY_OTHER, PROF_SLICE_HOST};
    const struct prof_rank_row *row = rank_here(judge);
    struct prof_short kernel;
    if (!row || !is_straggler(row))
        return;
    struct prof_text cause = because_of(row, &kernel);
    bool named = row->cause == PROF_CAUSE_COMPUTE && row->slow_kernel;
    struct prof_draft *draft = prof_found(judge, row->cause == PROF_CAUSE_UNKNOWN ? 0.5 : 0.8);
    prof_numbers(draft, {"last_count", (double)row->last_count},
                 {"collectives", (double)row->analysed}, {"last_ns", (double)row->last_ns},
                 {"caused_ns", (double)row->caused_ns},
                 {"excess_compute_ns", (double)row->excess_ns[PROF_CAUSE_COMPUTE]},
                 {"excess_copy_ns", (double)row->excess_ns[PROF_CAUSE_COPY]},
                 {"excess_host_ns", (double)row->excess_ns[PROF_CAUSE_HOST]});
    prof_claim(judge, draft, "last_in_interval_ns", states[row->cause],
               scale_to_window(judge, row, row->last_ns));
    prof_say(draft,
             "%s came last to {last_count} of {collectives|collective|collectives}, {last_ns} "
             "after the last but one in all: %s%s%s. The others waited {caused_ns} for it, summed.",
             words_for(row).text, cause.text, named ? ", most of all " : "",
             named ? kernel.text : "");
    place_late(judge, draft, row);
}

/* ---- time in collectives --------------------------------------------------------------------- */

static int64_t transfer_exposed(const struct prof_rank_row *row)
{
    int64_t ns = prof_subtract(row->exposed_ns, row->wait_ns);
    return ns > 0 ? ns : 0;
}

/* Reported once, for the rank that has most of it. */
static bool is_most(const struct prof_judge *judge, const struct prof_rank_row *row,
                    int64_t (*value)(const struct prof_rank_row *row))
{
    for (size_t i = 0; i < judge->ranks->count; i++) {
        if (value(&judge->ranks->rows[i]) > value(row))
            return false;
        if (&judge->ranks->rows[i] == row)
            continue;
        if (value(&judge->ranks->rows[i]) == value(row) && &judge->ranks->rows[i] < row)
            return false;
    }
    return true;
}

static void exposed(struct prof_judge *judge)
{
    const struct prof_rank_row *row = rank_here(judge);
    int64_t ns = row ? transfer_exposed(row) : 0;
    if (ns == 0 || !is_most(judge, row, transfer_exposed))
        return;
    struct prof_draft *draft = prof_found(judge, 0.6);
    prof_numbers(draft, {"exposed_ns", (double)row->exposed_ns},
                 {"collective_ns", (double)row->collective_ns},
                 {"exposed_share", row->collective_ns > 0
                                       ? (double)row->exposed_ns / (double)row->collective_ns
                                       : NAN},
                 {"moving_ns", (double)ns}, {"wait_ns", (double)row->wait_ns});
    prof_claim(judge, draft, "moving_in_interval_ns", PROF_SLICE_KERNEL,
               scale_to_window(judge, row, ns));
    prof_say(
        draft,
        "%s is in collectives for {exposed_ns} while no other kernel runs, {exposed_share} of its "
        "collectives' time; for {moving_ns} of it the data moved, else it waited for other ranks.",
        words_for(row).text);
}

static int64_t wait_of(const struct prof_rank_row *row)
{
    return row->wait_ns;
}

static void uneven(struct prof_judge *judge)
{
    const struct prof_rank_row *row = rank_here(judge);
    if (!row || row->wait_ns <= 0 || any_straggler(judge) || !is_most(judge, row, wait_of))
        return;
    struct prof_draft *draft = prof_found(judge, 0.5);
    prof_numbers(draft, {"wait_ns", (double)row->wait_ns}, {"wait_share", row->wait_share});
    prof_number(draft, "imbalance", judge->ranks->imbalance, PROF_NUMBER_SHARE);
    prof_claim(judge, draft, "wait_in_interval_ns", PROF_SLICE_KERNEL,
               scale_to_window(judge, row, row->wait_ns));
    prof_say(draft,
             "Ranks wait for each other, now for one and now for another: %s for {wait_ns}, "
             "{wait_share} of the time; the most compute of a rank is {imbalance} above the mean.",
             words_for(row).text);
    for (size_t i = 0; i < judge->ranks->late_count; i++) {
        const struct prof_rank_late *late = &judge->ranks->late[i];
        prof_place(judge, draft,
                   &(struct prof_spot){prof_subtract(late->start_ns, late->late_ns), late->late_ns,
                                       0, 0, 0});
    }
}

/* ---- without a price ------------------------------------------------------------------------- */

static void slow_link(struct prof_judge *judge)
{
    if (!several(judge) || !judge->ranks->link_count)
        return;
    const struct prof_rank_link *link = &judge->ranks->links[0]; /* the slowest */
    if (!(link->bus_rate < SLOW_LINK * link->usual_rate) || link->count < LINK_SAMPLES)
        return;
    struct prof_draft *draft = prof_found(judge, 0.7);
    prof_numbers(draft, {"bus_rate", link->bus_rate}, {"usual_rate", link->usual_rate},
                 {"usual_share", link->bus_rate / link->usual_rate},
                 {"operations", (double)link->count});
    if (link->to != PROF_UNKNOWN) {
        prof_numbers(draft, {"from_rank", (double)link->from}, {"to_rank", (double)link->to});
        prof_say(draft, "From rank {from_rank} to rank {to_rank}");
    } else {
        prof_numbers(draft, {"ranks", (double)link->ranks});
        prof_say(draft, "Among the {ranks|rank|ranks} of communicator %s",
                 link->has_communicator ? link->communicator_text : "n/a");
    }
    prof_say(draft, " data moves at {bus_rate} of bus bandwidth, {usual_share} of what the others "
                    "reach ({usual_rate}).");
    draft->about_memory = true;
    draft->most = PROF_SEVERITY_WARNING;
}

static void differs(struct prof_judge *judge)
{
    if (!several(judge) || !judge->ranks->difference_count)
        return;
    const struct prof_ranks *ranks = judge->ranks;
    const struct prof_rank_difference *first = &ranks->differences[0];
    if (first->usual_ranks * 2 <= (int64_t)ranks->count)
        return; /* there is no majority */
    static const char *const whats[] = {[PROF_DIFFERS_LAUNCHES] = "launches",
                                        [PROF_DIFFERS_COPIED] = "bytes copied",
                                        [PROF_DIFFERS_COLLECTIVES] = "collectives"};
    struct prof_draft *draft = prof_found(judge, 0.5);
    prof_numbers(
        draft, {"here", (double)first->here}, {"usual", (double)first->usual},
        {"differences", (double)((int64_t)ranks->difference_count + ranks->differences_left_out)});
    prof_say(draft,
             "%s does something other than most: {here} %s of %s, usual are {usual}; "
             "{differences|difference|differences} in all.",
             words_for(&ranks->rows[first->rank]).text, whats[first->kind],
             prof_short_name(first->name).text);
    draft->about_memory = true;
    draft->most = PROF_SEVERITY_INFO;
}

const struct prof_rule prof_rules_ranks[] = {
    {.page =
         {.id = "rank-straggler",
          .title = "A rank that all others wait for",
          .fires = "One rank comes last to half of the collectives or more.",
          .why = "A collective ends when the last rank has come: the whole job runs at its pace.",
          .fix = "Give the rank less work, or look at its clocks, neighbours and "
                 "data loader. The finding names which: less work (uneven batches, "
                 "a longer shard); clocks, temperature and neighbours when the same "
                 "kernels take longer; data loading and processor when its device "
                 "waits for the host.",
          .cuda = "nvidia-smi -q -d PERFORMANCE,CLOCK on its host shows a GPU that "
                  "is throttled; numactl --cpunodebind=N --membind=N binds the "
                  "process near its GPU (nvidia-smi topo -m says which N).",
          .opencl = NULL,
          .pytorch = "DistributedSampler with shards of equal cost; "
                     "DataLoader(num_workers) alike on every rank; "
                     "torch.distributed.barrier() only where it is needed.",
          .bound =
              "How long it came after the last but one, summed: with that all would go on earlier.",
          .limits = "The cause is what its device did longer than the others' (their median) since "
                    "the collective before. Waiting of sends and receives is not known.",
          .needs = "collectives of several ranks that go together in order"},
     .judge = straggler},
    {.page = {.id = "exposed-collectives",
              .title = "Collectives that do not overlap with computation",
              .fires = "The rank that has most of it is in collectives while no other kernel runs, "
                       "its waiting for others left out.",
              .why = "Data moves while the multiprocessors have nothing to compute.",
              .fix = "Start each collective as soon as its data is there, on a stream "
                     "of its own. Larger messages when they are below the link's "
                     "bandwidth, smaller when only the last one is exposed; fewer with "
                     "accumulated gradients; a narrower type.",
              .cuda = "cudaStreamCreateWithPriority(&s, cudaStreamNonBlocking, greatest) "
                      "for NCCL; ncclGroupStart and ncclGroupEnd around small calls; "
                      "symmetric memory (ncclCommWindowRegister).",
              .opencl = NULL,
              .pytorch = "DistributedDataParallel(bucket_cap_mb=25, "
                         "gradient_as_bucket_view=True); `with model.no_sync():` while "
                         "gradients accumulate; "
                         "FSDP(backward_prefetch=BackwardPrefetch.BACKWARD_PRE).",
              .bound = "The exposed time without the waiting.",
              .limits = "What depends on the result cannot be overlapped with it.",
              .needs = "collectives that are seen as kernels or ranges, of several ranks"},
     .judge = exposed},
    {.page =
         {.id = "uneven-ranks",
          .title = "Ranks that wait for each other in turn",
          .fires = "Ranks wait in collectives, and none of them is last half of the time.",
          .why = "Each step takes as long as its slowest rank: what differs from step to step adds "
                 "up on every one of them.",
          .fix = "Distribute the work by cost (lengths, sizes), not by number of "
                 "items. Look for what interrupts one rank at a time: garbage "
                 "collection, checkpoints, logging, other programs.",
          .cuda = NULL,
          .opencl = NULL,
          .pytorch = "Batches by length; gc.disable(), and gc.collect() at the same "
                     "step on every rank.",
          .bound = "The waiting of the rank that waits most.",
          .limits = "Waiting of sends and receives is not known.",
          .needs = "collectives of several ranks that go together in order"},
     .judge = uneven},
    {.page = {.id = "slow-link",
              .title = "A link between ranks that is slower than the others",
              .fires =
                  "Of three operations or more of at least 1 MiB, the bus bandwidth of a "
                  "communicator, or of one rank's sends to another, is below 70 % of the median "
                  "of the others of as many ranks.",
              .why =
                  "All traffic over this link is slower, and a ring or tree runs at the speed of "
                  "its slowest link.",
              .fix = "Check how the devices are connected and which rings NCCL chose. "
                     "Put ranks that communicate much on devices near each other; look "
                     "for a link that has lost lanes.",
              .cuda = "nvidia-smi topo -m and nvidia-smi nvlink -s; NCCL_DEBUG=INFO "
                      "prints the rings.",
              .opencl = NULL,
              .pytorch = "The order of ranks in "
                         "torch.distributed.device_mesh.init_device_mesh.",
              .bound = "None in time: bandwidth.",
              .limits = "Groups of different kinds (within a node, across nodes) are compared when "
                        "they have as many ranks.",
              .needs = "messages with known sizes, of several communicators or pairs"},
     .per_capture = true,
     .judge = slow_link},
    {.page =
         {.id = "rank-differs",
          .title = "A rank that does different work",
          .fires = "Launches of a kernel configuration, bytes copied or collectives differ from "
                   "those of more than half of the ranks. Always info.",
          .why =
              "Ranks of one program mostly do the same: an extra copy, another kernel for another "
              "shape, or logging on one rank is easy to overlook, and all ranks wait for it.",
          .fix = "Look at what this rank does more or less, and remove what is not "
                 "intended. perfkit report --ranks lists each difference; logging, "
                 "checks or copies on one rank belong outside of the iteration.",
          .cuda = NULL,
          .opencl = NULL,
          .pytorch = NULL,
          .bound = "None in time: counts.",
          .limits = "Programs whose ranks have roles (pipeline stages, experts) differ by design.",
          .needs = "several ranks"},
     .per_capture = true,
     .judge = differs},
    {.judge = NULL},
};
