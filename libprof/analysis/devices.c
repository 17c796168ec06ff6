/* Which rows of the table of devices are the same hardware, and how each is called so that none is
 * taken for another: every process numbers its devices from 0, and a run has many processes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/capture.h"
#include "libprof/base/saturate.h"
#include "libprof/wire/command.h"

enum { WORDS = 96 };

/* Several processes see one GPU as rows of their own; analyses of a device mean the hardware. By a
 * map: a merged capture has thousands. */
static bool find_physical(struct prof_capture *capture)
{
    struct prof_names first = {0}; /* host and uuid -> index of the first device */
    bool ok = true;
    for (size_t i = 0; ok && i < capture->devices.count; i++) {
        struct prof_device *d = &capture->devices.data[i];
        const struct prof_process *process = prof_process(capture, d->process);
        char *key;
        if (!d->uuid || !*d->uuid)
            continue;
        int length =
            asprintf(&key, "%s%c%s", process && process->host ? process->host : "", 1, d->uuid);
        ok = length >= 0;
        if (!ok)
            break;
        uint32_t *known = prof_names_get(&first, key, (size_t)length);
        if (known)
            d->physical = capture->devices.data[*known].physical;
        else
            ok = prof_names_put(&first, key, (size_t)length, (uint32_t)i);
        free(key);
    }
    prof_names_free(&first);
    return ok;
}

static void put_number(const struct prof_device *d, char *out)
{
    const char *kind = d->kind && !strcmp(d->kind, "gpu")   ? "GPU"
                       : d->kind && !strcmp(d->kind, "cpu") ? "CPU"
                                                            : "device";
    if (d->ordinal == PROF_UNKNOWN)
        snprintf(out, WORDS, "device n/a");
    else
        snprintf(out, WORDS, "%s %lld", kind, (long long)d->ordinal);
}

/* ---- what distinguishes devices of one number ------------------------------------------------ */

/* Each writes nothing where it is not known. */
typedef void trait(const struct prof_device *d, const struct prof_process *p, char *out);

static void by_api(const struct prof_device *d, const struct prof_process *p, char *out)
{
    (void)p;
    snprintf(out, WORDS, "%.20s", d->api ? d->api : "");
}

/* Of a device that has no uuid the hardware is not known: its process shows more. */
static void by_host(const struct prof_device *d, const struct prof_process *p, char *out)
{
    if (d->uuid && p && p->host)
        snprintf(out, WORDS, "%.40s", p->host);
}

static void describe_rank(const struct prof_device *d, const struct prof_process *p, char *out)
{
    (void)d;
    if (p && p->rank != PROF_UNKNOWN)
        snprintf(out, WORDS, "rank %lld", (long long)p->rank);
}

static void by_process(const struct prof_device *d, const struct prof_process *p, char *out)
{
    (void)d;
    if (p && p->pid != PROF_UNKNOWN)
        snprintf(out, WORDS, "process %lld", (long long)p->pid);
}

static void by_host_and_process(const struct prof_device *d, const struct prof_process *p,
                                char *out)
{
    (void)d;
    if (p && p->pid != PROF_UNKNOWN && p->host)
        snprintf(out, WORDS, "process %lld on %.30s", (long long)p->pid, p->host);
}

static void by_row(const struct prof_device *d, const struct prof_process *p, char *out)
{
    (void)p;
    snprintf(out, WORDS, "number %lld of the file", (long long)d->id);
}

static trait *const traits[] = {by_api, by_host, describe_rank, by_process, by_host_and_process,
                                by_row};
enum { TRAITS = sizeof traits / sizeof *traits };

/* Host and API are the program's words: a title is printed as it is. */
static void make_printable(char *text)
{
    for (; *text; text++)
        if (*text < ' ' || *text > '~')
            *text = '?';
}

/* "GPU 0", or with a trait "GPU 0 (rank 3)"; "" where the trait is not known. */
static void put_title(const struct prof_capture *capture, const struct prof_device *d, size_t with,
                      char *out)
{
    char told[WORDS] = "";
    put_number(d, out);
    if (with == TRAITS)
        return;
    traits[with](d, prof_process(capture, d->process), told);
    if (!*told)
        *out = 0;
    else
        prof_append(out, WORDS, " (%.60s)", told);
    make_printable(out);
}

static bool count_one(struct prof_names *counts, const char *key)
{
    uint32_t *known = prof_names_get(counts, key, strlen(key));
    if (known)
        ++*known;
    return known || prof_names_put(counts, key, strlen(key), 1);
}

static bool count_all(const struct prof_capture *capture, struct prof_names *counts)
{
    char title[WORDS];
    for (size_t i = 0; i < capture->devices.count; i++) {
        const struct prof_device *d = &capture->devices.data[i];
        for (size_t with = 0; d->physical == d->id && with <= TRAITS; with++) {
            put_title(capture, d, with, title);
            if (!count_one(counts, title))
                return false;
        }
        if (d->physical == d->id && d->name && !count_one(counts, d->name))
            return false;
    }
    return true;
}

static bool only_one(const struct prof_names *counts, const char *key)
{
    const uint32_t *known = prof_names_get(counts, key, strlen(key));
    return *key && known && *known == 1;
}

/* The number alone where that is enough, else with the first trait that no other has. */
static bool call(struct prof_capture *capture, const struct prof_names *counts,
                 struct prof_device *d)
{
    char title[WORDS];
    put_title(capture, d, TRAITS, title);
    for (size_t with = 0; with < TRAITS && !only_one(counts, title); with++)
        put_title(capture, d, with, title);
    d->title = prof_arena_copy(&capture->lookup_texts, title, strlen(title));
    d->full_name = d->title;
    if (d->name && only_one(counts, d->name)) {
        d->full_name = d->name;
    } else if (d->name) {
        char *both;
        int length = asprintf(&both, "%s %s", title, d->name);
        d->full_name =
            length < 0 ? NULL : prof_arena_copy(&capture->lookup_texts, both, (size_t)length);
        if (length >= 0)
            free(both);
    }
    return d->title && d->full_name;
}

bool prof_tell_devices_apart(struct prof_capture *capture)
{
    struct prof_names counts = {0}; /* titles with each trait, and names -> how many devices */
    bool ok = find_physical(capture) && count_all(capture, &counts);
    for (size_t i = 0; ok && i < capture->devices.count; i++) {
        struct prof_device *d = &capture->devices.data[i];
        if (d->physical == d->id)
            ok = call(capture, &counts, d);
    }
    for (size_t i = 0; ok && i < capture->devices.count; i++) {
        struct prof_device *d = &capture->devices.data[i];
        const struct prof_device *first = prof_device(capture, d->physical);
        d->title = first->title;
        d->full_name = first->full_name;
    }
    prof_names_free(&counts);
    return ok;
}

bool prof_device_is_host(const struct prof_device *device)
{
    return device && device->kind && !strcmp(device->kind, "cpu");
}

bool prof_device_shares_memory(const struct prof_device *device)
{
    return device && (device->integrated == 1 || prof_device_is_host(device));
}

bool prof_copy_moves(const struct prof_capture *capture, int kind, int64_t stream)
{
    const struct prof_stream *s =
        kind == WIRE_COPY_MAP || kind == WIRE_COPY_UNMAP ? prof_stream(capture, stream) : NULL;
    return !s || !prof_device_shares_memory(prof_device(capture, s->device));
}

/* ---- occupancy ------------------------------------------------------------------------------- */

#define MOST (INT64_C(1) << 40) /* a damaged capture may hold any number */

static int64_t product(const int64_t side[3])
{
    int64_t all = 1;
    for (int i = 0; i < 3; i++) {
        int64_t one = side[i] > 0 ? side[i] : 1;
        if (one > MOST / all)
            return MOST;
        all *= one;
    }
    return all;
}

int64_t prof_config_blocks(const struct prof_config *config)
{
    return config && config->block[0] != PROF_UNKNOWN && config->grid[0] > 0 ? product(config->grid)
                                                                             : 0;
}

int64_t prof_config_most_blocks(const struct prof_config *config)
{
    return config && config->grid[0] > 0 ? product(config->grid) : 0;
}

int64_t prof_config_threads(const struct prof_config *config)
{
    return config && config->block[0] > 0 ? product(config->block) : 0;
}

int64_t prof_config_items(const struct prof_config *config)
{
    int64_t blocks = prof_config_most_blocks(config), threads = prof_config_threads(config);
    return threads > 1 && blocks > MOST / threads ? MOST : blocks * (threads ? threads : 1);
}

static int64_t blocks_per_unit(const struct prof_device *device)
{
    static const struct {
        int major, minor, blocks;
    } known[] = {{7, 5, 16}, {8, 6, 16}, {8, 7, 16}, {8, 9, 24}, {12, 0, 24}, {12, 1, 24}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (device->compute_major == known[i].major && device->compute_minor == known[i].minor)
            return known[i].blocks;
    return 32;
}

static int64_t round_up(int64_t value, int64_t step)
{
    return (value + step - 1) / step * step;
}

static void limit(struct prof_occupancy *result, int64_t blocks, enum prof_occupancy_limit by)
{
    if (blocks < result->blocks) {
        result->blocks = blocks;
        result->limit = by;
    }
}

bool prof_occupancy_of(const struct prof_device *device, const struct prof_config *config,
                       struct prof_occupancy *result)
{
    int64_t threads = prof_config_threads(config);
    if (!device || !threads || device->compute_major <= 0 || device->max_threads_per_unit <= 0 ||
        device->warp <= 0 || device->warp > 1024 || config->registers == PROF_UNKNOWN ||
        threads > 65536)
        return false;
    int64_t warps = (threads + device->warp - 1) / device->warp;
    int64_t unit_warps = device->max_threads_per_unit / device->warp;
    *result = (struct prof_occupancy){unit_warps / warps, 0, PROF_LIMIT_THREADS};
    limit(result, blocks_per_unit(device), PROF_LIMIT_BLOCKS);
    if (config->registers > 0 && config->registers < 4096 && device->registers_per_unit > 0) {
        int64_t per_warp = round_up(config->registers * device->warp, 256);
        limit(result, device->registers_per_unit / per_warp / warps, PROF_LIMIT_REGISTERS);
    }
    int64_t shared = prof_add(config->shared_static > 0 ? config->shared_static : 0,
                              config->shared_dynamic > 0 ? config->shared_dynamic : 0);
    if (shared > 0 && shared < MOST && device->shared_per_unit_bytes > 0) {
        shared = round_up(shared + (device->compute_major >= 8 ? 1024 : 0), 128);
        limit(result, device->shared_per_unit_bytes / shared, PROF_LIMIT_SHARED);
    }
    if (result->blocks <= 0)
        return false; /* it ran, so what the device reported does not fit */
    result->share = (double)(result->blocks * warps) / (double)unit_warps;
    return true;
}

const char *prof_occupancy_limit_text(enum prof_occupancy_limit by)
{
    static const char *const words[] = {
        [PROF_LIMIT_THREADS] = "the block's size",
        [PROF_LIMIT_BLOCKS] = "the number of blocks on a unit",
        [PROF_LIMIT_REGISTERS] = "registers",
        [PROF_LIMIT_SHARED] = "shared memory",
    };
    return words[by];
}
