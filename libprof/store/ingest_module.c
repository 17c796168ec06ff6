/* Which object files a process has mapped, read from outside (/proc/PID/maps) when its spool is
 * found and once a second after that: nothing is asked of the target, whose loader's lock is its
 * own. A library that comes and goes within a second may be missed; a collector that knows better
 * sends MODULE records (ingest_define.c). */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libprof/base/elf_note.h"
#include "libprof/store/ingest_private.h"
#include "libprof/store/ingest_stack.h"

#define MODULE_PERIOD_NS 1000000000u
#define MAX_NOTE_BYTES (1u << 20)

/* Of the file at `path`, which may be anything by now. */
static bool read_build_id(const char *path, char text[PROF_BUILD_ID_TEXT])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    Elf64_Ehdr header;
    bool found = false;
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
        pread(fd, &header, sizeof header, 0) == (ssize_t)sizeof header &&
        memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
        header.e_phentsize == sizeof(Elf64_Phdr)) {
        for (uint16_t i = 0; i < header.e_phnum && !found; i++) {
            Elf64_Phdr segment;
            if (pread(fd, &segment, sizeof segment, (off_t)(header.e_phoff + i * sizeof segment)) !=
                (ssize_t)sizeof segment)
                break;
            if (segment.p_type != PT_NOTE || segment.p_filesz > MAX_NOTE_BYTES)
                continue;
            unsigned char *notes = malloc(segment.p_filesz + 1);
            if (notes && pread(fd, notes, segment.p_filesz, (off_t)segment.p_offset) ==
                             (ssize_t)segment.p_filesz)
                found = prof_build_id(notes, segment.p_filesz, text);
            free(notes);
        }
    }
    if (fd >= 0)
        close(fd);
    return found;
}

/* One object: all its mappings lie side by side, and one of them is executable. */
struct mapped {
    char path[4096];
    uint64_t start, end;
    bool executable;
};

static enum prof_status end_object(struct prof_ingest *ingest, int64_t process,
                                   const struct mapped *object)
{
    if (!object->path[0] || !object->executable)
        return PROF_OK;
    char build_id[PROF_BUILD_ID_TEXT];
    struct ingest_mapping mapping = {.path = object->path,
                                     .address = object->start,
                                     .bytes = object->end - object->start,
                                     .segment = -1,
                                     .time_ns = ingest->now_ns};
    if (ingest_is_mapped(ingest, process, &mapping))
        return PROF_OK;
    if (read_build_id(object->path, build_id))
        mapping.build_id = build_id;
    return ingest_mapped(ingest, process, &mapping);
}

enum prof_status ingest_modules(struct prof_ingest *ingest, struct ingest_spool *spool)
{
    if (spool->modules_ns && ingest->now_ns - spool->modules_ns < MODULE_PERIOD_NS)
        return PROF_OK;
    spool->modules_ns = ingest->now_ns;
    char name[64], line[4352];
    const struct ingest_process *process = ingest_process_find(ingest, spool->process);
    snprintf(name, sizeof name, "/proc/%d/maps", process ? (int)process->seen_pid : 0);
    FILE *maps = fopen(name, "re");
    if (!maps)
        return PROF_OK; /* gone, or not ours to look at */
    struct mapped object = {0};
    enum prof_status status = PROF_OK;
    while (!status && fgets(line, sizeof line, maps)) {
        unsigned long long start, end;
        char rights[8];
        int path_at = 0;
        line[strcspn(line, "\n")] = '\0';
        if (sscanf(line, "%llx-%llx %7s %*s %*s %*s %n", &start, &end, rights, &path_at) < 3 ||
            path_at == 0)
            continue;
        const char *path = line + path_at;
        if (path[0] != '/' || strcmp(path, object.path) != 0) {
            status = end_object(ingest, spool->process, &object);
            object = (struct mapped){.start = start};
            if (path[0] == '/')
                snprintf(object.path, sizeof object.path, "%s", path);
        }
        object.end = end;
        object.executable |= strchr(rights, 'x') != NULL;
    }
    if (!status)
        status = end_object(ingest, spool->process, &object);
    fclose(maps);
    return status;
}
