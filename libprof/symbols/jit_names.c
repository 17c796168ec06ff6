/* The file is gone through once; what it says of a piece of code is written down
 * for the addresses that lie in it, so later records replace earlier ones as the code did. Formats:
 * the kernel's tools/perf/Documentation/jit-interface.txt and jitdump-specification.txt. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libprof/base/array.h"
#include "libprof/symbols/symbols.h"

struct file {
    const char *data;
    size_t size;
    int64_t changed_s;
};

/* What is known of an address. */
struct claim {
    const char *name; /* in the file */
    const char *source;
    uint32_t name_bytes, source_bytes, line;
};

struct claims {
    struct claim *list;
    const uint64_t *addresses;
    uint32_t count;
};

static const char *map_jit_file(const char *path, struct file *file)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return "it is not there, or may not be read";
    const char *why = NULL;
    void *data = MAP_FAILED;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        why = "it is no file";
    else if (geteuid() != 0 && st.st_uid != geteuid())
        why = "it is another user's";
    else if (st.st_size <= 0 ||
             (data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0)) == MAP_FAILED)
        why = "it is empty, or cannot be mapped";
    close(fd);
    if (!why)
        *file = (struct file){data, (size_t)st.st_size, st.st_mtime};
    return why;
}

static void unmap_file(struct file *file)
{
    munmap((void *)(uintptr_t)file->data, file->size);
}

static uint32_t first_from(const struct claims *claims, uint64_t address)
{
    size_t low;
    PROF_FIND_FIRST(low, at, claims->count, claims->addresses[at] >= address);
    return (uint32_t)low;
}

static void claim_code(struct claims *claims, uint64_t start, uint64_t size, const char *name,
                       size_t bytes)
{
    for (uint32_t i = first_from(claims, start);
         i < claims->count && claims->addresses[i] - start < size; i++)
        claims->list[i] = (struct claim){.name = name, .name_bytes = (uint32_t)bytes};
}

static const char *copy_jit_text(char *buffer, const char *text, uint32_t bytes)
{
    uint32_t length = bytes < SYMBOLS_MOST_TEXT ? bytes : SYMBOLS_MOST_TEXT;
    if (!length)
        return NULL;
    memcpy(buffer, text, length);
    buffer[length] = '\0';
    return buffer;
}

/* CPython's trampolines are called "py::function:file". */
static void answer_python(struct answer *answer, char *name)
{
    char *file = strchr(name + 4, ':');
    if (file)
        *file++ = '\0';
    answer_level(answer, name + 4, file, 0);
}

static const char *answer_claims(struct claims *claims, struct answer *answer)
{
    static char name[SYMBOLS_MOST_TEXT + 1], source[SYMBOLS_MOST_TEXT + 1];
    for (uint32_t i = 0; i < claims->count; i++) {
        const struct claim *claim = &claims->list[i];
        if (!copy_jit_text(name, claim->name, claim->name_bytes))
            continue;
        if (strncmp(name, "py::", 4) == 0)
            answer_python(answer, name);
        else
            answer_level(answer, name, copy_jit_text(source, claim->source, claim->source_bytes),
                         claim->source_bytes ? claim->line : 0);
        answer_frame(answer, i);
    }
    return NULL;
}

/* ---- perf maps ------------------------------------------------------------------------------- */

static bool read_hexadecimal(const char **at, const char *end, uint64_t *value)
{
    const char *start = *at;
    *value = 0;
    if (end - *at > 2 && (*at)[0] == '0' && ((*at)[1] | 32) == 'x')
        *at += 2;
    for (; *at < end; ++*at) {
        int c = **at | 32, digit = c >= '0' && c <= '9'   ? c - '0'
                                   : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                                          : -1;
        if (digit < 0)
            break;
        *value = *value << 4 | (unsigned)digit;
    }
    return *at != start;
}

static void read_map_line(struct claims *claims, const char *at, const char *end)
{
    uint64_t start, size;
    if (!read_hexadecimal(&at, end, &start) || at == end || *at++ != ' ' ||
        !read_hexadecimal(&at, end, &size) || at == end || *at++ != ' ')
        return;
    claim_code(claims, start, size, at, (size_t)(end - at));
}

const char *jit_names_perf_map(const char *path, int64_t not_before_s, const uint64_t *addresses,
                               uint32_t count, struct answer *answer)
{
    struct file file;
    struct claims claims = {calloc(count, sizeof *claims.list), addresses, count};
    const char *why = claims.list ? map_jit_file(path, &file) : "there is no memory";
    if (!why && file.changed_s < not_before_s) {
        why = "it is of an earlier process with the same number";
        unmap_file(&file);
    } else if (!why) {
        const char *end = file.data + file.size;
        for (const char *at = file.data; at < end;) {
            const char *stop = memchr(at, '\n', (size_t)(end - at));
            stop = stop ? stop : end;
            read_map_line(&claims, at, stop);
            at = stop + 1;
        }
        why = answer_claims(&claims, answer);
        unmap_file(&file);
    }
    free(claims.list);
    return why;
}

/* ---- jitdump --------------------------------------------------------------------------------- */

#define JITDUMP_MAGIC 0x4a695444u

struct dump_header {
    uint32_t magic, version, bytes, machine, padding, pid;
    uint64_t time, flags;
};

struct dump_record {
    uint32_t id, bytes; /* with this head */
    uint64_t time;
};

enum { DUMP_LOAD, DUMP_MOVE, DUMP_LINES };

struct dump_load {
    uint32_t pid, tid;
    uint64_t vma, address, size, index;
};

struct dump_move {
    uint32_t pid, tid;
    uint64_t vma, from, to, size, index;
};

struct dump_lines {
    uint64_t address, count;
};

struct dump_line {
    uint64_t address;
    uint32_t line, discriminator;
};

/* Lines come before the code that they are of. */
struct lines {
    uint64_t address, count;
    const char *at, *end;
};

static void read_code_load(struct claims *claims, const char *at, const char *end,
                           const struct lines *lines)
{
    struct dump_load code;
    if ((size_t)(end - at) < sizeof code)
        return;
    memcpy(&code, at, sizeof code);
    const char *name = at + sizeof code, *stop = memchr(name, 0, (size_t)(end - name));
    if (!stop)
        return;
    claim_code(claims, code.address, code.size, name, (size_t)(stop - name));
    if (!lines->count || lines->address != code.address)
        return;
    /* A line holds from its address to that of the next one. */
    const char *file = NULL, *next = lines->at;
    size_t file_bytes = 0;
    for (uint64_t i = 0; i < lines->count; i++) {
        struct dump_line line;
        if ((size_t)(lines->end - next) < sizeof line)
            return;
        memcpy(&line, next, sizeof line);
        next += sizeof line;
        stop = memchr(next, 0, (size_t)(lines->end - next));
        if (!stop)
            return;
        if (stop - next != 1 || (unsigned char)*next != 0xff) { /* else: as before */
            file = next;
            file_bytes = (size_t)(stop - next);
        }
        next = stop + 1;
        for (uint32_t k = first_from(claims, line.address);
             k < claims->count && claims->addresses[k] - code.address < code.size; k++) {
            claims->list[k].source = file;
            claims->list[k].source_bytes = (uint32_t)file_bytes;
            claims->list[k].line = line.line;
        }
    }
}

/* The code goes on elsewhere; what is known of its old place stays true for the samples before. */
static void move(struct claims *claims, const char *at, const char *end)
{
    struct dump_move code;
    if ((size_t)(end - at) < sizeof code)
        return;
    memcpy(&code, at, sizeof code);
    uint32_t old = first_from(claims, code.from);
    if (old < claims->count && claims->addresses[old] - code.from < code.size &&
        claims->list[old].name)
        claim_code(claims, code.to, code.size, claims->list[old].name,
                   claims->list[old].name_bytes);
}

static const char *read_dump(struct claims *claims, const struct file *file)
{
    struct dump_header header;
    struct dump_record record;
    struct lines lines = {0};
    if (file->size < sizeof header)
        return "it is no jitdump";
    memcpy(&header, file->data, sizeof header);
    if (header.magic != JITDUMP_MAGIC || header.bytes < sizeof header || header.bytes > file->size)
        return "it is no jitdump of this machine";
    for (size_t at = header.bytes; file->size - at >= sizeof record; at += record.bytes) {
        memcpy(&record, file->data + at, sizeof record);
        if (record.bytes < sizeof record || record.bytes > file->size - at)
            break; /* the process ended within it */
        const char *body = file->data + at + sizeof record, *end = file->data + at + record.bytes;
        struct dump_lines head;
        if (record.id == DUMP_LOAD) {
            read_code_load(claims, body, end, &lines);
            lines.count = 0;
        } else if (record.id == DUMP_MOVE) {
            move(claims, body, end);
        } else if (record.id == DUMP_LINES && (size_t)(end - body) >= sizeof head) {
            memcpy(&head, body, sizeof head);
            lines = (struct lines){head.address, head.count, body + sizeof head, end};
        }
    }
    return NULL;
}

const char *jit_names_jitdump(const char *path, const uint64_t *addresses, uint32_t count,
                              struct answer *answer)
{
    struct file file;
    struct claims claims = {calloc(count, sizeof *claims.list), addresses, count};
    const char *why = claims.list ? map_jit_file(path, &file) : "there is no memory";
    if (!why) {
        why = read_dump(&claims, &file);
        if (!why)
            why = answer_claims(&claims, answer);
        unmap_file(&file);
    }
    free(claims.list);
    return why;
}
