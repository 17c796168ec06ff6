/* The roofline's view of exact counts (prof_exact.h): FLOP by pipe and bytes of a few launches,
 * taken for all launches of the same configuration, which is what they are the same in. */
#include <math.h>

#include "libprof/analysis/roofline.h"

void prof_roofline_exact_add(struct prof_roofline_exact *sum, const struct prof_exact_row *row,
                             int64_t duration_ns)
{
    sum->flop += row->flop;
    sum->dram += row->dram_read + row->dram_write;
    sum->l2 += row->l2;
    for (int i = 0; i < PROF_CEILINGS; i++)
        sum->pipe[i] += row->pipe[i];
    sum->worked++;
    sum->worked_ns = prof_add(sum->worked_ns, duration_ns);
}

static void set_roof_bytes(struct prof_roof *roof, double bytes)
{
    roof->bytes = bytes;
    roof->source = isnan(bytes) ? PROF_WORK_NONE : PROF_WORK_COUNTERS;
}

/* The pipe that its FLOP would keep busy longest. */
static void put_pipe(struct prof_roofline_point *point, struct prof_roofline_facts *facts,
                     const struct prof_roofline_exact *sum, const struct prof_ceilings *ceilings)
{
    double busiest = 0;
    for (int i = 0; i < PROF_CEILINGS; i++) {
        const struct prof_ceiling *roof =
            sum->pipe[i] > 0 ? prof_ceiling_find(ceilings, point->device, (enum prof_ceiling_kind)i)
                             : NULL;
        if (!roof || !(sum->pipe[i] / roof->value > busiest))
            continue;
        busiest = sum->pipe[i] / roof->value;
        point->pipe = roof->kind;
        point->pipe_share = busiest / ((double)sum->worked_ns * 1e-9);
        facts->pipe_counted = true;
    }
}

void prof_roofline_exact_put(struct prof_roofline_point *point, struct prof_roofline_facts *facts,
                             const struct prof_roofline_exact *sum,
                             const struct prof_ceilings *ceilings)
{
    bool known = !isnan(sum->flop);
    if (!sum->worked || (!known && point->flop_source))
        return;
    point->worked = sum->worked;
    point->worked_ns = sum->worked_ns;
    set_roof_bytes(&point->roofs[PROF_ROOF_DRAM], sum->dram);
    set_roof_bytes(&point->roofs[PROF_ROOF_L2], sum->l2);
    point->flop = sum->flop;
    point->flop_source = known ? PROF_WORK_COUNTERS : PROF_WORK_NONE;
    if (known)
        put_pipe(point, facts, sum, ceilings);
}
