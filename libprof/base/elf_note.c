/* See elf_note.h. */
#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "libprof/base/elf_note.h"

bool prof_build_id(const unsigned char *notes, size_t bytes, char text[PROF_BUILD_ID_TEXT])
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
