/* An object file in memory, every part of it checked before it is read: the file may be damaged,
 * made up, or still being written. 64-bit little-endian only, which is what programs with GPUs are.
 */
#ifndef PERFKIT_BASE_ELF_IMAGE_H
#define PERFKIT_BASE_ELF_IMAGE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define PROF_BUILD_ID_TEXT 129 /* the longest that is taken, with its NUL */

/* The note of type GNU_BUILD_ID in [notes, notes + bytes), as lower-case hexadecimal. The bytes may
 * be anything. False: there is none, or it is longer than PROF_BUILD_ID_TEXT. */
static inline bool prof_build_id(const unsigned char *notes, size_t bytes,
                                 char text[PROF_BUILD_ID_TEXT])
{
    while (bytes >= sizeof(Elf64_Nhdr)) {
        Elf64_Nhdr note; /* of 32-bit files the same */
        memcpy(&note, notes, sizeof note);
        uint64_t name = (note.n_namesz + 3ull) & ~3ull,
                 description = (note.n_descsz + 3ull) & ~3ull;
        if (name + description > bytes - sizeof note)
            return false;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
            memcmp(notes + sizeof note, "GNU", 4) == 0 && note.n_descsz &&
            note.n_descsz * 2ull < PROF_BUILD_ID_TEXT) {
            for (uint32_t i = 0; i < note.n_descsz; i++)
                snprintf(text + i * 2, 3, "%02x", notes[sizeof note + name + i]);
            return true;
        }
        notes += sizeof note + name + description;
        bytes -= sizeof note + (size_t)(name + description);
    }
    return false;
}

struct elf_image {
    const unsigned char *data;
    size_t size;
    bool mapped; /* elf_image_close unmaps it */
    Elf64_Ehdr header;
    uint32_t sections;                 /* also where there are more than the header can say */
    char build_id[PROF_BUILD_ID_TEXT]; /* "" = none */
    int64_t changed_s; /* when the file was changed, seconds since 1970; 0 = no file */
};

/* NULL when all is well, else why it cannot be read. Close only what was opened. */
const char *elf_image_open(const char *path, struct elf_image *image);
/* What is in memory already and stays there. */
const char *elf_image_of(const void *data, size_t size, struct elf_image *image);
void elf_image_close(struct elf_image *image);

/* Its bytes, NULL when there are none in the file (as in separate debug files). */
const unsigned char *elf_image_bytes(const struct elf_image *image, const Elf64_Shdr *section);

/* The i-th section; false when it is not whole within the file. */
bool elf_image_section(const struct elf_image *image, uint32_t i, Elf64_Shdr *section);

/* The text at `offset` of a string table, NULL when it does not end within it. */
const char *elf_image_text(const struct elf_image *image, const Elf64_Shdr *table, uint64_t offset);

/* Number of the section of this name; 0 = there is none. */
uint32_t elf_image_find(const struct elf_image *image, const char *name, Elf64_Shdr *section);

/* What addresses of the file an address of the request is: see symbols_request.segment. False:
 * none. */
bool elf_image_address(const struct elf_image *image, int64_t segment, uint64_t offset,
                       uint64_t *address);

#endif
