/* The build id among the notes of an object file: which build a file is of, whatever it is called.
 */
#ifndef PERFKIT_BASE_ELF_NOTE_H
#define PERFKIT_BASE_ELF_NOTE_H

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

#endif
