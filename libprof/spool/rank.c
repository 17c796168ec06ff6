/* The variables of the launchers, innermost first; see rank.h.
 *
 * Sources: torchrun (docs/source/elastic/run.rst of PyTorch), Open MPI 4 and 5, MVAPICH2, the Hydra
 * process manager of MPICH and Intel MPI, PMIx, and srun(1). Slurm gives every batch script the
 * rank 0 too: only what srun started has SLURM_STEP_NUM_TASKS. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/spool/rank.h"

static const struct {
    const char *rank, *local_rank, *world_size;
    const char *needs; /* a variable without which the others do not count; NULL = none */
} launchers[] = {
    {"RANK", "LOCAL_RANK", "WORLD_SIZE", NULL},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE", NULL},
    {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_SIZE", NULL},
    {"PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE", NULL},
    {"SLURM_PROCID", "SLURM_LOCALID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NUM_TASKS"},
    {"PMIX_RANK", "PMIX_LOCAL_RANK", "PMIX_SIZE", NULL},
};

/* The scheduler's name first: it is the same on every host of the run. torchrun without a
 * rendezvous calls every run "none". */
static const char *const jobs[] = {"SLURM_JOB_ID", "PBS_JOBID",           "LSB_JOBID",
                                   "FLUX_JOB_ID",  "TORCHELASTIC_RUN_ID", "PMIX_NAMESPACE",
                                   "PMI_JOBID"};

/* A plain decimal number, or -1. */
static int32_t environment_number(const char *name)
{
    const char *text = getenv(name);
    int64_t value = 0;
    if (!text || !*text)
        return -1;
    for (; *text >= '0' && *text <= '9' && value < INT32_MAX; text++)
        value = value * 10 + (*text - '0');
    return *text || value >= INT32_MAX ? -1 : (int32_t)value;
}

const char *prof_rank_misread(void)
{
    for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; i++) {
        if (getenv(launchers[i].rank) && (!launchers[i].needs || getenv(launchers[i].needs)))
            return launchers[i].rank;
    }
    return NULL;
}

static void read_job_id(char job[PROF_RANK_JOB_BYTES])
{
    job[0] = '\0';
    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++) {
        const char *text = getenv(jobs[i]);
        if (!text || !*text || !strcmp(text, "none"))
            continue;
        size_t length = strnlen(text, PROF_RANK_JOB_BYTES - 1);
        memcpy(job, text, length);
        job[length] = '\0';
        return;
    }
}

void prof_rank_read(struct prof_rank *rank)
{
    *rank = (struct prof_rank){.rank = -1, .local_rank = -1, .world_size = -1};
    for (size_t i = 0; rank->rank < 0 && i < sizeof launchers / sizeof launchers[0]; i++) {
        if (launchers[i].needs && !getenv(launchers[i].needs))
            continue;
        int32_t found = environment_number(launchers[i].rank),
                size = environment_number(launchers[i].world_size);
        if (found < 0 || size == 0 || (size > 0 && found >= size))
            continue;
        rank->rank = found;
        rank->local_rank = environment_number(launchers[i].local_rank);
        rank->world_size = size;
    }
    read_job_id(rank->job);
}
