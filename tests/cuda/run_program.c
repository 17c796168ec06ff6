/* See run_program.h. The spool is read by the real reader, so what these tests assert is what
 * perfkit will see. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "libprof/spool/lifecycle.h"
#include "libprof/spool/reader.h"
#include "tests/cuda/run_program.h"

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void set_or_unset(const char *name, const char *value)
{
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

static int run(const struct how *how, const char *directory)
{
    pid_t child = fork();
    if (child == 0) {
        setenv("PERFKIT_DIR", directory, 1);
        setenv("CUDA_INJECTION64_PATH", COLLECTOR, 1);
        setenv("LD_LIBRARY_PATH", how->library_path ? how->library_path : FAKES, 1);
        set_or_unset("FAKE_CUPTI", how->fake);
        set_or_unset("PERFKIT_OPTIONS", how->options);
        set_or_unset("LD_PRELOAD", how->preload);
        execl(PROGRAM, PROGRAM, how->scenario, how->end ? how->end : "settle", (char *)NULL);
        _exit(127);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

static void keep(struct capture *capture, const struct wire_head *head)
{
    if ((capture->record_count & (capture->record_count + 1)) == 0) { /* a full power of two */
        size_t bytes = (capture->record_count + 1) * 2 * sizeof *capture->records;
        capture->records = realloc(capture->records, bytes);
    }
    struct wire_head *copy = malloc(head->size);
    memcpy(copy, head, head->size);
    capture->records[capture->record_count++] = copy;
}

static void read_spool(struct capture *capture, const char *path)
{
    static _Alignas(8) unsigned char buffer[SPOOL_CHUNK_BYTES];
    struct prof_spool *spool;
    struct prof_error error;
    if (prof_spool_open(path, false, &spool, &error) != PROF_OK) {
        fprintf(stderr, "%s\n", error.message);
        return;
    }
    const struct prof_spool_span *spans;
    size_t count;
    while (prof_spool_poll(spool, &spans, &count, &error) == PROF_OK && count > 0) {
        for (size_t i = 0; i < count; i++) {
            size_t bytes = prof_spool_load(spool, &spans[i], buffer), offset = 0;
            bool damaged = false;
            const struct wire_head *head;
            while ((head = prof_spool_next(buffer, bytes, &offset, &damaged)) != NULL)
                keep(capture, head);
            prof_spool_advance(spool, &spans[i], spans[i].tid);
        }
    }
    for (unsigned i = 0; i < WIRE_COUNTS; i++)
        capture->counts[i] += prof_spool_count(spool, (enum wire_count)i);
    for (unsigned i = 0; i < WIRE_TYPES; i++)
        capture->dropped += prof_spool_dropped(spool, (enum wire_type)i);
    capture->spools++;
    prof_spool_close(spool);
}

struct capture run_program(const struct how *how)
{
    struct capture capture = {0};
    char directory[] = "/tmp/perfkit-test-XXXXXX";
    if (!mkdtemp(directory))
        return capture;
    double start = seconds();
    capture.status = run(how, directory);
    capture.seconds = seconds() - start;
    DIR *folder = opendir(directory);
    for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        if (strstr(entry->d_name, SPOOL_SUFFIX))
            read_spool(&capture, path);
        unlink(path);
    }
    if (folder)
        closedir(folder);
    rmdir(directory);
    return capture;
}

void capture_free(struct capture *capture)
{
    for (size_t i = 0; i < capture->record_count; i++)
        free(capture->records[i]);
    free(capture->records);
    *capture = (struct capture){0};
}

size_t capture_count(const struct capture *capture, enum wire_type type)
{
    size_t n = 0;
    for (size_t i = 0; i < capture->record_count; i++)
        n += capture->records[i]->type == type;
    return n;
}

const void *capture_record(const struct capture *capture, enum wire_type type, size_t n)
{
    for (size_t i = 0; i < capture->record_count; i++) {
        if (capture->records[i]->type == type && n-- == 0)
            return capture->records[i];
    }
    return NULL;
}

const char *capture_text(const struct capture *capture, uint32_t id)
{
    static char texts[4][512];
    static unsigned turn;
    char *text = texts[turn++ % 4];
    text[0] = '\0';
    for (size_t i = 0; id && i < capture->record_count; i++) {
        const struct wire_head *head = capture->records[i];
        if (head->type == WIRE_STRING && head->aux == id) {
            const struct wire_string *string = (const struct wire_string *)(const void *)head;
            snprintf(text, sizeof texts[0], "%.*s", (int)string->length, string->text);
            break;
        }
    }
    return text;
}

const struct wire_health *capture_health(const struct capture *capture, enum wire_health_state state,
                                         const char *part)
{
    for (size_t i = 0; i < capture->record_count; i++) {
        const struct wire_head *head = capture->records[i];
        if (head->type != WIRE_HEALTH || head->flags != state)
            continue;
        const struct wire_health *health = (const struct wire_health *)(const void *)head;
        if (!part || strstr(capture_text(capture, health->why), part))
            return health;
    }
    return NULL;
}
