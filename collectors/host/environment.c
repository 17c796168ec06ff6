/* perfkit's variables, handed on to the programs that this one starts.
 *
 * Programs clear or rebuild the environment of their children (env -i, sudo, schedulers, Python's
 * subprocess with env=); the children would go unrecorded without a word. So the values of the
 * start are kept in static storage and put back where they are missing. A variable that the
 * program set to something else stays as it is, and the capture says so; LD_PRELOAD is a list, so
 * there our library joins what the program put in. A child with another PERFKIT_DIR belongs to
 * another perfkit and is left alone. */
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "collectors/core/collector.h"
#include "collectors/host/host.h"

#define VARIABLE_MAP(X)                                                                            \
    X(PERFKIT_DIR)                                                                                 \
    X(PERFKIT_OPTIONS)                                                                             \
    X(CUDA_INJECTION64_PATH)                                                                       \
    X(NVTX_INJECTION64_PATH)                                                                       \
    X(OPENCL_LAYERS)

enum {
#define X(name) VARIABLE_##name,
    VARIABLE_MAP(X)
#undef X
        VARIABLES
};

static const struct {
    const char *equals; /* NAME= */
    size_t length;
    const char *overwritten;
} variable[VARIABLES] = {
#define X(name) {#name "=", sizeof #name, "programs were started with another value of " #name},
    VARIABLE_MAP(X)
#undef X
};

#define PRELOAD "LD_PRELOAD="
#define PRELOAD_BYTES (sizeof PRELOAD - 1)

static char store[16384];
static size_t store_used;
static char *kept[VARIABLES]; /* NAME=value in `store`, NULL = was not set */
static char *kept_preload;    /* LD_PRELOAD=our library, NULL = we were not preloaded */
static bool active;
static _Atomic uint32_t overwritten[VARIABLES]; /* programs started with another value */
static _Atomic uint32_t reported[VARIABLES];

/* Does `entry` set variable i? */
static bool sets(const char *entry, size_t i)
{
    return strncmp(entry, variable[i].equals, variable[i].length) == 0;
}

static char *keep(const char *first, size_t first_bytes, const char *second, size_t second_bytes)
{
    if (first_bytes + second_bytes + 1 > sizeof store - store_used)
        return NULL;
    char *at = store + store_used;
    memcpy(at, first, first_bytes);
    memcpy(at + first_bytes, second, second_bytes);
    at[first_bytes + second_bytes] = '\0';
    store_used += first_bytes + second_bytes + 1;
    return at;
}

/* The place of our library in the list of an LD_PRELOAD entry, NULL when it is not there. Elements
 * are separated by colons or spaces. */
static const char *find_part(const char *list, const char *part, size_t bytes)
{
    while (*list) {
        size_t length = strcspn(list, ": ");
        if (length == bytes && memcmp(list, part, bytes) == 0)
            return list;
        list += length;
        list += strspn(list, ": ");
    }
    return NULL;
}

bool host_environment_remember(char *const *envp, const char *own_path)
{
    for (size_t e = 0; envp && envp[e]; e++) {
        for (size_t i = 0; i < VARIABLES; i++) {
            if (!kept[i] && sets(envp[e], i))
                kept[i] = keep(envp[e], strlen(envp[e]), "", 0);
        }
        if (own_path && !kept_preload && strncmp(envp[e], PRELOAD, PRELOAD_BYTES) == 0 &&
            find_part(envp[e] + PRELOAD_BYTES, own_path, strlen(own_path)))
            kept_preload = keep(PRELOAD, PRELOAD_BYTES, own_path, strlen(own_path));
    }
    active = kept[VARIABLE_PERFKIT_DIR] != NULL;
    return active;
}

bool host_environment_preloads(void)
{
    return active && kept_preload;
}

void host_plan_make(struct host_plan *plan, char *const *envp, bool preload)
{
    const char *found[VARIABLES] = {0};
    const char *list = NULL;

    *plan = (struct host_plan){0};
    if (!active)
        return;
    for (; envp && envp[plan->entries]; plan->entries++) {
        const char *entry = envp[plan->entries];
        if (!strchr("PCNOL", entry[0]))
            continue;
        for (size_t i = 0; i < VARIABLES; i++) {
            if (!found[i] && sets(entry, i))
                found[i] = entry;
        }
        if (!list && strncmp(entry, PRELOAD, PRELOAD_BYTES) == 0) {
            list = entry;
            plan->preload_at = plan->entries;
        }
    }
    if (!list)
        plan->preload_at = plan->entries;
    if (found[VARIABLE_PERFKIT_DIR] &&
        strcmp(found[VARIABLE_PERFKIT_DIR], kept[VARIABLE_PERFKIT_DIR]) != 0)
        return;
    for (size_t i = 0; i < VARIABLES; i++) {
        if (kept[i] && !found[i])
            plan->missing |= 1u << i;
        else if (kept[i] && strcmp(found[i], kept[i]) != 0)
            atomic_fetch_add(&overwritten[i], 1);
    }
    if (kept_preload) {
        const char *part = kept_preload + PRELOAD_BYTES;
        bool there = list && find_part(list + PRELOAD_BYTES, part, strlen(part));
        plan->preload = preload && !there ? 1 : !preload && there ? -1 : 0;
    }
    if (plan->missing || plan->preload)
        plan->bytes = (plan->entries + VARIABLES + 2) * sizeof(char *) + (list ? strlen(list) : 0) +
                      (plan->preload > 0 ? strlen(kept_preload) : 0) + 2;
}

/* LD_PRELOAD without our part; returns false when nothing is left. */
static bool take_out(char *to, const char *entry)
{
    const char *part = kept_preload + PRELOAD_BYTES;
    const char *list = entry + PRELOAD_BYTES;
    const char *at = find_part(list, part, strlen(part));
    const char *rest = at + strlen(part);
    rest += strspn(rest, ": ");
    size_t before = (size_t)(at - list);
    if (!*rest) { /* it was the last: its separator goes too */
        while (before > 0 && strchr(": ", list[before - 1]))
            before--;
    }
    memcpy(to, entry, PRELOAD_BYTES + before);
    memcpy(to + PRELOAD_BYTES + before, rest, strlen(rest) + 1);
    return before > 0 || *rest;
}

char *const *host_plan_apply(const struct host_plan *plan, char *const *envp, void *room)
{
    char **out = room;
    char *text = (char *)room + (plan->entries + VARIABLES + 2) * sizeof(char *);
    size_t n = 0;

    for (size_t e = 0; e < plan->entries; e++) {
        if (e != plan->preload_at || plan->preload == 0) {
            out[n++] = envp[e];
        } else if (plan->preload < 0) {
            if (take_out(text, envp[e]))
                out[n++] = text;
        } else {
            size_t bytes = strlen(envp[e]);
            bool empty = bytes == PRELOAD_BYTES;
            const char *part = kept_preload + PRELOAD_BYTES;
            memcpy(text, envp[e], bytes);
            if (!empty)
                text[bytes++] = ':';
            memcpy(text + bytes, part, strlen(part) + 1);
            out[n++] = text;
        }
    }
    if (plan->preload > 0 && plan->preload_at == plan->entries)
        out[n++] = kept_preload;
    for (size_t i = 0; i < VARIABLES; i++) {
        if (plan->missing & 1u << i)
            out[n++] = kept[i];
    }
    out[n] = NULL;
    return out;
}

void host_environment_report(void)
{
    for (size_t i = 0; i < VARIABLES; i++) {
        uint32_t n = atomic_load(&overwritten[i]);
        if (n > atomic_load(&reported[i])) {
            atomic_store(&reported[i], n);
            collector_health(WIRE_SOURCE_HOST, WIRE_HEALTH_NOTE, variable[i].overwritten, n);
        }
    }
}
