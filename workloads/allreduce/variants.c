/* The variants: gradients added up beside the backward pass or behind it, in buckets of any size,
 * by NCCL or by way of the host, and with a rank that is slow. */
#include "workloads/allreduce/workload.h"

#define SMALL_SHARE 16 /* of a bucket */

const struct variant variants[] = {
    {.name = "no-overlap",
     .summary = "gradients are added up when the backward pass is over",
     .nccl = true},
    {.name = "overlap",
     .summary = "each bucket is added up while the rest of the backward pass runs",
     .nccl = true,
     .overlap = true},
    {.name = "buckets-small",
     .summary = "the same with buckets of a sixteenth: many operations",
     .nccl = true,
     .overlap = true,
     .buckets = BUCKETS_SMALL},
    {.name = "buckets-one",
     .summary = "one bucket, so that there is nothing to overlap",
     .nccl = true,
     .overlap = true,
     .buckets = BUCKETS_ONE},
    {.name = "slow-rank",
     .summary = "overlap, and one rank does more than the others (planted: --slow-rank)",
     .nccl = true,
     .overlap = true,
     .slow = true},
    {.name = "host-no-overlap", .summary = "no-overlap by way of the host's memory, without NCCL"},
    {.name = "host-overlap", .summary = "overlap by way of the host's memory", .overlap = true},
    {.name = "host-buckets-small",
     .summary = "buckets-small by way of the host's memory",
     .overlap = true,
     .buckets = BUCKETS_SMALL},
    {.name = "host-buckets-one",
     .summary = "buckets-one by way of the host's memory",
     .overlap = true,
     .buckets = BUCKETS_ONE},
    {.name = "host-slow-rank",
     .summary = "slow-rank by way of the host's memory",
     .overlap = true,
     .slow = true},
};
const size_t variant_count = sizeof variants / sizeof variants[0];

size_t bucket_of(const struct allreduce_options *options, const struct variant *variant)
{
    switch (variant->buckets) {
    case BUCKETS_ASKED:
        break;
    case BUCKETS_SMALL:
        return options->bucket_bytes / SMALL_SHARE;
    case BUCKETS_ONE:
        return SIZE_MAX;
    }
    return options->bucket_bytes;
}
