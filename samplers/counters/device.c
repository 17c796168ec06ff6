/* One GPU's counters through CUPTI's PM sampling. The device writes samples into a buffer of its
 * own while a burst lasts; decoding them afterwards is what costs (tens of microseconds and tens of
 * kB a sample), so it goes through a small image, a batch at a time, and the caller decides when.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collectors/cuda/profiler_api.h"
#include "libprof/base/clock.h"
#include "samplers/counters/device.h"
#include "samplers/counters/pm_api.h"

/* A whole burst must fit: once the image has become full, the rest of the burst is gone (CUPTI 13.0
 * on an H200), whatever is done with the image. About 55 kB a sample. */
#define BATCH_SAMPLES 512u
/* In host memory. 4,000 samples of 19 counters are too many for it, 1,000 are not (the same H200).
 * Once it has overflowed it stays so until sampling is set up anew. */
#define HARDWARE_BYTES (32ull << 20)
#define PEAKS_MS 3000 /* to evaluate them, in a process of its own */

void (*counter_gpu_step)(const char *call);

struct counter_gpu {
    unsigned index;
    struct counter_plan plan;
    char chip[32];
    size_t count;
    const struct counter_row *rows[COUNTER_SET_MAX];
    const char *metrics[COUNTER_SET_MAX];
    double values[COUNTER_SET_MAX];
    double peaks[COUNTER_SET_MAX];
    bool peaks_known;
    bool blind; /* chosen without knowing what the device has free */
    void *host;
    void *sampling;
    uint8_t *available, *config; /* CUPTI goes on reading them: kept until the end */
    uint8_t *image;
    size_t image_bytes;
    bool started;
};

/* Do a call of CUPTI; on failure explain it and leave by `return false`. */
#define TRY(call, why)                                                                             \
    do {                                                                                           \
        if (counter_gpu_step)                                                                      \
            counter_gpu_step(#call);                                                               \
        int result_ = (call);                                                                      \
        if (result_ != PM_OK) {                                                                    \
            pm_explain(result_, #call, why, COUNTER_WHY_BYTES);                                    \
            return false;                                                                          \
        }                                                                                          \
    } while (0)

static bool choose_metrics(struct counter_gpu *gpu, const struct counter_set *set, char *why)
{
    struct pm_chip_name name = {.size = PM_SIZE(pm_chip_name, name), .device = gpu->index};
    TRY(pm.DeviceGetChipName(&name), why);
    snprintf(gpu->chip, sizeof gpu->chip, "%s", name.name ? name.name : "");
    enum counter_family family = counter_family_of(gpu->chip);
    if (family == COUNTER_FAMILIES) {
        snprintf(why, COUNTER_WHY_BYTES, "no set of counters is known for the chip %s", gpu->chip);
        return false;
    }
    for (size_t i = 0; i < set->count && gpu->count < COUNTER_SET_MAX; i++) {
        if (!set->rows[i].metric[family])
            continue;
        gpu->rows[gpu->count] = &set->rows[i];
        gpu->metrics[gpu->count++] = set->rows[i].metric[family];
    }
    return true;
}

/* What this device, in its present state (MIG, other tools), can count. A failure here is where
 * missing permission shows first. */
static bool read_metric_availability(struct counter_gpu *gpu, uint8_t **image, char *why)
{
    struct pm_availability ask = {.size = PM_SIZE(pm_availability, image), .device = gpu->index};
    TRY(pm.PmSamplingGetCounterAvailability(&ask), why);
    *image = ask.image = calloc(1, ask.bytes + 1);
    if (!ask.image) {
        snprintf(why, COUNTER_WHY_BYTES, "out of memory");
        return false;
    }
    TRY(pm.PmSamplingGetCounterAvailability(&ask), why);
    return true;
}

static bool open_host(struct counter_gpu *gpu, const uint8_t *available, void **host, char *why)
{
    struct pm_host_open open = {.size = PM_SIZE(pm_host_open, host),
                                .profiler = PM_PROFILER_PM_SAMPLING,
                                .chip = gpu->chip,
                                .availability = available};
    TRY(pm.ProfilerHostInitialize(&open), why);
    *host = open.host;
    return true;
}

static void close_host(void *host)
{
    if (host)
        pm.ProfilerHostDeinitialize(
            &(struct pm_host_close){.size = PM_SIZE(pm_host_close, host), .host = host});
}

static bool host_add_metrics(void *host, const char *const *metrics, size_t count, char *why)
{
    struct pm_host_add add = {
        .size = PM_SIZE(pm_host_add, count), .host = host, .metrics = metrics, .count = count};
    TRY(pm.ProfilerHostConfigAddMetrics(&add), why);
    return true;
}

/* A metric that this device lacks (NVLink where there is none) fails all of them together. */
static void leave_out_missing(struct counter_gpu *gpu, const uint8_t *available)
{
    char unused[COUNTER_WHY_BYTES];
    size_t kept = 0;
    for (size_t i = 0; i < gpu->count; i++) {
        void *host = NULL;
        if (open_host(gpu, available, &host, unused) &&
            host_add_metrics(host, &gpu->metrics[i], 1, unused)) {
            gpu->rows[kept] = gpu->rows[i];
            gpu->metrics[kept++] = gpu->metrics[i];
        }
        close_host(host);
    }
    gpu->count = kept;
}

static bool choose_available(struct counter_gpu *gpu, const uint8_t *available, char *why)
{
    if (!open_host(gpu, available, &gpu->host, why))
        return false;
    if (host_add_metrics(gpu->host, gpu->metrics, gpu->count, why))
        return true;
    close_host(gpu->host);
    gpu->host = NULL;
    leave_out_missing(gpu, available);
    return gpu->count && open_host(gpu, available, &gpu->host, why) &&
           host_add_metrics(gpu->host, gpu->metrics, gpu->count, why);
}

static bool read_counter_config(struct counter_gpu *gpu, uint8_t **config, size_t *bytes, char *why)
{
    struct pm_host_config_size size = {.size = PM_SIZE(pm_host_config_size, bytes),
                                       .host = gpu->host};
    TRY(pm.ProfilerHostGetConfigImageSize(&size), why);
    *config = calloc(1, size.bytes + 1);
    *bytes = size.bytes;
    if (!*config) {
        snprintf(why, COUNTER_WHY_BYTES, "out of memory");
        return false;
    }
    struct pm_host_config get = {.size = PM_SIZE(pm_host_config, config),
                                 .host = gpu->host,
                                 .bytes = size.bytes,
                                 .config = *config};
    TRY(pm.ProfilerHostGetConfigImage(&get), why);
    struct pm_host_passes passes = {
        .size = PM_SIZE(pm_host_passes, passes), .bytes = size.bytes, .config = *config};
    TRY(pm.ProfilerHostGetNumOfPasses(&passes), why);
    if (passes.passes == 1)
        return true;
    snprintf(why, COUNTER_WHY_BYTES, "the counters need %zu passes on this %s, sampling has one",
             passes.passes, gpu->chip);
    return false;
}

static bool make_counter_image(struct counter_gpu *gpu, char *why)
{
    struct pm_image_size size = {.size = PM_SIZE(pm_image_size, bytes),
                                 .sampling = gpu->sampling,
                                 .metrics = gpu->metrics,
                                 .count = gpu->count,
                                 .samples = gpu->plan.batch};
    TRY(pm.PmSamplingGetCounterDataSize(&size), why);
    gpu->image_bytes = size.bytes;
    gpu->image = calloc(1, size.bytes + 1);
    if (gpu->image)
        return true;
    snprintf(why, COUNTER_WHY_BYTES, "out of memory");
    return false;
}

static bool clear_counter_image(struct counter_gpu *gpu, char *why)
{
    struct pm_image_init init = {.size = PM_SIZE(pm_image_init, image),
                                 .sampling = gpu->sampling,
                                 .bytes = gpu->image_bytes,
                                 .image = gpu->image};
    TRY(pm.PmSamplingCounterDataImageInitialize(&init), why);
    return true;
}

static bool enable(struct counter_gpu *gpu, const uint8_t *config, size_t bytes, char *why)
{
    struct pm_enable on = {.size = PM_SIZE(pm_enable, sampling), .device = gpu->index};
    TRY(pm.PmSamplingEnable(&on), why);
    gpu->sampling = on.sampling;
    /* GA100 has no trigger by time: cycles of the system clock, which is near 1 GHz and not fixed.
     * Each sample carries its times, so only the spacing differs. */
    bool timed = strcmp(gpu->chip, "GA100") != 0;
    struct pm_set_config set = {.size = PM_SIZE(pm_set_config, append),
                                .sampling = gpu->sampling,
                                .bytes = bytes,
                                .config = config,
                                .hardware_bytes = gpu->plan.hardware_bytes,
                                .interval = gpu->plan.interval_ns,
                                .trigger = timed ? PM_TRIGGER_TIME : PM_TRIGGER_SYSCLK,
                                .append = gpu->plan.keep_oldest ? PM_KEEP_OLDEST : PM_KEEP_LATEST};
    TRY(pm.PmSamplingSetConfig(&set), why);
    return make_counter_image(gpu, why);
}

struct counter_gpu *counter_gpu_open(unsigned index, const struct counter_set *set,
                                     const struct counter_plan *plan, char why[COUNTER_WHY_BYTES])
{
    struct counter_gpu *gpu = calloc(1, sizeof *gpu);
    size_t bytes = 0;
    why[0] = '\0';
    if (!gpu) {
        snprintf(why, COUNTER_WHY_BYTES, "out of memory");
        return NULL;
    }
    gpu->index = index;
    gpu->plan = *plan;
    gpu->plan.batch = plan->batch ? plan->batch : BATCH_SAMPLES;
    gpu->plan.hardware_bytes = plan->hardware_bytes ? plan->hardware_bytes : HARDWARE_BYTES;
    for (size_t i = 0; i < COUNTER_SET_MAX; i++)
        gpu->peaks[i] = NAN;
    bool ok = choose_metrics(gpu, set, why) && read_metric_availability(gpu, &gpu->available, why);
    if (ok &&
        !choose_available(gpu, gpu->available, why)) { /* an image that the host API cannot use */
        gpu->count = 0;
        ok = choose_metrics(gpu, set, why) && choose_available(gpu, NULL, why);
        gpu->blind = ok;
    }
    ok = ok && read_counter_config(gpu, &gpu->config, &bytes, why) &&
         enable(gpu, gpu->config, bytes, why);
    if (ok)
        return gpu;
    counter_gpu_close(gpu);
    return NULL;
}

void counter_gpu_close(struct counter_gpu *gpu)
{
    char unused[COUNTER_WHY_BYTES];
    if (!gpu)
        return;
    if (gpu->started)
        counter_gpu_stop(gpu, unused);
    if (gpu->sampling)
        pm.PmSamplingDisable(
            &(struct pm_object){.size = PM_SIZE(pm_object, sampling), .sampling = gpu->sampling});
    close_host(gpu->host);
    free(gpu->image);
    free(gpu->config);
    free(gpu->available);
    free(gpu);
}

const char *counter_gpu_chip(const struct counter_gpu *gpu)
{
    return gpu->chip;
}

bool counter_gpu_blind(const struct counter_gpu *gpu)
{
    return gpu->blind;
}

size_t counter_gpu_count(const struct counter_gpu *gpu)
{
    return gpu->count;
}

const struct counter_row *counter_gpu_row(const struct counter_gpu *gpu, size_t n)
{
    return gpu->rows[n];
}

const char *counter_gpu_metric(const struct counter_gpu *gpu, size_t n)
{
    return gpu->metrics[n];
}

double counter_gpu_peak(const struct counter_gpu *gpu, size_t n)
{
    return gpu->peaks[n];
}

bool counter_gpu_start(struct counter_gpu *gpu, char why[COUNTER_WHY_BYTES])
{
    struct pm_object on = {.size = PM_SIZE(pm_object, sampling), .sampling = gpu->sampling};
    TRY(pm.PmSamplingStart(&on), why);
    gpu->started = true;
    return true;
}

bool counter_gpu_stop(struct counter_gpu *gpu, char why[COUNTER_WHY_BYTES])
{
    struct pm_object off = {.size = PM_SIZE(pm_object, sampling), .sampling = gpu->sampling};
    gpu->started = false;
    TRY(pm.PmSamplingStop(&off), why);
    return true;
}

static bool evaluate(struct counter_gpu *gpu, size_t sample, const char *const *metrics,
                     size_t count, double *values, char *why)
{
    struct pm_host_evaluate ask = {.size = PM_SIZE(pm_host_evaluate, values),
                                   .host = gpu->host,
                                   .image = gpu->image,
                                   .image_bytes = gpu->image_bytes,
                                   .sample = sample,
                                   .metrics = metrics,
                                   .count = count,
                                   .values = values};
    TRY(pm.ProfilerHostEvaluateToGpuValues(&ask), why);
    return true;
}

/* Peak rates are constants of the chip; one at a time, because a metric without one fails a whole
 * call. */
static void evaluate_peaks(struct counter_gpu *gpu, size_t sample)
{
    char metric[160], unused[COUNTER_WHY_BYTES];
    const char *const name = metric;
    for (size_t i = 0; i < gpu->count; i++) {
        double peak = NAN;
        if (!gpu->rows[i]->clock)
            continue;
        snprintf(metric, sizeof metric, "%s.peak_sustained", gpu->metrics[i]);
        if (evaluate(gpu, sample, &name, 1, &peak, unused) && peak > 0)
            gpu->peaks[i] = peak;
    }
}

/* Peaks that the child wrote; what is missing stays unknown. */
static void read_peaks(struct counter_gpu *gpu, int fd)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    double peaks[COUNTER_SET_MAX];
    int got;
    do
        got = poll(&ready, 1, PEAKS_MS);
    while (got < 0 && errno == EINTR);
    if (got > 0 && read(fd, peaks, sizeof peaks) == (ssize_t)sizeof peaks)
        memcpy(gpu->peaks, peaks, sizeof peaks);
}

/* In a process of its own: these metrics are not part of the configuration, and evaluating them may
 * not be safe with every CUPTI and chip. Sampling must not end for lack of a percentage. */
static void learn_peaks(struct counter_gpu *gpu, size_t sample)
{
    int ends[2];
    gpu->peaks_known = true;
    if (gpu->plan.no_peaks || pipe2(ends, O_CLOEXEC) != 0)
        return;
    pid_t child = fork();
    if (child == 0) {
        signal(SIGTERM, SIG_DFL);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        prctl(PR_SET_DUMPABLE, 0); /* a core_pattern that pipes ignores the limit */
        evaluate_peaks(gpu, sample);
        _exit(write(ends[1], gpu->peaks, sizeof gpu->peaks) != (ssize_t)sizeof gpu->peaks);
    }
    close(ends[1]);
    if (child > 0) {
        read_peaks(gpu, ends[0]);
        kill(child, SIGKILL);
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    close(ends[0]);
}

static bool decode_one_sample(struct counter_gpu *gpu, size_t n,
                              void (*take)(void *context, const struct counter_sample *sample),
                              void *context, char *why)
{
    struct pm_sample_info info = {.size = PM_SIZE(pm_sample_info, end),
                                  .sampling = gpu->sampling,
                                  .image = gpu->image,
                                  .bytes = gpu->image_bytes,
                                  .sample = n};
    TRY(pm.PmSamplingCounterDataGetSampleInfo(&info), why);
    if (!evaluate(gpu, n, gpu->metrics, gpu->count, gpu->values, why))
        return false;
    if (!gpu->peaks_known)
        learn_peaks(gpu, n);
    struct counter_sample sample = {
        .start_ns = info.start, .end_ns = info.end, .values = gpu->values};
    take(context, &sample);
    return true;
}

static bool decode_batch(struct counter_gpu *gpu, size_t *completed, bool *overflow, char *why)
{
    if (!clear_counter_image(gpu, why))
        return false;
    struct pm_decode decode = {.size = PM_SIZE(pm_decode, overflow),
                               .sampling = gpu->sampling,
                               .image = gpu->image,
                               .bytes = gpu->image_bytes};
    if (counter_gpu_step)
        counter_gpu_step("pm.PmSamplingDecodeData");
    int result = pm.PmSamplingDecodeData(&decode);
    if (decode.overflow || result == PM_OUT_OF_MEMORY)
        *overflow = true; /* what came before it may be there all the same */
    else if (result != PM_OK) {
        pm_explain(result, "cuptiPmSamplingDecodeData", why, COUNTER_WHY_BYTES);
        return false;
    }
    struct pm_image_info info = {
        .size = PM_SIZE(pm_image_info, completed), .image = gpu->image, .bytes = gpu->image_bytes};
    TRY(pm.PmSamplingGetCounterDataInfo(&info), why);
    *completed = info.completed < gpu->plan.batch ? info.completed : gpu->plan.batch;
    return true;
}

int counter_gpu_decode(struct counter_gpu *gpu,
                       void (*take)(void *context, const struct counter_sample *sample),
                       void *context, bool *overflow, char why[COUNTER_WHY_BYTES])
{
    size_t completed = 0;
    if (!decode_batch(gpu, &completed, overflow, why))
        return -1;
    for (size_t i = 0; i < completed; i++) {
        if (!decode_one_sample(gpu, i, take, context, why))
            return -1;
    }
    return (int)completed;
}

/* ---- loading CUPTI --------------------------------------------------------------------------- */

/* Loading CUPTI for the sampler, and what its errors mean to a user. PM sampling came with CUPTI
 * 12.6, so an older library is reported differently from a missing one. */

struct pm_api pm;

struct symbol {
    const char *name;
    size_t at; /* offset in the table */
};

/* Fill a table of functions. Returns the first that the library lacks; NULL = it has all. */
static const char *fill_function_table(void *library, const struct symbol *symbols, size_t count,
                                       void *table)
{
    for (size_t i = 0; i < count; i++) {
        void *function = dlsym(library, symbols[i].name);
        if (!function)
            return symbols[i].name;
        memcpy((char *)table + symbols[i].at, &function, sizeof function);
    }
    return NULL;
}

static void *open_cupti_library(const char *chosen)
{
    static const char *const files[] = {
        "libcupti.so.13",
        "libcupti.so.12",
        "libcupti.so",
#ifdef PERFKIT_CUPTI_LIBDIR
        PERFKIT_CUPTI_LIBDIR "/libcupti.so",
#endif
        "/usr/local/cuda/lib64/libcupti.so",
        "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so",
    };
    void *library = chosen && chosen[0] ? dlopen(chosen, RTLD_NOW | RTLD_LOCAL) : NULL;
    for (size_t i = 0; i < sizeof files / sizeof files[0] && !library; i++)
        library = dlopen(files[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

bool pm_load(const char *chosen, char *why, size_t size)
{
    static const struct symbol symbols[] = {
#define X(name, parameters) {"cupti" #name, offsetof(struct pm_api, name)},
        PM_FUNCTIONS(X)
#undef X
    };
    void *library = open_cupti_library(chosen);
    if (!library) {
        snprintf(why, size,
                 "libcupti was not found: install CUPTI (part of the CUDA toolkit) or put its "
                 "folder on LD_LIBRARY_PATH");
        return false;
    }
    const char *missing =
        fill_function_table(library, symbols, sizeof symbols / sizeof symbols[0], &pm);
    if (missing)
        snprintf(why, size, "libcupti has no %s: sampling of counters needs CUPTI 12.6 or newer",
                 missing);
    return !missing;
}

void pm_explain(int result, const char *call, char *why, size_t size)
{
    const char *remedy = counter_remedy(result);
    if (remedy) {
        snprintf(why, size, "%s (%s: %d)", remedy, call, result);
        return;
    }
    const char *name = NULL;
    if (!pm.GetResultString || pm.GetResultString(result, &name) != PM_OK || !name)
        name = "unknown CUPTI error";
    snprintf(why, size, "%s: %s (%d)", call, name, result);
}

/* ---- libcuda --------------------------------------------------------------------------------- */

#define CUDA_NO_DEVICE 100

struct cuda_api cuda_driver;
const char *const cuda_no_gpu = "CUDA finds no GPU: look at CUDA_VISIBLE_DEVICES and nvidia-smi";

bool cuda_driver_load(char *why, size_t size)
{
    static const struct symbol symbols[] = {
#define X(name, parameters) {"cu" #name, offsetof(struct cuda_api, name)},
        CUDA_FUNCTIONS(X)
#undef X
    };
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(why, size, "libcuda.so.1 was not found: there is no NVIDIA driver here");
        return false;
    }
    const char *missing =
        fill_function_table(library, symbols, sizeof symbols / sizeof symbols[0], &cuda_driver);
    if (missing) {
        snprintf(why, size, "libcuda has no %s: a newer NVIDIA driver is needed", missing);
        return false;
    }
    int result = cuda_driver.Init(0);
    if (result == 0)
        return true;
    if (result == CUDA_NO_DEVICE)
        snprintf(why, size, "%s", cuda_no_gpu);
    else
        snprintf(why, size, "cuInit failed (%d)", result);
    return false;
}
