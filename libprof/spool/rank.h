/* Which part of a distributed run a process is, by what its launcher put into the environment.
 * Shared by the collector (each process of its own) and by `perfkit run` (names of captures). */
#ifndef PERFKIT_SPOOL_RANK_H
#define PERFKIT_SPOOL_RANK_H

#include <stdint.h>

#define PROF_RANK_JOB_BYTES 64u

/* -1 and "" = unknown. */
struct prof_rank {
    int32_t rank;       /* 0 ... world_size - 1 */
    int32_t local_rank; /* among the processes of this host */
    int32_t world_size;
    char job[PROF_RANK_JOB_BYTES]; /* the scheduler's or launcher's name of the run, cut */
};

/* Read the environment. All three numbers come from the same launcher: the innermost one that gave
 * this process a rank (torchrun within a Slurm step counts its processes, Slurm counts hosts).
 * Calls getenv and nothing else: no allocation; not while another thread changes the environment.
 */
void prof_rank_read(struct prof_rank *rank);

/* Where prof_rank_read finds no rank: the name of a launcher's variable for it that is set all the
 * same, and means none; NULL = none is set. Static. */
const char *prof_rank_misread(void);

#endif
