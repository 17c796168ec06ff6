/* Ranks of processes that no launcher told who they are. */
#ifndef PERFKIT_STORE_INGEST_RANK_H
#define PERFKIT_STORE_INGEST_RANK_H

#include "libprof/base/error.h"

struct prof_ingest;

/* When all rows are in: a process without a rank, or with one that others of NCCL's processes have
 * too, gets what it told NCCL when it made its largest communicator: process.rank and world_size.
 * Only where that leaves no doubt: one rank in the process, no other process with the same one, no
 * larger communicator elsewhere. */
enum prof_status ingest_ranks_of_nccl(struct prof_ingest *ingest);

#endif
