/* What device.c, which lists devices, gets from those that find them (device_find.c) and measure
 * them (device_measure.c). */
#ifndef PERFKIT_CLI_DEVICE_H
#define PERFKIT_CLI_DEVICE_H

#include <limits.h>
#include <stdbool.h>

#include "libprof/base/format.h"
#include "libprof/include/prof.h"
#include "libprof/store/ceiling.h"

#define DEVICES 64

/* A device that this machine has, described as its collector would describe it in a capture. */
struct device_entry {
    struct prof_device device; /* its texts point to the fields below */
    char name[128], vendor[64], driver[64], uuid[64];
    const char *api;       /* "cuda", "opencl", "cpu" */
    uint32_t nth;          /* as perfkit-measure counts the devices of this API */
    double link_bandwidth; /* bytes/s each way of its PCIe link, theoretical; NaN = not known */
    struct prof_ceiling_file measured;
};

/* Texts live in memory of a child that is gone: fixed arrays only, pointers set afterwards. */
struct device_list {
    size_t count;
    struct device_entry entries[DEVICES];
};

/* The theoretical peak, from the device's attributes or its link; value NaN where not known. */
struct prof_ceiling device_peak(const struct device_entry *entry, enum prof_ceiling_kind kind);

/* The value in the kind's unit. */
struct prof_text device_figure(enum prof_ceiling_kind kind, double value);

/* Query a driver, in a child, for its devices: appended to the list (NULL: not wanted). `reply` is
 * a line about them, PROBE_REPLY bytes; false where there are none, and it says why. */
bool device_probe_cuda(struct device_list *list, char *reply);
bool device_probe_opencl(struct device_list *list, char *reply);

/* All devices of this machine, each API queried in a child of its own, with what was measured of
 * them before in `folder`; of that, what is above their peaks is left out. */
void device_find_all(struct device_list *list, const char *folder);

/* ---- measuring ------------------------------------------------------------------------------- */

struct device_request {
    const char *only; /* NULL = all ceilings */
    bool quick, against_libraries;
};

/* What a library reached (--against-libraries), or why a ceiling could not be measured. */
struct device_remark {
    char name[32], text[160];
    double value; /* NaN: none */
};

#define REMARKS 32

struct device_measurement {
    struct device_remark libraries[REMARKS], missing[REMARKS];
    size_t library_count, missing_count, measured;
};

/* Run perfkit-measure for the entry and put what it found into entry->measured; what is above the
 * device's peak goes to result->missing, with the two figures. */
enum prof_status device_measure(struct device_entry *entry, const struct device_request *request,
                                struct device_measurement *result, struct prof_error *err);

/* ---- where ceilings are kept ----------------------------------------------------------------- */

#define CEILING_FOLDER_VARIABLE "PERFKIT_CEILINGS"

/* PERFKIT_CEILINGS, else perfkit/ceilings in XDG_DATA_HOME, else in ~/.local/share. False: none of
 * them is set, or the path is too long. */
bool ceiling_folder(char out[PATH_MAX]);

/* Make it and the folders above it, as far as they are missing. False, and errno, when nothing can
 * be kept there. */
bool ceiling_folder_make(const char *folder);

#endif
