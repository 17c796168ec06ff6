/* The flame graphs of two captures in one file, `stack BASE CAND` with ns of device time: what
 * flamegraph.pl and its kin draw as the difference, red where the second is wider. A stack that one
 * side lacks has 0 there. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/flame_lines.h"
#include "report/gate.h"
#include "report/writers.h"

enum prof_status prof_gate_flamegraph(struct prof_capture *base, struct prof_capture *cand,
                                      FILE *out, bool is_empty[2], struct prof_error *err)
{
    struct prof_flame_lines a = {0}, b = {0};
    enum prof_status status = prof_flame_lines(base, NULL, PROF_FLAME_DEVICE_NS, &a, err);
    status = status ? status : prof_flame_lines(cand, NULL, PROF_FLAME_DEVICE_NS, &b, err);
    is_empty[0] = a.count == 0;
    is_empty[1] = b.count == 0;
    for (size_t i = 0, j = 0; !status && (i < a.count || j < b.count);) {
        int order = i == a.count ? 1 : j == b.count ? -1 : strcmp(a.rows[i].stack, b.rows[j].stack);
        const char *stack = order <= 0 ? a.rows[i].stack : b.rows[j].stack;
        int64_t before = order <= 0 ? a.rows[i++].weight : 0;
        int64_t after = order >= 0 ? b.rows[j++].weight : 0;
        fprintf(out, "%s %" PRId64 " %" PRId64 "\n", stack, before, after);
    }
    prof_flame_lines_free(&a);
    prof_flame_lines_free(&b);
    return status ? status : prof_report_flush(out, err);
}
