/* The ceilings of one device: its theoretical peaks, and that nothing measured stands above them.
 * A benchmark that a compiler saw through gives a figure that looks like any other; once kept,
 * every roofline of the device would be drawn under it. */
#include <math.h>

#include "cli/device.h"

struct prof_ceiling device_peak(const struct device_entry *entry, enum prof_ceiling_kind kind)
{
    struct prof_ceiling peak = prof_peak(&entry->device, kind);
    if ((kind == PROF_CEILING_HTOD_PINNED || kind == PROF_CEILING_DTOH_PINNED) &&
        !isnan(entry->link_bandwidth)) {
        peak.value = entry->link_bandwidth;
        peak.how = "lanes x transfers per second of the PCIe link";
    }
    return peak;
}

struct prof_text device_figure(enum prof_ceiling_kind kind, double value)
{
    switch (prof_ceiling_of(kind).unit) {
    case PROF_CEILING_BYTES:
        return prof_rate(value);
    case PROF_CEILING_FLOP:
        return prof_flop_rate(value);
    case PROF_CEILING_NS:
        break;
    }
    return prof_duration(value);
}

void device_drop_impossible(struct device_entry *entry)
{
    struct prof_ceiling_file *file = &entry->measured;
    size_t kept = 0;
    for (size_t i = 0; i < file->count; i++) {
        enum prof_ceiling_kind kind = prof_ceiling_named(file->rows[i].name);
        if (kind == PROF_CEILINGS ||
            prof_ceiling_possible(file->rows[i].value, device_peak(entry, kind).value))
            file->rows[kept++] = file->rows[i];
    }
    file->count = kept;
}
