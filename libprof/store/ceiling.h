/* Ceilings that were measured on this machine, one small JSON file per device, and their way into
 * captures.
 *
 * A file belongs to a device under one driver: its name is made from the API, the UUID (or, where
 * the API has none, the device's name) and the driver's version, and it repeats them.
 * docs/reference/kept-files.md describes it. */
#ifndef PERFKIT_STORE_CEILING_H
#define PERFKIT_STORE_CEILING_H

#include <stddef.h>
#include <stdint.h>

#include "libprof/store/store.h"

#define PROF_CEILING_ROWS 64 /* more than there are kinds */

struct prof_ceiling_row {
    char name[32];
    double value;
    int64_t date_s; /* seconds since 1970 */
    char how[160];
};

struct prof_ceiling_file {
    char api[16], name[160], uuid[64], driver[80]; /* as table `device` has them; "" = NULL there */
    struct prof_ceiling_row rows[PROF_CEILING_ROWS];
    size_t count;
};

/* Add or replace a row. False when there is no room, or the name or value cannot be kept. */
bool prof_ceiling_set(struct prof_ceiling_file *file, const char *name, double value,
                      int64_t date_s, const char *how);

/* Remove the row of this name, if there is one. */
void prof_ceiling_unset(struct prof_ceiling_file *file, const char *name);

/* The path of the file for file->api, uuid, name, driver in `folder`; PROF_INVALID when too long.
 */
enum prof_status prof_ceiling_path(const char *folder, const struct prof_ceiling_file *file,
                                   char *path, size_t size, struct prof_error *err);

/* Fill file->rows from the file of this device. PROF_NOTFOUND: it was never measured. PROF_FORMAT:
 * not such a file, another device's, or an earlier or later perfkit's. */
enum prof_status prof_ceiling_read(const char *folder, struct prof_ceiling_file *file,
                                   struct prof_error *err);

/* Write it, whole or not at all; makes the folder, not those above it. */
enum prof_status prof_ceiling_write(const char *folder, const struct prof_ceiling_file *file,
                                    struct prof_error *err);

/* Put the measured ceilings of the capture's devices into its table `ceiling`, in place of what is
 * there; without `costs`, not what recording costs. Devices without a file are left out; so are
 * those whose file cannot be read, which is reported when the others are in. */
enum prof_status prof_ceiling_attach(struct prof_store *store, const char *folder, bool costs,
                                     struct prof_error *err);

#endif
