/* At what clocks the devices ran in the part of the run that is judged, by the samples that perfkit
 * took beside the program. */
#include <math.h>

#include "libprof/analysis/facts/facts.h"

/* Bits of device_clock.reasons that are no loss: nothing is to do; the user chose the clocks. */
#define IDLES 1
#define BY_CHOICE 2
#define MOST_MHZ 1000000 /* no clock runs that fast: damaged */

static bool add_clock_sample(void *user, sqlite3_stmt *row)
{
    struct prof_facts *f = user;
    int64_t start = prof_column_int(row, 1), mhz = prof_column_int(row, 2);
    int64_t most = prof_column_int(row, 3), reasons = prof_column_int(row, 4);
    const struct prof_device *device = prof_device(f->capture, prof_column_id(row, 0));
    const uint64_t *at = device ? prof_map_get(&f->device_index, (uint64_t)device->physical) : NULL;
    if (!at || !prof_facts_has(f, start))
        return true;
    struct prof_clock_facts *clocks = &f->devices.data[*at].clocks;
    int64_t lowering = reasons > 0 ? reasons & ~(int64_t)(IDLES | BY_CHOICE) : 0;
    clocks->samples++;
    clocks->lowered += lowering != 0;
    clocks->reasons |= lowering;
    bool told = mhz > 0 && mhz < MOST_MHZ && most > 0 && most < MOST_MHZ;
    if (!told || (reasons > 0 && reasons & IDLES))
        return true;
    clocks->working++;
    clocks->mhz += (double)mhz; /* sums until all samples are read */
    clocks->max_mhz += (double)most;
    return true;
}

enum prof_status prof_facts_clocks(struct prof_facts *f, struct prof_error *err)
{
    enum prof_status status =
        prof_scan(f->capture, "SELECT device, start, sm_mhz, sm_max_mhz, reasons FROM device_clock",
                  add_clock_sample, f, err);
    for (size_t i = 0; i < f->devices.count; i++) {
        struct prof_clock_facts *clocks = &f->devices.data[i].clocks;
        clocks->mhz = clocks->working ? clocks->mhz / (double)clocks->working : NAN;
        clocks->max_mhz = clocks->working ? clocks->max_mhz / (double)clocks->working : NAN;
    }
    return status;
}
