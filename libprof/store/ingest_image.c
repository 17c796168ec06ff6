/* What each process has mapped at which addresses, as of the records read so far: an instruction's
 * address means something only together with the object that was there then. Libraries come, go and
 * are followed by others at the same place. */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libprof/base/elf_image.h"
#include "libprof/base/regular.h"
#include "libprof/store/ingest_private.h"
#include "libprof/store/ingest_stack.h"

#define KEY_BYTES (4096 + 64)

static struct ingest_image *process_image(struct prof_ingest *ingest, int64_t process)
{
    uint64_t *known = prof_map_get(&ingest->image_at, (uint64_t)process);
    if (known)
        return &ingest->images.data[*known];
    struct ingest_image *image = prof_array_add(&ingest->images);
    bool ok = image && prof_map_put(&ingest->image_at, (uint64_t)process, ingest->images.count - 1);
    return ingest_memory(ingest, ok, "object files") == PROF_OK ? image : NULL;
}

static struct ingest_object *live_object(const struct ingest_image *image, size_t at)
{
    return &image->objects.data[image->live.data[at]];
}

/* The first of the live objects that ends behind `address`. */
static size_t live_from(const struct ingest_image *image, uint64_t address)
{
    size_t low;
    PROF_FIND_FIRST(low, at, image->live.count, live_object(image, at)->end > address);
    return low;
}

static struct ingest_object *object_at(const struct ingest_image *image, uint64_t address)
{
    size_t at = live_from(image, address);
    if (at == image->live.count || live_object(image, at)->start > address)
        return NULL;
    return live_object(image, at);
}

const struct ingest_object *ingest_object_at(struct prof_ingest *ingest, int64_t process,
                                             uint64_t address)
{
    const struct ingest_image *image = process_image(ingest, process);
    return image ? object_at(image, address) : NULL;
}

/* What lies in [start, end) is there no more. */
static void clear_range(struct ingest_image *image, uint64_t start, uint64_t end)
{
    size_t from = live_from(image, start), to = from;
    while (to < image->live.count && live_object(image, to)->start < end)
        to++;
    if (to == from)
        return;
    memmove(image->live.data + from, image->live.data + to,
            (image->live.count - to) * sizeof *image->live.data);
    image->live.count -= to - from;
}

static bool make_live(struct ingest_image *image, uint32_t number)
{
    const struct ingest_object *object = &image->objects.data[number];
    if (!prof_array_reserve(&image->live, 1))
        return false;
    clear_range(image, object->start, object->end);
    size_t at = live_from(image, object->start);
    memmove(image->live.data + at + 1, image->live.data + at,
            (image->live.count - at) * sizeof *image->live.data);
    image->live.data[at] = number;
    image->live.count++;
    return true;
}

static size_t mapping_key(const struct ingest_mapping *mapping, char key[KEY_BYTES])
{
    int length = snprintf(key, KEY_BYTES, "%llx %lld %s", (unsigned long long)mapping->address,
                          (long long)mapping->segment, mapping->path);
    return length < KEY_BYTES ? (size_t)length : KEY_BYTES - 1;
}

static bool is_same_build(const struct ingest_object *object, const char *build_id)
{
    return !build_id || !object->build_id[0] ||
           strncmp(object->build_id, build_id, sizeof object->build_id - 1) == 0;
}

/* Number of the object + 1 as it was mapped before; 0 = never. */
static uint32_t known_object(struct ingest_image *image, const struct ingest_mapping *mapping)
{
    char key[KEY_BYTES];
    const uint32_t *known = prof_names_get(&image->known, key, mapping_key(mapping, key));
    return known && is_same_build(&image->objects.data[*known], mapping->build_id) ? *known + 1 : 0;
}

/* Was the object seen before at this place? (Without a build id: in whatever version.) */
static bool ingest_is_mapped(struct prof_ingest *ingest, int64_t process,
                             const struct ingest_mapping *mapping)
{
    struct ingest_image *image = process_image(ingest, process);
    return image && known_object(image, mapping);
}

static bool add_object(struct ingest_image *image, const struct ingest_mapping *mapping,
                       int64_t row)
{
    char key[KEY_BYTES];
    size_t length = mapping_key(mapping, key);
    uint64_t room = UINT64_MAX - mapping->address;
    uint32_t number = (uint32_t)image->objects.count;
    struct ingest_object *object = prof_array_add(&image->objects);
    if (!object)
        return false;
    *object = (struct ingest_object){.start = mapping->address,
                                     .end = mapping->address +
                                            (mapping->bytes < room ? mapping->bytes : room),
                                     .row = row,
                                     .segment = mapping->segment};
    snprintf(object->build_id, sizeof object->build_id, "%s",
             mapping->build_id ? mapping->build_id : "");
    return prof_names_put(&image->known, key, length, number) && make_live(image, number);
}

static enum prof_status write_module(struct prof_ingest *ingest, int64_t process,
                                     const struct ingest_mapping *mapping)
{
    sqlite3_stmt *sql = ingest->insert[SCHEMA_module];
    ingest_bind(sql, COLUMN_AT(module, process), process);
    ingest_bind(sql, COLUMN_AT(module, start), (int64_t)(mapping->time_ns - ingest->zero_ns));
    ingest_bind_text(ingest, sql, COLUMN_AT(module, path), mapping->path);
    ingest_bind_text(ingest, sql, COLUMN_AT(module, build_id), mapping->build_id);
    ingest_bind(sql, COLUMN_AT(module, address), (int64_t)mapping->address);
    ingest_bind(sql, COLUMN_AT(module, bytes), (int64_t)mapping->bytes);
    ingest_bind_if(sql, COLUMN_AT(module, segment), mapping->segment >= 0, mapping->segment);
    return ingest_insert(ingest, SCHEMA_module);
}

/* A segment of an object that is there as a whole. */
static bool is_part(const struct ingest_image *image, const struct ingest_mapping *mapping)
{
    const struct ingest_object *object =
        mapping->segment < 0 ? NULL : object_at(image, mapping->address);
    struct ingest_mapping whole = *mapping;
    if (!object || object->segment >= 0 || mapping->bytes > object->end - mapping->address)
        return false;
    char key[KEY_BYTES];
    whole.address = object->start;
    whole.segment = -1;
    const uint32_t *known = prof_names_get(&image->known, key, mapping_key(&whole, key));
    return known && &image->objects.data[*known] == object &&
           is_same_build(object, mapping->build_id);
}

enum prof_status ingest_mapped(struct prof_ingest *ingest, int64_t process,
                               const struct ingest_mapping *mapping)
{
    struct ingest_image *image = process_image(ingest, process);
    if (!image)
        return ingest->error.status;
    uint32_t known = known_object(image, mapping);
    if (known)
        return ingest_memory(ingest, make_live(image, known - 1), "object files");
    if (is_part(image, mapping))
        return PROF_OK;
    PROF_TRY(write_module(ingest, process, mapping));
    return ingest_memory(ingest, add_object(image, mapping, sqlite3_last_insert_rowid(ingest->db)),
                         "object files");
}

enum prof_status ingest_unmapped(struct prof_ingest *ingest, int64_t process, uint64_t address,
                                 uint64_t time_ns)
{
    struct ingest_image *image = process_image(ingest, process);
    const struct ingest_object *object = image ? object_at(image, address) : NULL;
    if (!object)
        return ingest->error.status;
    sqlite3_stmt *sql = ingest->sql[INGEST_SQL_MODULE_END];
    ingest_bind(sql, 1, object->row);
    ingest_bind(sql, 2, (int64_t)(time_ns - ingest->zero_ns));
    clear_range(image, object->start, object->end);
    return ingest_run(ingest, INGEST_SQL_MODULE_END);
}

enum prof_status ingest_images_load(struct prof_ingest *ingest)
{
    sqlite3_stmt *row;
    enum prof_status status = ingest_query(ingest,
                                           "SELECT id,process,path,build_id,address,bytes,segment "
                                           "FROM module ORDER BY id",
                                           &row);
    while (!status && sqlite3_step(row) == SQLITE_ROW) {
        const char *path = (const char *)sqlite3_column_text(row, 2);
        struct ingest_mapping mapping = {.path = path ? path : "",
                                         .build_id = (const char *)sqlite3_column_text(row, 3),
                                         .address = (uint64_t)sqlite3_column_int64(row, 4),
                                         .bytes = (uint64_t)sqlite3_column_int64(row, 5),
                                         .segment = sqlite3_column_type(row, 6) == SQLITE_NULL
                                                        ? -1
                                                        : sqlite3_column_int64(row, 6)};
        struct ingest_image *image = process_image(ingest, sqlite3_column_int64(row, 1));
        bool put = image && add_object(image, &mapping, sqlite3_column_int64(row, 0));
        status = ingest_memory(ingest, put, "object files");
    }
    return ingest_query_end(ingest, row, status);
}

static void release_image(struct ingest_image *image)
{
    prof_array_free(&image->objects);
    prof_array_free(&image->live);
    prof_names_free(&image->known);
}

void ingest_image_forget(struct prof_ingest *ingest, int64_t process)
{
    const uint64_t *at = prof_map_get(&ingest->image_at, (uint64_t)process);
    if (at)
        release_image(&ingest->images.data[*at]);
}

void ingest_images_free(struct prof_ingest *ingest)
{
    for (size_t i = 0; i < ingest->images.count; i++)
        release_image(&ingest->images.data[i]);
    prof_array_free(&ingest->images);
    prof_map_free(&ingest->image_at);
}

/* ---- object files a process has mapped, read from outside ------------------------------------ */

/* Which object files a process has mapped, read from outside (/proc/PID/maps) when its spool is
 * found and once a second after that: the target is not involved, since its loader's lock is its
 * own. A library that comes and goes within a second may be missed; a collector that knows better
 * sends MODULE records (ingest_define.c). */

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
    PROF_FILE_CLOSED FILE *maps = fopen(name, "re");
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
    status = status ?: end_object(ingest, spool->process, &object);
    return status;
}
