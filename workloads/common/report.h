/* The parts of a workload's output that are the same in all: who measured on what, and the members
 * of a measurement. Rows and columns of its own are each workload's affair.
 */
#ifndef WORKLOADS_COMMON_REPORT_H
#define WORKLOADS_COMMON_REPORT_H

#include "workloads/common/json.h"
#include "workloads/common/measure.h"
#include "workloads/common/options.h"
#include "workloads/common/table.h"

/* The first line: the workload and the device. */
void report_title(const char *workload, const struct dev_info *info);

/* Opens the object on stdout that --json prints; what follows are the workload's own members, then
 * json_object_end. */
void report_json_begin(struct json *json, const char *workload, const struct dev_info *info,
                       const struct common_options *common);

void stats_json(struct json *json, const char *key, const struct stats *stats);

/* Members kernel_ns, transfer_ns, host_ns, wall_ns, and what an iteration did. */
void measurement_json(struct json *json, const struct measurement *measured);

/* Members components and components_total_ns: where the time of an iteration went, `count` parts
 * that sum to it. */
void components_json(struct json *json, const char *const *names, const double *mean_ns,
                     size_t count);

/* Members about the verification; none when there was none. */
void check_json(struct json *json, const struct check *check);
void check_cell(struct table *table, const struct check *check);

/* Whether a check that was done failed; it says so on stderr then. */
bool check_failed(const char *workload, const char *variant, const struct check *check);

#endif
