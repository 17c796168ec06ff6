/* perfkit's variables, handed on to the programs that this one starts.
 *
 * Programs clear or rebuild the environment of their children (env -i, sudo, schedulers, Python's
 * subprocess with env=), and wrappers set the variables by which the collector gets in; the
 * children would go unrecorded without a word. So the values of the start are kept in static
 * storage and put back where they are missing. OPENCL_LAYERS and LD_PRELOAD are lists: our library
 * joins what the program put in. A variable that holds one path and was set to another one stays as
 * it is, and the process says so in its entry of the table of processes. What a wrapper without
 * hooks did (a static one) is found by the next program when it starts. A child with another
 * PERFKIT_DIR belongs to another perfkit and is left alone. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collectors/core/collector.h"
#include "collectors/core/option_text.h"
#include "collectors/host/host.h"
#include "libprof/spool/lifecycle.h"

enum kind {
    OWN,  /* perfkit's own */
    PATH, /* the path of the collector, or of another tool */
    LIST, /* paths separated by colons */
};

#define VARIABLE_MAP(X)                                                                            \
    X(PERFKIT_DIR, OWN, NULL, NULL, 0, 0)                                                          \
    X(PERFKIT_OPTIONS, OWN, NULL, NULL, 0, 0)                                                      \
    X(CUDA_INJECTION64_PATH, PATH, "cuda", "libcuda.so", WIRE_SOURCE_CUDA, LIFECYCLE_OTHER_CUDA)   \
    X(NVTX_INJECTION64_PATH, PATH, "nvtx", NULL, WIRE_SOURCE_NVTX, LIFECYCLE_OTHER_NVTX)           \
    X(OPENCL_LAYERS, LIST, "opencl", "libOpenCL.so", WIRE_SOURCE_OPENCL, LIFECYCLE_OTHER_OPENCL)

enum {
#define X(name, kind, domain, library, source, fact) VARIABLE_##name,
    VARIABLE_MAP(X)
#undef X
        VARIABLES
};

static const struct {
    const char *equals; /* NAME= */
    size_t length;
    enum kind kind;
    const char *domain;
    const char *library; /* without which nothing of the domain is called; NULL = none is needed */
    enum wire_source source;
    uint32_t fact; /* of the table of processes: it had another value */
} variable[VARIABLES] = {
#define X(name, kind, domain, library, source, fact)                                               \
    {#name "=", sizeof #name, kind, domain, library, source, fact},
    VARIABLE_MAP(X)
#undef X
};

#define PRELOAD "LD_PRELOAD="
#define PRELOAD_BYTES (sizeof PRELOAD - 1)
#define MAX_LAYERS 4096u

static char store[16384];
static size_t store_used;
static char *kept[VARIABLES]; /* NAME=value in `store`, NULL = was not set */
static char *kept_preload;    /* LD_PRELOAD=our library, NULL = we were not preloaded */
static const char *own;       /* path of our library, as in the lists */
static bool active;
static unsigned injected;  /* variables by which perfkit lets the collector in, a bit each */
static unsigned completed; /* of them, those that lacked it when this program started */

/* Does `entry` set variable i? */
static bool sets(const char *entry, size_t i)
{
    return strncmp(entry, variable[i].equals, variable[i].length) == 0;
}

static char *keep_environment_entry(const char *first, size_t first_bytes, const char *second,
                                    size_t second_bytes)
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

/* A list with one element more. */
static char *keep_more(const char *list, const char *more)
{
    size_t bytes = strlen(list);
    char *at = keep_environment_entry(list, bytes + 1, more, strlen(more));
    if (at)
        at[bytes] = ':';
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

/* Does the value of variable i let the collector in? */
static bool lets_in(size_t i, const char *value)
{
    return variable[i].kind == LIST ? find_part(value, own, strlen(own)) != NULL
                                    : strcmp(value, own) == 0;
}

/* What perfkit set and this program was started without. Returns facts of the table of processes.
 */
static uint32_t adopt(void)
{
    char domains[64];
    uint32_t facts = 0;
    if (!kept_preload || !collector_option("inject", domains, sizeof domains))
        return 0;
    for (size_t i = 0; i < VARIABLES; i++) {
        if (!variable[i].domain || !option_lists(domains, variable[i].domain))
            continue;
        injected |= 1u << i;
        const char *value = kept[i] ? kept[i] + variable[i].length : "";
        if (lets_in(i, value))
            continue;
        if (variable[i].kind == PATH && *value) {
            facts |= variable[i].fact;
            kept[i] =
                keep_environment_entry(variable[i].equals, variable[i].length, own, strlen(own));
            continue;
        }
        kept[i] = *value ? keep_more(kept[i], own)
                         : keep_environment_entry(variable[i].equals, variable[i].length, own,
                                                  strlen(own));
        completed |= kept[i] ? 1u << i : 0;
    }
    return facts;
}

bool host_environment_remember(char *const *envp, const char *own_path, uint32_t *facts)
{
    *facts = 0;
    for (size_t e = 0; envp && envp[e]; e++) {
        for (size_t i = 0; i < VARIABLES; i++) {
            if (!kept[i] && sets(envp[e], i))
                kept[i] = keep_environment_entry(envp[e], strlen(envp[e]), "", 0);
        }
        if (own_path && !kept_preload && strncmp(envp[e], PRELOAD, PRELOAD_BYTES) == 0 &&
            find_part(envp[e] + PRELOAD_BYTES, own_path, strlen(own_path)))
            kept_preload =
                keep_environment_entry(PRELOAD, PRELOAD_BYTES, own_path, strlen(own_path));
    }
    active = kept[VARIABLE_PERFKIT_DIR] != NULL;
    if (kept_preload)
        own = kept_preload + PRELOAD_BYTES;
    if (active)
        *facts = adopt();
    return active;
}

void host_environment_repair(void)
{
    for (size_t i = 0; i < VARIABLES; i++) {
        char name[32];
        if (!(completed & 1u << i))
            continue;
        memcpy(name, variable[i].equals, variable[i].length);
        name[variable[i].length - 1] = '\0';
        setenv(name, kept[i] + variable[i].length, 1);
    }
}

bool host_environment_preloads(void)
{
    return active && kept_preload;
}

void host_plan_make(struct host_plan *plan, char *const *envp, bool preload)
{
    const char *found[VARIABLES] = {0};
    const char *list = NULL;
    uint32_t facts = 0;

    *plan = (struct host_plan){0};
    if (!active)
        return;
    for (; envp && envp[plan->entries]; plan->entries++) {
        const char *entry = envp[plan->entries];
        if (!strchr("PCNOL", entry[0]))
            continue;
        for (size_t i = 0; i < VARIABLES; i++) {
            if (found[i] || !sets(entry, i))
                continue;
            found[i] = entry;
            if (variable[i].kind == LIST)
                plan->layers_at = plan->entries;
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
    plan->ours = true;
    for (size_t i = 0; i < VARIABLES; i++) {
        if (kept[i] && !found[i])
            plan->missing |= 1u << i;
        else if (found[i] && (injected & 1u << i) && !lets_in(i, found[i] + variable[i].length)) {
            if (variable[i].kind == LIST)
                plan->layers = strlen(found[i]) + strlen(own) + 2;
            else
                facts |= variable[i].fact;
        }
    }
    if (kept_preload) {
        bool there = list && find_part(list + PRELOAD_BYTES, own, strlen(own));
        plan->preload = preload && !there ? 1 : !preload && there ? -1 : 0;
        if (!preload && facts)
            collector_note_fact(facts); /* the program itself cannot say it */
    }
    if (plan->missing || plan->preload || plan->layers)
        plan->bytes = (plan->entries + VARIABLES + 2) * sizeof(char *) + plan->layers +
                      (list ? strlen(list) : 0) + (plan->preload > 0 ? strlen(kept_preload) : 0) +
                      2;
}

/* LD_PRELOAD without our part; returns false when nothing is left. */
static bool remove_preload_entry(char *to, const char *entry)
{
    const char *list = entry + PRELOAD_BYTES;
    const char *at = find_part(list, own, strlen(own));
    const char *rest = at + strlen(own);
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

/* A list with our library at its end: of OpenCL's layers the last one is the outermost. */
static void put_in(char *to, const char *entry, size_t name_bytes)
{
    size_t bytes = strlen(entry);
    memcpy(to, entry, bytes);
    if (bytes > name_bytes)
        to[bytes++] = ':';
    memcpy(to + bytes, own, strlen(own) + 1);
}

char *const *host_plan_apply(const struct host_plan *plan, char *const *envp, void *room)
{
    char **out = room;
    char *text = (char *)room + (plan->entries + VARIABLES + 2) * sizeof(char *);
    char *layers = text;
    size_t n = 0;

    text += plan->layers;
    for (size_t e = 0; e < plan->entries; e++) {
        if (plan->layers && e == plan->layers_at) {
            put_in(layers, envp[e], variable[VARIABLE_OPENCL_LAYERS].length);
            out[n++] = layers;
        } else if (e != plan->preload_at || plan->preload == 0) {
            out[n++] = envp[e];
        } else if (plan->preload < 0) {
            if (remove_preload_entry(text, envp[e]))
                out[n++] = text;
        } else {
            put_in(text, envp[e], PRELOAD_BYTES);
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

/* ---- while this program runs ----------------------------------------------------------------- */

/* The program sets the list of layers itself, before it loads OpenCL: our library joins it. */
HOST_EXPORT int setenv(const char *name, const char *value, int overwrite)
{
    char list[MAX_LAYERS];
    if (!host_real.setenv)
        host_real_find();
    if ((injected & 1u << VARIABLE_OPENCL_LAYERS) && strcmp(name, "OPENCL_LAYERS") == 0 &&
        !lets_in(VARIABLE_OPENCL_LAYERS, value) && strlen(value) + strlen(own) + 2 <= sizeof list) {
        put_in(list, value, 0);
        value = list;
    }
    return host_real.setenv(name, value, overwrite);
}

/* Is a library of that name loaded? Read from the kernel: the loader's own list has a lock, which a
 * forked child may find taken. */
static bool is_loaded(const char *name)
{
    char text[2048];
    size_t used = 0, length = strlen(name);
    bool found = false;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    for (ssize_t n; fd >= 0 && !found && (n = read(fd, text + used, sizeof text - used)) > 0;) {
        used += (size_t)n;
        found = memmem(text, used, name, length) != NULL;
        size_t tail = used < length ? used : length;
        memmove(text, text + used - tail, tail);
        used = tail;
    }
    if (fd >= 0)
        close(fd);
    return found;
}

static const char *value_now(size_t i)
{
    for (char *const *at = environ; at && *at; at++) {
        if (sets(*at, i))
            return *at + variable[i].length;
    }
    return NULL;
}

uint32_t host_environment_changed(void)
{
    uint32_t facts = 0;
    for (size_t i = 0; i < VARIABLES; i++) {
        if (!(injected & 1u << i) || collector_attached(variable[i].source))
            continue;
        const char *value = value_now(i);
        if (value && lets_in(i, value))
            continue;
        if (variable[i].library ? is_loaded(variable[i].library) : value && *value)
            facts |= variable[i].fact;
    }
    return facts;
}
