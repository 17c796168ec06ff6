/* The places are those that gdb and elfutils look at, and the cache that a
 * debuginfod client fills; the network is not used. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "libprof/base/regular.h"
#include "libprof/symbols/symbols.h"

#define SYSTEM_FOLDER "/usr/lib/debug"

struct finder {
    const struct debug_search *search;
    struct elf_image *found;
    char *path;
    size_t size;
    const char *link; /* name in .gnu_debuglink; NULL = none */
    uint32_t crc;
};

static bool is_crc(const struct elf_image *image, uint32_t expected)
{
    uLong crc = crc32(0, NULL, 0);
    for (size_t at = 0; at < image->size;) {
        size_t part = image->size - at < (1u << 20) ? image->size - at : 1u << 20;
        crc = crc32(crc, image->data + at, (uInt)part);
        at += part;
    }
    return (uint32_t)crc == expected;
}

/* Does what was opened belong to the object? The build id says it; without one the checksum does.
 */
static bool belongs_to_object(const struct finder *f)
{
    if (f->search->build_id[0])
        return strcmp(f->found->build_id, f->search->build_id) == 0;
    return f->link && is_crc(f->found, f->crc);
}

static bool try_path(struct finder *f)
{
    if (f->search->image && strcmp(f->path, f->search->path) == 0)
        return false;
    if (elf_image_open(f->path, f->found))
        return false;
    if (belongs_to_object(f))
        return true;
    elf_image_close(f->found);
    return false;
}

static bool try_build_id(struct finder *f, const char *folder)
{
    const char *id = f->search->build_id;
    if (strlen(id) < 3)
        return false;
    int length = snprintf(f->path, f->size, "%s/.build-id/%.2s/%s.debug", folder, id, id + 2);
    return length > 0 && (size_t)length < f->size && try_path(f);
}

static bool try_name(struct finder *f, const char *folder, const char *between, const char *name)
{
    int length = snprintf(f->path, f->size, "%s%s%s%s", folder, between, *between ? "/" : "", name);
    return length > 0 && (size_t)length < f->size && try_path(f);
}

static bool try_folder(struct finder *f, const char *folder, const char *own)
{
    char with_slash[4200];
    snprintf(with_slash, sizeof with_slash, "%s/", folder);
    const char *base = strrchr(f->search->path, '/');
    return try_build_id(f, folder) ||
           (f->link && (try_name(f, folder, own[0] == '/' ? own : "", f->link) ||
                        try_name(f, with_slash, "", f->link))) ||
           (f->search->build_id[0] && base &&
            (try_name(f, folder, "", base) || try_name(f, with_slash, ".", base + 1)));
}

static bool try_cache(struct finder *f)
{
    const char *cache = getenv("DEBUGINFOD_CACHE_PATH"), *home = getenv("HOME");
    char folder[2048];
    if (cache && *cache)
        snprintf(folder, sizeof folder, "%s", cache);
    else if (home && *home)
        snprintf(folder, sizeof folder, "%s/.cache/debuginfod_client", home);
    else
        return false;
    int length = snprintf(f->path, f->size, "%s/%s/debuginfo", folder, f->search->build_id);
    return f->search->build_id[0] && length > 0 && (size_t)length < f->size && try_path(f);
}

/* .gnu_debuglink: a name, padding to 4, a CRC. */
static void read_link(struct finder *f)
{
    Elf64_Shdr section;
    const unsigned char *bytes;
    if (!f->search->image || !elf_image_find(f->search->image, ".gnu_debuglink", &section) ||
        !(bytes = elf_image_bytes(f->search->image, &section)))
        return;
    const unsigned char *end = memchr(bytes, 0, section.sh_size);
    size_t at = end ? ((size_t)(end - bytes) + 4) & ~(size_t)3 : 0;
    if (!end || end == bytes || at + 4 > section.sh_size ||
        memchr(bytes, '/', (size_t)(end - bytes)))
        return;
    f->link = (const char *)bytes;
    memcpy(&f->crc, bytes + at, sizeof f->crc);
}

bool debug_file_find(const struct debug_search *search, struct elf_image *found, char *path,
                     size_t size)
{
    struct finder f = {.search = search, .found = found, .path = path, .size = size};
    char own[4100];
    read_link(&f);
    snprintf(own, sizeof own, "%.*s", (int)(prof_file_name(search->path) - search->path),
             search->path);
    for (const char *folder = search->folders; *folder; folder += strlen(folder) + 1)
        if (try_folder(&f, folder, own))
            return true;
    return (f.link && (try_name(&f, own, "", f.link) || try_name(&f, own, ".debug", f.link))) ||
           try_folder(&f, SYSTEM_FOLDER, own) || try_cache(&f);
}
