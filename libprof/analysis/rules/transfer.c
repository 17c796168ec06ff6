/* Rules about copies between host and device: their size, their memory, who waits for them. */
#include <math.h>

#include "libprof/analysis/rules/judge.h"
#include "libprof/base/format.h"
#include "libprof/base/saturate.h"
#include "libprof/wire/command.h"
#include "libprof/wire/memory.h"

/* one of the two */
static bool prof_is_link_copy(const struct prof_shape *shape);
static bool prof_is_awaited(const struct prof_shape *shape);
/* Does the host wait for it: by its call, or by a wait that follows it more often than not? */
static int prof_host_memory(const struct prof_shape *shape);
/* What the calls took of their own: one that waits takes as long as what it waits for. */
static int64_t prof_own_call_ns(const struct prof_shape *shape);
static int64_t prof_copies_idle_around(const struct prof_copies *sums);

/* Faster than any bus to a host: PCIe 5.0 x16, 32 GT/s x 16 lanes x 128/130. */
#define BEST_LINK 63.0e9
/* From here on the bytes and not the call take the time of a copy. */
#define BIG_BYTES (1 << 20)

/* Up to here a copy is small, and its time is its start's, less what its bytes take at the best
 * rate. No measured size: which copies are counted must not depend on how long any of them took. */
#define SMALL_BYTES (64 << 10)

/* ---- a number that decides ------------------------------------------------------------------- */

static void scalar_readback(struct prof_judge *judge)
{
    struct prof_copies sums = prof_scalar_readbacks(judge);
    if (!sums.count)
        return;
    struct prof_draft *draft = prof_found(judge, 0.7);
    prof_numbers(draft, {"readbacks", (double)sums.count}, {"limit_bytes", PROF_SCALAR_BYTES});
    prof_copies_claim(judge, draft, &sums, 1);
    prof_copies_claim_around(judge, draft, "idle_around_ns", &sums, true, 1);
    prof_say(draft, "{readbacks|D2H memcpy|D2H memcpys} of at most {limit_bytes}");
    prof_say_per_iteration(judge, draft, "readbacks_per_iteration", "readbacks");
    prof_say(
        draft,
        ", each of which the host waits for before it goes on: the device is idle {idle_around_ns} "
        "around them, and they take {exposed_memcpy_ns} in which no kernel runs.");
    if (!sums.by_library) /* else the waits are in no call that the replay could leave out */
        prof_mend(draft, (struct prof_edit){.shapes = prof_is_scalar_readback});
    prof_places(judge, draft, &sums.spots);
}

/* ---- many small ones ------------------------------------------------------------------------- */

/* Bytes that a copy needs for its transfer to take as long as its start: fixed cost x rate. */
static double half_bytes(const struct prof_judge *judge, double *fixed_ns)
{
    const struct prof_shape *shape;
    double rate = 0;
    *fixed_ns = 0;
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));) {
        if (!prof_is_link_copy(shape) || shape->bytes <= 0 || shape->sum_ns <= 0)
            continue;
        double mean = (double)shape->sum_ns / (double)shape->count;
        if (shape->bytes >= BIG_BYTES && (double)shape->bytes / mean * 1e9 > rate)
            rate = (double)shape->bytes / mean * 1e9;
    }
    if (rate <= 0)
        rate = BEST_LINK / 2;
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));) {
        if (!prof_is_link_copy(shape) || shape->bytes <= 0 || shape->bytes > SMALL_BYTES)
            continue;
        double cost = (double)(shape->sum_ns + prof_own_call_ns(shape)) / (double)shape->count -
                      (double)shape->bytes / rate * 1e9;
        if (cost > 0 && (!*fixed_ns || cost < *fixed_ns))
            *fixed_ns = cost;
    }
    return *fixed_ns > 0 ? *fixed_ns * rate / 1e9 : 32768;
}

/* Does a library copy it, on a thread of its own, for a program that launches on another? */
static bool is_copied_by_library(const struct prof_judge *judge, const struct prof_shape *shape)
{
    return prof_facts_only_copies(judge->facts, shape->longest.thread);
}

static void small_transfers(struct prof_judge *judge)
{
    double fixed_ns, half = half_bytes(judge, &fixed_ns);
    struct prof_copies sums = {0};
    int64_t all = 0, steps = prof_steps(judge);
    const struct prof_shape *shape;
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));) {
        if (!prof_is_link_copy(shape) || prof_is_scalar_readback(shape) ||
            prof_facts_is_argument(judge->facts, shape, shape->longest.thread))
            continue;
        all += shape->count;
        if (shape->bytes >= 0 && shape->bytes <= SMALL_BYTES)
            prof_copies_add(judge, &sums, shape);
    }
    if (sums.packable < 20 || 2 * sums.count < all || sums.packable < 3 * steps ||
        (double)sums.bytes >= half * (double)sums.count)
        return;
    double part = (double)sums.packable / (double)sums.count;
    struct prof_draft *draft = prof_found(judge, 0.8);
    prof_numbers(draft, {"small_memcpys", (double)sums.count}, {"memcpys", (double)all},
                 {"limit_bytes", SMALL_BYTES}, {"packable", (double)sums.packable},
                 {"packable_share", part}, {"mean_bytes", (double)sums.bytes / (double)sums.count},
                 {"worthwhile_bytes", half},
                 {"mean_ns", (double)(sums.sum_ns + sums.call_ns) / (double)sums.count});
    prof_copies_claim(judge, draft, &sums, part);
    prof_copies_claim_around(judge, draft, "idle_around_ns", &sums, true, part);
    prof_say(draft, "{small_memcpys} of {memcpys|memcpy|memcpys} between host and device are "
                    "{limit_bytes} or smaller");
    prof_say_per_iteration(judge, draft, "small_memcpys_per_iteration", "small_memcpys");
    prof_say(draft,
             ": {mean_bytes} and with the call {mean_ns} on average. {packable} come right after "
             "another one ({packable_share} of them), and the device is idle {idle_around_ns} "
             "around those. Below {worthwhile_bytes} the call and not the bytes takes the time.");
    prof_places(judge, draft, &sums.spots);
}

/* ---- memory that must be staged -------------------------------------------------------------- */

/* So near a measured ceiling comes to what the link can do. */
#define MEASURED 1.05

/* The best rate that page-locked memory was seen, measured or can be imagined to reach. */
static double pinned_rate(const struct prof_judge *judge, bool up, const char **source)
{
    const struct prof_ceiling *ceiling =
        prof_ceiling_find(judge->ceilings, judge->device->id,
                          up ? PROF_CEILING_HTOD_PINNED : PROF_CEILING_DTOH_PINNED);
    const struct prof_shape *shape;
    double rate = 0;
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));) {
        if (!prof_is_link_copy(shape) || prof_is_upload(shape) != up || shape->bytes < BIG_BYTES ||
            prof_host_memory(shape) != WIRE_MEMORY_PINNED || shape->min_ns <= 0)
            continue;
        double seen = (double)shape->bytes / (double)shape->min_ns * 1e9;
        rate = seen > rate ? seen : rate;
    }
    if (rate > 0) {
        *source = "as page-locked copies of this capture do";
        return rate;
    }
    bool measured = ceiling && ceiling->measured;
    *source = measured ? "as measured on this device" : "the fastest link there is";
    return measured ? MEASURED * ceiling->value : BEST_LINK;
}

/* Uploads of as many bytes in each iteration: a batch, or what never changes and need not be
 * copied. What a program in Python writes is one word in either case, `.to(device)`. */
static bool comes_again(const struct prof_judge *judge, const struct prof_shape *shape)
{
    int64_t steps = prof_steps(judge);
    return steps > 0 && prof_is_upload(shape) && shape->count >= steps &&
           shape->count % steps == 0 && prof_is_python(judge);
}

/* No host copies its memory on one thread more slowly; what a library takes longer before an upload
 * is other work. */
#define STAGING_RATE 4.0e9

/* Uploads from page-locked memory that a library has filled from pageable memory before, while the
 * device waited: small ones are no data. */
static bool is_staged_upload(const struct prof_judge *judge, const struct prof_shape *shape)
{
    return prof_is_upload(shape) && prof_host_memory(shape) == WIRE_MEMORY_PINNED &&
           shape->bytes > SMALL_BYTES && shape->idle_ns[PROF_SLICE_HOST] > 0 &&
           is_copied_by_library(judge, shape);
}

static int64_t staging_ns(const struct prof_shape *shape)
{
    double most = (double)shape->bytes * (double)shape->count / STAGING_RATE * 1e9;
    return (int64_t)fmin(most, (double)shape->idle_ns[PROF_SLICE_HOST]);
}

static void pageable_copy(struct prof_judge *judge)
{
    struct prof_copies sums = {0}, staged = {0};
    int64_t again_bytes = 0, host = 0;
    const struct prof_shape *shape;
    const char *source = "";
    double saved = 0, saved_pinned = 0, best = 0;
    if (prof_shares_memory(judge)) {
        prof_abstain(judge, "the device's memory is the host's: no bus, nothing to stage for");
        return;
    }
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));) {
        if (is_staged_upload(judge, shape)) {
            bool again = comes_again(judge, shape);
            prof_copies_add(judge, &staged, shape);
            host = prof_add(host, staging_ns(shape));
            saved_pinned += again ? (double)shape->alone_ns : 0;
            again_bytes = prof_add(again_bytes, again ? shape->bytes * shape->count : 0);
        }
        if (!prof_is_link_copy(shape) || prof_host_memory(shape) != WIRE_MEMORY_PAGEABLE ||
            shape->bytes <= 0)
            continue;
        prof_copies_add(judge, &sums, shape);
        best = pinned_rate(judge, prof_is_upload(shape), &source);
        double least = (double)shape->bytes * (double)shape->count / best * 1e9;
        if (comes_again(judge, shape)) {
            again_bytes = prof_add(again_bytes, shape->bytes * shape->count);
            least = 0;
        }
        if (shape->sum_ns > 0 && (double)shape->sum_ns > least)
            saved += (double)shape->alone_ns * (1 - least / (double)shape->sum_ns);
    }
    if (!sums.count && !staged.count)
        return;
    struct prof_draft *draft = prof_found(judge, 0.8);
    if (sums.count) {
        prof_numbers(draft, {"memcpys", (double)sums.count}, {"bytes", (double)sums.bytes},
                     {"rate", (double)sums.bytes / (double)sums.sum_ns * 1e9},
                     {"pinned_rate", best});
        prof_claim(judge, draft, "saved_memcpy_ns", PROF_SLICE_COPY_PAGEABLE, (int64_t)saved);
        prof_copies_claim_around(judge, draft, "idle_around_ns", &sums, true,
                                 prof_copies_part_around(&sums, sums.sum_ns));
        prof_say(draft,
                 "{memcpys|memcpy|memcpys} from or to pageable memory, {bytes} in all, at {rate}; "
                 "page-locked memory would reach {pinned_rate} (%s), and the call would return at "
                 "once: it also saves {idle_around_ns} of idle time around them.",
                 source);
    }
    if (staged.count) {
        prof_numbers(draft, {"staged_memcpys", (double)staged.count},
                     {"staged_bytes", (double)staged.bytes});
        prof_claim(judge, draft, "saved_memcpy_ns", PROF_SLICE_COPY_PINNED, (int64_t)saved_pinned);
        prof_claim(judge, draft, "staging_ns", PROF_SLICE_HOST, host);
        prof_copies_claim_around(judge, draft, "idle_around_ns", &staged, true,
                                 prof_copies_part_around(&staged, staged.sum_ns));
        prof_say(draft,
                 "%s{staged_memcpys|upload|uploads} ({staged_bytes}) by a thread that only "
                 "copies: a library fills page-locked memory from the program's before each, for "
                 "which the device is idle {staging_ns}.",
                 sums.count ? " " : "");
    }
    if (again_bytes) {
        prof_numbers(draft, {"same_size_bytes", (double)again_bytes});
        prof_say(draft, " {same_size_bytes} come in uploads that each iteration has alike: of what "
                        "stays the same none is needed, which the bound includes.");
    }
    prof_places(judge, draft, &sums.spots);
    prof_places(judge, draft, &staged.spots);
}

/* ---- copies that the host waits for ---------------------------------------------------------- */

static bool is_awaited(const struct prof_shape *shape)
{
    return prof_is_link_copy(shape) && !prof_is_scalar_readback(shape) && prof_is_awaited(shape);
}

/* Time in which kernels run and a memcpy could run beside them: where the same processors do both,
 * that of the kernels which leave one of them idle. */
static int64_t kernels_to_copy_beside(const struct prof_judge *judge)
{
    const struct prof_device *device = judge->device->device;
    const struct prof_shape *shape;
    int64_t ns = 0;
    if (!prof_shares_memory(judge))
        return judge->device->slice_ns[PROF_SLICE_KERNEL];
    for (size_t at = 0; prof_is_host(judge) && (shape = prof_next_shape(judge, &at));) {
        int64_t blocks = prof_is_kernel(shape) ? prof_config_most_blocks(shape->config) : 0;
        ns = prof_add(ns, blocks && blocks < device->units ? shape->alone_ns : 0);
    }
    return ns;
}

static void blocking_copy(struct prof_judge *judge)
{
    struct prof_copies sums = {0};
    const struct prof_shape *shape;
    bool by_call = true;
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));) {
        if (!is_awaited(shape))
            continue;
        prof_copies_add(judge, &sums, shape);
        by_call &= shape->waits;
    }
    /* One a step is how a result is handed over: the host needs it. */
    if (sums.count < 3 || sums.count <= prof_steps(judge))
        return;
    double part = 1 - (double)prof_steps(judge) / (double)sums.count;
    int64_t kernel = kernels_to_copy_beside(judge);
    double hidden = sums.alone_ns > kernel ? (double)kernel / (double)sums.alone_ns : kernel > 0;
    struct prof_draft *draft = prof_found(judge, 0.7);
    prof_numbers(draft, {"memcpys", (double)sums.count}, {"bytes", (double)sums.bytes},
                 {"memcpy_ns", (double)sums.alone_ns}, {"kernel_ns", (double)kernel},
                 {"avoidable_share", part});
    prof_copies_claim(judge, draft, &sums, hidden);
    prof_copies_claim_around(judge, draft, "avoidable_idle_ns", &sums, true, part);
    prof_say(draft, "The host waits for {memcpys|memcpy|memcpys} ({bytes})");
    prof_say_per_iteration(judge, draft, "memcpys_per_iteration", "memcpys");
    prof_say(
        draft,
        ", and launches no kernel meanwhile: the device is idle around them, {avoidable_idle_ns} "
        "more than with one wait per iteration.");
    if (hidden > 0 && kernel > 0)
        prof_say(draft, " {memcpy_ns} of copying could run beside {kernel_ns} of kernels.");
    if (by_call) /* else waits would have to go */
        prof_mend(draft, (struct prof_edit){.shapes = is_awaited, .no_wait = true});
    prof_places(judge, draft, &sums.spots);
}

/* ---- copies that hide behind nothing --------------------------------------------------------- */

static void no_overlap(struct prof_judge *judge)
{
    struct prof_copies sums = {0};
    const struct prof_shape *shape;
    const struct prof_device_facts *d = judge->device;
    int64_t kernel = kernels_to_copy_beside(judge), both = d->slice_ns[PROF_SLICE_BOTH];
    if (prof_shares_memory(judge) && !kernel) {
        prof_abstain(judge, "the same processors copy and compute: nothing to overlap");
        return;
    }
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));)
        if (prof_is_link_copy(shape) && !prof_is_scalar_readback(shape))
            prof_copies_add(judge, &sums, shape);
    int64_t less = kernel + both < sums.alone_ns + both ? kernel + both : sums.alone_ns + both;
    if (!sums.count || !kernel || (double)both > 0.1 * (double)less)
        return;
    /* In turn they take the sum of all three, side by side as long as the longest. */
    int64_t host = d->slice_ns[PROF_SLICE_HOST], beside = kernel + host;
    double part = beside < sums.alone_ns ? (double)beside / (double)sums.alone_ns : 1;
    struct prof_draft *draft = prof_found(judge, 0.6);
    prof_numbers(draft, {"memcpy_ns", (double)sums.alone_ns}, {"kernel_ns", (double)kernel},
                 {"overlap_ns", (double)both}, {"streams", (double)d->streams});
    prof_copies_claim(judge, draft, &sums, part);
    prof_copies_claim_around(judge, draft, "idle_around_ns", &sums, true,
                             prof_copies_part_around(&sums, sums.alone_ns));
    /* What is not the copies' own time counts up to as much again. */
    int64_t rest = sums.alone_ns - prof_copies_idle_around(&sums);
    int64_t beside_host = host - sums.alone_ns < kernel ? host - sums.alone_ns : kernel;
    prof_claim(judge, draft, "kernels_beside_host_ns", PROF_SLICE_KERNEL,
               beside_host < rest ? beside_host : rest);
    prof_say(draft, "Memcpys take {memcpy_ns} in which no kernel runs, kernels {kernel_ns} in "
                    "which no memcpy runs; both at once: {overlap_ns}. Overlap also saves "
                    "{idle_around_ns} of idle time around the memcpys.");
    if (prof_of_window(judge, d->slice_ns[PROF_SLICE_SYNC]) <
        0.01) /* else waits would have to go */
        prof_mend(draft, (struct prof_edit){.shapes = prof_is_link_copy, .no_wait = true});
    prof_places(judge, draft, &sums.spots);
}

/* ---- registry -------------------------------------------------------------------------------- */

const struct prof_rule prof_rules_transfer[] = {
    {.page =
         {.id = "scalar-readback",
          .title = "Small values read back to decide what to do next",
          .fires =
              "At least ten D2H memcpys or maps of at most 64 bytes, two or more a step (in Python "
              "one), whose call waits or that the host waits for next. So it does for one "
              "that XLA makes on a thread that only copies, where the program launches "
              "nothing until it is done.",
          .why = "The host learns of the value only after all queued work, decides, and launches "
                 "anew: the device is idle for the whole way to the host and back.",
          .fix = "Decide on the device, or read the value back every k-th iteration "
                 "only.",
          .cuda = "A flag in device memory that the next kernel reads; "
                  "cudaMemcpyAsync to page-locked memory, read one iteration later; "
                  "in graphs cudaGraphConditionalHandleCreate.",
          .opencl = "Leave the flag in a buffer that the next kernel reads; or "
                    "clEnqueueReadBuffer with CL_FALSE, and look at it one iteration "
                    "later.",
          .pytorch = "No `.item()`, `if tensor:` or print of a tensor in the loop: "
                     "torch.where on the device, or test and log every k steps.",
          .jax = "No float(x), `x.item()`, `if x:` or print of an array in the loop: jnp.where "
                 "or jax.lax.cond on the device; keep the arrays, and read them by one "
                 "jax.device_get every k steps.",
          .bound = "Those memcpys and the idle time around them, in Python also its pauses below "
                   "500 us behind them; of an operator whose result has a size to wait for, all "
                   "its kernels and its time on the host; of anomaly detection, where it makes "
                   "most of them and no DataLoader is seen, all time in which the device waits for "
                   "the host.",
          .limits =
              "perfkit does not see what the value is used for, only that the host waits for it.",
          .needs = "memcpys with their calls"},
     .slows_kernels = true,
     .advice = PROF_ADVICE_WAITS,
     .judge = scalar_readback},
    {.page = {.id = "small-transfers",
              .title = "Many small memcpys",
              .fires = "More than half of the memcpys between host and device are of 64 KiB or "
                       "less, and on average smaller than the size at which transferring takes as "
                       "long as starting: the least cost of a small copy with its call times the "
                       "best rate of a large one. At least twenty of them, and three a step, come "
                       "right after another one of the same direction, no kernel in between. Not "
                       "uploads of at most 64 bytes by a thread of XLA's that only copies: those "
                       "are arguments that it passes to its operators, and go with the launches.",
              .why = "Every copy pays for its call and its start; below that size it pays for "
                     "hardly anything else.",
              .fix = "Pack what belongs to an iteration into one buffer and copy it "
                     "once.",
              .cuda = "One page-locked staging buffer and one cudaMemcpyAsync; "
                      "cudaMemcpyBatchAsync; small constants as kernel arguments.",
              .opencl = "One clEnqueueWriteBuffer of a packed buffer, or "
                        "clEnqueueMapBuffer once; small constants by clSetKernelArg.",
              .pytorch = "A collate_fn that makes one tensor, and then one `.to(device, "
                         "non_blocking=True)`.",
              .jax = "numpy.stack of the pieces and one jax.device_put of that; constants by jnp "
                     "inside the jitted function.",
              .bound = "The part that comes right after another one, of the copies' exposed time "
                       "and of the idle time around them.",
              .limits = "Whether the pieces could be made at one time is not seen.",
              .needs = "memcpys with their calls"},
     .slows_kernels = true,
     .judge = small_transfers},
    {.page = {.id = "pageable-copy",
              .title = "Memcpys from and to pageable memory",
              .fires = "Memcpys between pageable host memory and the device; or uploads of more "
                       "than 64 KiB from page-locked memory by a thread of XLA's that only copies, "
                       "for which the device waits: XLA has filled that memory from the program's. "
                       "Not on devices that share the host's memory.",
              .why = "The driver copies pageable memory through a page-locked buffer of its own, "
                     "piece by piece; the call returns when the last piece is staged, so nothing "
                     "overlaps even if it is called asynchronous. A library with such a buffer of "
                     "its own takes as long.",
              .fix = "Allocate what is copied page-locked, once, and copy "
                     "asynchronously.",
              .cuda = "cudaHostAlloc instead of malloc, or cudaHostRegister once; then "
                      "cudaMemcpyAsync on a stream.",
              .opencl = "A buffer with CL_MEM_ALLOC_HOST_PTR, mapped once by "
                        "clEnqueueMapBuffer, as the host's side.",
              .pytorch = "DataLoader(pin_memory=True) and `.to(device, non_blocking=True)`; "
                         "what stays the same only once: register_buffer, or `.to(device)` "
                         "before the loop.",
              .jax = "jax.device_put once, before the loop, for what stays the same; of the next "
                     "batch before this step's result is read; copy_to_host_async() of results.",
              .bound = "Exposed time of those copies x (1 - their rate / the rate of page-locked "
                       "copies in this capture, else of the fastest link), and the idle time "
                       "around their calls, at most as long as they take; before uploads that a "
                       "library has staged, the host's work, at 4 GB/s at least. In Python all of "
                       "uploads that come alike in each iteration, and its pauses below 500 us "
                       "behind the copies.",
              .limits = "Page-locking itself costs: it pays for memory that is used again.",
              .needs = "transfers with memory kinds"},
     .judge = pageable_copy},
    {.page =
         {.id = "blocking-copy",
          .title = "The host waits for every memcpy",
          .fires = "Three or more copies, and more than one a step, whose call returns when the "
                   "data has arrived, or after most of which the host waits for the device at "
                   "once; single values are scalar-readback's.",
          .why = "While the host waits it launches nothing: the device is idle between the copy "
                 "and the next launch, and copies never run beside kernels.",
          .fix = "Copy asynchronously on a stream of its own, and wait once per "
                 "iteration.",
          .cuda = "cudaMemcpyAsync from page-locked memory; cudaEventRecord after "
                  "it, and cudaStreamWaitEvent on the stream that uses the data, "
                  "instead of waiting on the host.",
          .opencl = "blocking_write = CL_FALSE, and the copy's event in the wait list "
                    "of the kernel that uses the data.",
          .pytorch = "`.to(device, non_blocking=True)` from pinned memory: "
                     "DataLoader(pin_memory=True).",
          .jax = "jax.device_put of the next batch before this step's result is read; "
                 "copy_to_host_async() of results, and jax.device_get every k steps.",
          .bound =
              "The smaller of their exposed time and the kernels' time, and (1 - steps / memcpys) "
              "of the idle time around their calls and waits and in the launches after them until "
              "work is queued again. Where the host's processors are the device, copies run "
              "only beside kernels with fewer blocks than there are processors.",
          .limits = "Data that the host needs at once must be waited for.",
          .needs = "memcpys with their calls"},
     .slows_kernels = true,
     .judge = blocking_copy},
    {.page = {.id = "no-overlap",
              .title = "Memcpys and kernels never run at once",
              .fires = "Memcpys over the bus while no kernel runs: at most a tenth of what could "
                       "overlap does so. Of devices that share the host's memory only processors, "
                       "and beside "
                       "kernels with fewer blocks than these are.",
              .why = "The copy engines and the multiprocessors work side by side; used in turn, "
                     "one of them is always idle.",
              .fix = "Copy the next batch while this one is computed: two buffers, two "
                     "streams.",
              .cuda = "A stream for copies (cudaStreamCreateWithFlags with "
                      "cudaStreamNonBlocking); cudaMemcpyAsync from page-locked memory "
                      "into the buffer that is not in use; cudaStreamWaitEvent before "
                      "the kernels that read it.",
              .opencl = "A second queue for copies, and the copy's event in the wait list "
                        "of the kernel that reads the buffer.",
              .pytorch = "The next batch by `.to(device, non_blocking=True)` in `with "
                         "torch.cuda.stream(side):`; then wait_stream(side), and "
                         "record_stream for the tensor.",
              .jax = "jax.device_put of the next batch before this step's result is read: both "
                     "return at once.",
              .bound = "min(copies alone, kernels alone and the host's own work): all but the "
                       "first copy of a run can hide. Kernels too, as far as the host's work is "
                       "longer than the copies; and the waits, launches and pauses of the queue "
                       "around the copies. Both together at most as long as the copies take.",
              .limits = "Whether the next step's input is known early enough is not seen.",
              .needs = "kernels and transfers"},
     .slows_kernels = true,
     .judge = no_overlap},
    {.judge = NULL},
};

/* ---- sums over copies ------------------------------------------------------------------------ */

/* Sums over copies; see judge.h. */

bool prof_is_upload(const struct prof_shape *shape)
{
    return prof_is_copy(shape) && shape->copy_kind == WIRE_COPY_HTOD;
}

bool prof_is_download(const struct prof_shape *shape)
{
    return prof_is_copy(shape) && shape->copy_kind == WIRE_COPY_DTOH;
}

static bool prof_is_link_copy(const struct prof_shape *shape)
{
    return prof_is_upload(shape) || prof_is_download(shape);
}

bool prof_is_scalar_readback(const struct prof_shape *shape)
{
    bool mapped = prof_is_copy(shape) && shape->copy_kind == WIRE_COPY_MAP && shape->waits;
    return (prof_is_download(shape) || mapped) && shape->bytes >= 0 &&
           shape->bytes <= PROF_SCALAR_BYTES;
}

static bool prof_is_awaited(const struct prof_shape *shape)
{
    return shape->waits || 2 * (int64_t)shape->awaited > shape->count;
}

static int prof_host_memory(const struct prof_shape *shape)
{
    return prof_is_upload(shape) ? shape->source_kind : shape->target_kind;
}

/* Idle time on both sides of a copy that its call and the wait for it made. */
static const enum prof_slice around[] = {PROF_SLICE_SYNC, PROF_SLICE_COPY_CALL, PROF_SLICE_LAUNCH,
                                         PROF_SLICE_DISPATCH};
#define AROUND (sizeof around / sizeof around[0])

static int64_t prof_own_call_ns(const struct prof_shape *shape)
{
    return shape->waits ? shape->idle_ns[PROF_SLICE_COPY_CALL] : shape->call_ns;
}

void prof_copies_add(const struct prof_judge *judge, struct prof_copies *sums,
                     const struct prof_shape *shape)
{
    sums->count = prof_add(sums->count, shape->count);
    sums->packable = prof_add(sums->packable, shape->packable);
    sums->awaited = prof_add(sums->awaited, shape->awaited);
    int64_t bytes;
    if (__builtin_mul_overflow(shape->bytes > 0 ? shape->bytes : 0, shape->count, &bytes))
        bytes = INT64_MAX;
    sums->bytes = prof_add(sums->bytes, bytes);
    sums->sum_ns = prof_add(sums->sum_ns, shape->sum_ns);
    sums->alone_ns = prof_add(sums->alone_ns, shape->alone_ns);
    sums->alone[prof_copy_slice(shape)] =
        prof_add(sums->alone[prof_copy_slice(shape)], shape->alone_ns);
    sums->call_ns = prof_add(sums->call_ns, prof_own_call_ns(shape));
    for (int i = PROF_SLICE_FIRST_IDLE; i < PROF_SLICES; i++) {
        sums->before[i] = prof_add(sums->before[i], shape->idle_ns[i]);
        sums->after[i] = prof_add(sums->after[i], shape->after_ns[i]);
    }
    sums->by_library |= is_copied_by_library(judge, shape);
    sums->catch_up_ns = prof_add(sums->catch_up_ns, shape->catch_up_ns);
    sums->after[PROF_SLICE_LAUNCH] = prof_add(sums->after[PROF_SLICE_LAUNCH], shape->catch_up_ns);
    if (prof_is_python(judge))
        sums->python_ns = prof_add(sums->python_ns, shape->woken_brief_ns);
    prof_spots_add(&sums->spots, prof_longest_spot(judge, shape));
}

void prof_copies_claim(struct prof_judge *judge, struct prof_draft *draft,
                       const struct prof_copies *sums, double part)
{
    for (int i = 0; i < PROF_SLICE_FIRST_IDLE; i++)
        prof_claim(judge, draft, "exposed_memcpy_ns", i, (int64_t)((double)sums->alone[i] * part));
}

void prof_copies_claim_around(struct prof_judge *judge, struct prof_draft *draft, const char *term,
                              const struct prof_copies *sums, bool after, double part)
{
    for (size_t i = 0; i < AROUND; i++) {
        int64_t ns = sums->before[around[i]] + (after ? sums->after[around[i]] : 0);
        ns = prof_min(ns, judge->device->slice_ns[around[i]]); /* two copies have the same pause */
        prof_claim(judge, draft, term, around[i], (int64_t)((double)ns * part));
    }
    if (after && sums->python_ns)
        prof_claim(judge, draft, "python_ns", PROF_SLICE_HOST,
                   (int64_t)((double)sums->python_ns * part));
}

static int64_t prof_copies_idle_around(const struct prof_copies *sums)
{
    int64_t idle = sums->python_ns;
    for (size_t i = 0; i < AROUND; i++)
        idle = prof_add(idle, prof_add(sums->before[around[i]], sums->after[around[i]]));
    return idle;
}

double prof_copies_part_around(const struct prof_copies *sums, int64_t copies_ns)
{
    int64_t idle = prof_copies_idle_around(sums);
    return idle > copies_ns ? (double)copies_ns / (double)idle : 1;
}

struct prof_copies prof_scalar_readbacks(const struct prof_judge *judge)
{
    struct prof_copies sums = {0};
    const struct prof_shape *shape;
    for (size_t at = 0; (shape = prof_next_shape(judge, &at));)
        if (prof_is_scalar_readback(shape) && prof_is_awaited(shape))
            prof_copies_add(judge, &sums, shape);
    /* One a step is how results are read; in Python it is a number to log. */
    if (sums.count < 10 || sums.count < (prof_is_python(judge) ? 1 : 2) * prof_steps(judge))
        return (struct prof_copies){0};
    return sums;
}
