/* Folders that appear under their name only when they are whole. */
#ifndef PERFKIT_STORE_EXCHANGE_FOLDER_H
#define PERFKIT_STORE_EXCHANGE_FOLDER_H

#include <stdbool.h>

#include "libprof/base/error.h"

/* Can a folder be put at `output`? Yes where nothing is, or an empty folder; with `overwrite` also
 * where a folder holds nothing but files whose names end in `suffix`, which replacing it removes.
 * PROF_EXISTS, PROF_INVALID not such a folder. */
enum prof_status folder_free(const char *output, const char *suffix, bool overwrite,
                             struct prof_error *err);

/* A new empty folder beside `output`; its name is malloc'ed. PROF_IO, PROF_NOMEM. */
enum prof_status folder_temporary(const char *output, char **temporary, struct prof_error *err);

/* Gives it the name `output`, after folder_free said that it can, and removes what was there. */
enum prof_status folder_put(const char *temporary, const char *output, const char *suffix,
                            struct prof_error *err);

/* Removes a folder and the files in it whose names end in `suffix`; NULL allowed. Not an error when
 * something remains. */
void folder_remove(const char *path, const char *suffix);

#endif
