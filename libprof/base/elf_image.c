/* Object files, checked before they are read. */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libprof/base/elf_image.h"

#define PAGE 4096ull
#define MOST_NOTES 64u /* that are searched: any number of them may be the same bytes */

static bool is_inside(const struct elf_image *image, uint64_t offset, uint64_t bytes)
{
    return offset <= image->size && bytes <= image->size - offset;
}

/* The i-th segment; false when it is not whole within the file. */
static bool elf_image_segment(const struct elf_image *image, uint32_t i, Elf64_Phdr *segment)
{
    uint64_t at = image->header.e_phoff + (uint64_t)i * sizeof *segment;
    if (i >= image->header.e_phnum || at < image->header.e_phoff ||
        !is_inside(image, at, sizeof *segment))
        return false;
    memcpy(segment, image->data + at, sizeof *segment);
    return true;
}

bool elf_image_section(const struct elf_image *image, uint32_t i, Elf64_Shdr *section)
{
    uint64_t at = image->header.e_shoff + (uint64_t)i * sizeof *section;
    if (i >= image->sections || at < image->header.e_shoff ||
        !is_inside(image, at, sizeof *section))
        return false;
    memcpy(section, image->data + at, sizeof *section);
    return true;
}

const unsigned char *elf_image_bytes(const struct elf_image *image, const Elf64_Shdr *section)
{
    if (section->sh_type == SHT_NOBITS || section->sh_flags & SHF_COMPRESSED ||
        !is_inside(image, section->sh_offset, section->sh_size))
        return NULL;
    return image->data + section->sh_offset;
}

const char *elf_image_text(const struct elf_image *image, const Elf64_Shdr *table, uint64_t offset)
{
    const unsigned char *bytes = elf_image_bytes(image, table);
    if (!bytes || offset >= table->sh_size || !memchr(bytes + offset, 0, table->sh_size - offset))
        return NULL;
    return (const char *)bytes + offset;
}

/* Compared where it is: a table may be one text without an end, and every section be named by it.
 */
static bool elf_text_is(const struct elf_image *image, const Elf64_Shdr *table, uint64_t offset,
                        const char *text, size_t length)
{
    const unsigned char *bytes = elf_image_bytes(image, table);
    return bytes && offset < table->sh_size && table->sh_size - offset > length &&
           memcmp(bytes + offset, text, length + 1) == 0;
}

uint32_t elf_image_find(const struct elf_image *image, const char *name, Elf64_Shdr *section)
{
    Elf64_Shdr names;
    uint32_t index = image->header.e_shstrndx;
    size_t length = strlen(name);
    if (index == SHN_XINDEX && elf_image_section(image, 0, &names))
        index = names.sh_link;
    if (!elf_image_section(image, index, &names))
        return 0;
    for (uint32_t i = 1; elf_image_section(image, i, section); i++) {
        if (elf_text_is(image, &names, section->sh_name, name, length))
            return i;
    }
    return 0;
}

static void find_image_build_id(struct elf_image *image)
{
    Elf64_Phdr segment;
    Elf64_Shdr section;
    uint32_t notes = 0;
    for (uint32_t i = 0; !image->build_id[0] && elf_image_segment(image, i, &segment); i++) {
        if (segment.p_type == PT_NOTE && is_inside(image, segment.p_offset, segment.p_filesz) &&
            notes++ < MOST_NOTES)
            prof_build_id(image->data + segment.p_offset, segment.p_filesz, image->build_id);
    }
    /* The segments of a separate debug file are those of the file it was taken out of. */
    for (uint32_t i = 1; !image->build_id[0] && elf_image_section(image, i, &section); i++) {
        const unsigned char *bytes = elf_image_bytes(image, &section);
        if (section.sh_type == SHT_NOTE && bytes && notes++ < MOST_NOTES)
            prof_build_id(bytes, section.sh_size, image->build_id);
    }
}

const char *elf_image_of(const void *data, size_t size, struct elf_image *image)
{
    *image = (struct elf_image){.data = data, .size = size};
    if (size < sizeof image->header || memcmp(data, ELFMAG, SELFMAG) != 0)
        return "it is no object file";
    memcpy(&image->header, data, sizeof image->header);
    const unsigned char *ident = image->header.e_ident;
    if (ident[EI_CLASS] != ELFCLASS64 || ident[EI_DATA] != ELFDATA2LSB)
        return "it is not of a 64-bit little-endian machine";
    if (image->header.e_phnum && image->header.e_phentsize != sizeof(Elf64_Phdr))
        return "its segments are of an unknown form";
    if (image->header.e_shentsize == sizeof(Elf64_Shdr)) {
        Elf64_Shdr first;
        image->sections = image->header.e_shnum ? image->header.e_shnum : 1;
        if (!image->header.e_shnum && elf_image_section(image, 0, &first))
            image->sections = first.sh_size < UINT32_MAX ? (uint32_t)first.sh_size : 0;
    }
    find_image_build_id(image);
    return NULL;
}

const char *elf_image_open(const char *path, struct elf_image *image)
{
    *image = (struct elf_image){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    if (fd < 0)
        return "it is not there, or may not be read";
    const char *why = NULL;
    void *data = MAP_FAILED;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        why = "it is no file";
    else if (st.st_size <= 0 ||
             (data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0)) == MAP_FAILED)
        why = "it is empty, or cannot be mapped";
    close(fd);
    if (why)
        return why;
    why = elf_image_of(data, (size_t)st.st_size, image);
    image->mapped = true;
    image->changed_s = st.st_mtime;
    if (why)
        elf_image_close(image);
    return why;
}

void elf_image_close(struct elf_image *image)
{
    if (image->mapped)
        munmap((void *)(uintptr_t)image->data, image->size);
    *image = (struct elf_image){0};
}

bool elf_image_address(const struct elf_image *image, int64_t segment, uint64_t offset,
                       uint64_t *address)
{
    Elf64_Phdr load;
    for (uint32_t i = 0; elf_image_segment(image, i, &load); i++) {
        if (load.p_type != PT_LOAD)
            continue;
        if (segment < 0) { /* the loader puts the first one lowest */
            *address = (load.p_vaddr & ~(PAGE - 1)) + offset;
            return true;
        }
        uint64_t at = (uint64_t)segment + offset;
        if (at >= load.p_offset && at - load.p_offset < load.p_filesz) {
            *address = load.p_vaddr + (at - load.p_offset);
            return true;
        }
    }
    return false;
}
