/* The build id among the notes of an object file: which build a file is of, whatever it is called.
 */
#ifndef PERFKIT_BASE_ELF_NOTE_H
#define PERFKIT_BASE_ELF_NOTE_H

#include <stdbool.h>
#include <stddef.h>

#define PROF_BUILD_ID_TEXT 129 /* the longest that is taken, with its NUL */

/* The note of type GNU_BUILD_ID in [notes, notes + bytes), as lower-case hexadecimal. The bytes may
 * be anything. False: there is none, or it is longer than PROF_BUILD_ID_TEXT. */
bool prof_build_id(const unsigned char *notes, size_t bytes, char text[PROF_BUILD_ID_TEXT]);

#endif
