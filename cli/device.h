/* The parts of `perfkit device`: finding devices (device_find.c, device_cuda.c, device_opencl.c),
 * measuring one (device_measure.c), what it cannot be (device_ceiling.c), printing (device.c). */
#ifndef PERFKIT_CLI_DEVICE_H
#define PERFKIT_CLI_DEVICE_H

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

/* Append the devices of an API. Loads vendor libraries: to be called in a child. */
void device_add_cuda(struct device_list *list);
void device_add_opencl(struct device_list *list);

/* The next entry, blank, with everything unknown; NULL when the list is full. */
struct device_entry *device_add(struct device_list *list, const char *api, uint32_t nth);

/* The theoretical peak, from the device's attributes or its link; value NaN where not known. */
struct prof_ceiling device_peak(const struct device_entry *entry, enum prof_ceiling_kind kind);

/* Leaves out of entry->measured what is above a peak: earlier versions kept that. */
void device_drop_impossible(struct device_entry *entry);

/* The value in the kind's unit. */
struct prof_text device_figure(enum prof_ceiling_kind kind, double value);

/* All devices of this machine, each API asked in a child of its own, with what was measured of them
 * before in `folder`; of that, what is above their peaks is left out. */
void device_find_all(struct device_list *list, const char *folder);

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

#endif
