/* Files that are installed with perfkit or that it loads, and questions to libraries that may
 * crash. */
#ifndef PERFKIT_CLI_INSTALLED_H
#define PERFKIT_CLI_INSTALLED_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "libprof/base/error.h"

/* ---- files beside perfkit -------------------------------------------------------------------- */

/* Files that are installed with perfkit, found from its own place, so that any prefix will do and a
 * moved one too. */

/* The first of `places` (ends with NULL; patterns, relative to the folder of this executable) that
 * can be read, as a real path. False: none, or errno says why it cannot be known; `out` is then
 * that folder. */
bool beside_self(const char *const *places, char out[PATH_MAX]);

/* ---- the collector --------------------------------------------------------------------------- */

/* PERFKIT_COLLECTOR when set, else relative to this executable: ../lib of the build folder, or
 * lib, lib64 or lib/TRIPLET with perfkit/ below the same prefix. Absolute, readable. */
enum prof_status collector_path(char out[PATH_MAX], struct prof_error *err);

/* ---- questions to libraries ------------------------------------------------------------------ */

#define PROBE_REPLY 400 /* bytes that a probe may answer */

/* Run `probe` in a child. Its answer is the text it leaves in reply[size]; by agreement one that
 * starts with '!' says what is missing. False: it crashed or took longer than ten seconds; `reply`
 * then says which. Descriptors 1 and 2 of the child go nowhere. */
bool probe_run(void (*probe)(void *context, char *reply, size_t size), void *context, char *reply,
               size_t size);

/* ---- the OpenCL loader ----------------------------------------------------------------------- */

/* Which OpenCL loader a program gets, and whether it knows layers. */

#define OPENCL_LOADER_NAME "libOpenCL.so.1"

struct opencl_loader {
    char path[PATH_MAX];   /* "" = there is none */
    bool layers;           /* it reads OPENCL_LAYERS */
    char better[PATH_MAX]; /* when it does not: folder of another one here that does, or "" */
};

void opencl_loader_find(struct opencl_loader *loader);

/* What perfkit calls of it. Vendor libraries are loaded: in a child. Returns why not, or NULL. */
typedef void *opencl_handle;
struct opencl_calls {
    int (*platforms)(uint32_t, opencl_handle *, uint32_t *);
    int (*devices)(opencl_handle, uint64_t, uint32_t, opencl_handle *, uint32_t *);
    int (*info)(opencl_handle, uint32_t, size_t, void *, size_t *);
};
const char *opencl_load(struct opencl_calls *calls);

#endif
