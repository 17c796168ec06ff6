/* The devices of this machine. Drivers are asked in children, which write into memory that they
 * share with us: one that crashes or hangs costs its own devices only. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/device.h"
#include "cli/probe.h"

struct device_entry *device_add(struct device_list *list, const char *api, uint32_t nth)
{
    if (list->count == DEVICES)
        return NULL;
    struct device_entry *entry = &list->entries[list->count++];
    *entry = (struct device_entry){.api = api, .nth = nth, .link_bandwidth = NAN};
    prof_device_unknown(&entry->device);
    return entry;
}

static int64_t read_khz(const char *path)
{
    long long value = 0;
    FILE *in = fopen(path, "re");
    if (in && fscanf(in, "%lld", &value) != 1)
        value = 0;
    if (in)
        fclose(in);
    return value > 0 ? value : PROF_UNKNOWN;
}

/* "model name : ..." */
static void cpu_name(char *out, size_t size)
{
    char line[256];
    FILE *in = fopen("/proc/cpuinfo", "re");
    while (in && !*out && fgets(line, sizeof line, in)) {
        char *colon = strchr(line, ':');
        if (!colon || strncmp(line, "model name", 10) != 0)
            continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(out, size, "%s", colon + 1 + strspn(colon + 1, " "));
    }
    if (in)
        fclose(in);
    if (!*out)
        snprintf(out, size, "processor");
}

static void add_cpu(struct device_list *list)
{
    struct device_entry *entry = device_add(list, "cpu", 0);
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    if (!entry)
        return;
    cpu_name(entry->name, sizeof entry->name);
    entry->device.kind = "cpu";
    entry->device.units = sysconf(_SC_NPROCESSORS_ONLN);
    entry->device.clock_khz = read_khz("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq");
    if (pages > 0 && page_bytes > 0)
        entry->device.memory_bytes = (int64_t)pages * page_bytes;
}

struct question {
    struct device_list *answer; /* shared with the child */
    void (*add)(struct device_list *list);
};

static void answer_question(void *context, char *reply, size_t size)
{
    const struct question *question = context;
    question->add(question->answer);
    snprintf(reply, size, "ok");
}

static void list_in_child(struct device_list *list, void (*add)(struct device_list *list))
{
    char reply[PROBE_REPLY];
    struct question question = {.add = add};
    void *shared =
        mmap(NULL, sizeof *list, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return;
    question.answer = shared;
    if (probe_run(answer_question, &question, reply, sizeof reply))
        for (size_t i = 0; i < question.answer->count && i < DEVICES && list->count < DEVICES; i++)
            list->entries[list->count++] = question.answer->entries[i];
    munmap(shared, sizeof *list);
}

static const char *text_or_null(const char *text)
{
    return *text ? text : NULL;
}

/* Constant texts of the child stand at the same addresses here: a fork, no exec. */
static void complete_device_entry(struct device_entry *entry, const char *folder, int64_t id)
{
    struct prof_device *d = &entry->device;
    struct prof_ceiling_file *file = &entry->measured;
    entry->name[sizeof entry->name - 1] = entry->vendor[sizeof entry->vendor - 1] = '\0';
    entry->driver[sizeof entry->driver - 1] = entry->uuid[sizeof entry->uuid - 1] = '\0';
    d->id = d->physical = id;
    d->api = entry->api;
    d->name = text_or_null(entry->name);
    d->vendor = text_or_null(entry->vendor);
    d->driver = text_or_null(entry->driver);
    d->uuid = text_or_null(entry->uuid);
    snprintf(file->api, sizeof file->api, "%s", entry->api);
    snprintf(file->name, sizeof file->name, "%s", entry->name);
    snprintf(file->uuid, sizeof file->uuid, "%s", entry->uuid);
    snprintf(file->driver, sizeof file->driver, "%s", entry->driver);
    if (folder)
        prof_ceiling_read(folder, file, NULL); /* without a file it has no rows */
    device_drop_impossible(entry);
}

void device_find_all(struct device_list *list, const char *folder)
{
    list->count = 0;
    list_in_child(list, device_add_cuda);
    list_in_child(list, device_add_opencl);
    add_cpu(list);
    for (size_t i = 0; i < list->count; i++)
        complete_device_entry(&list->entries[i], folder, (int64_t)i + 1);
}
