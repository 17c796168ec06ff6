/* What `perfkit run` hands over through the environment, copied at load time: programs change and
 * clear their environment. */
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collectors/core/collector.h"
#include "collectors/core/option_text.h"
#include "collectors/core/state.h"

#define DEFAULT_SPOOL_LIMIT (1ull << 30)

static char directory[200];
static char options[4096];
static char command[256];
static uint32_t command_bytes;
static struct prof_rank rank = {-1, -1, -1, ""};

static int see_object(struct dl_phdr_info *object, size_t bytes, void *data)
{
    (void)object;
    (void)bytes;
    (void)data;
    return 1;
}

/* A static program that opens a library brings in a second libc, whose loader knows of no object
 * and whose pthread_create crashes: nothing of ours may run there. */
static bool loaded_by_static_program(void)
{
    return dl_iterate_phdr(see_object, NULL) == 0;
}

/* Runs before main; repeated by any code that runs earlier, and by a process that was not under
 * perfkit then, which costs it one look at its environment. */
__attribute__((constructor)) static void load(void)
{
    if (directory[0])
        return;
    const char *value = getenv("PERFKIT_OPTIONS");
    if (value && strlen(value) < sizeof options)
        memcpy(options, value, strlen(value) + 1);
    value = getenv("PERFKIT_DIR");
    if (value && value[0] == '/' && strlen(value) < sizeof directory && !loaded_by_static_program())
        memcpy(directory, value, strlen(value) + 1);
    if (!directory[0])
        return;
    prof_rank_read(&rank);
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    ssize_t n = read(fd, command, sizeof command);
    close(fd);
    command_bytes = n > 0 ? (uint32_t)n : 0;
}

const char *collector_directory(void)
{
    load();
    return directory[0] ? directory : NULL;
}

const struct prof_rank *core_rank(void)
{
    load();
    return &rank;
}

const char *core_command(uint32_t *bytes)
{
    load();
    *bytes = command_bytes;
    return command;
}

bool collector_option(const char *name, char *value, size_t size)
{
    load();
    size_t length = strlen(name);
    for (const char *at = options; *at;) {
        const char *end = strchrnul(at, ',');
        if ((size_t)(end - at) > length && memcmp(at, name, length) == 0 && at[length] == '=') {
            size_t bytes = (size_t)(end - at) - length - 1;
            if (bytes >= size)
                return false;
            memcpy(value, at + length + 1, bytes);
            value[bytes] = '\0';
            return true;
        }
        at = *end ? end + 1 : end;
    }
    return false;
}

bool collector_traces(const char *domain)
{
    char list[128];
    return !collector_option("trace", list, sizeof list) || option_lists(list, domain);
}

uint64_t core_spool_limit(void)
{
    char text[32];
    if (!collector_option("spool-limit", text, sizeof text))
        return DEFAULT_SPOOL_LIMIT;
    uint64_t bytes = 0;
    for (const char *at = text; *at >= '0' && *at <= '9' && bytes < UINT64_MAX / 16; at++)
        bytes = bytes * 10 + (uint64_t)(*at - '0');
    return bytes;
}
