/* The environments of launchers, as their processes see them, and which of them counts. */
#include <stdlib.h>
#include <string.h>

#include "libprof/spool/rank.h"
#include "tests/check_main.h"

static void expect(char *const *variables, int rank, int local_rank, int world_size,
                   const char *job)
{
    struct prof_rank found;
    clearenv();
    for (; *variables; variables++)
        putenv(*variables);
    prof_rank_read(&found);
    ck_assert_int_eq(found.rank, rank);
    ck_assert_int_eq(found.local_rank, local_rank);
    ck_assert_int_eq(found.world_size, world_size);
    ck_assert_str_eq(found.job, job);
}
#define EXPECT(rank, local, world, job, ...)                                                       \
    expect((char *[]){__VA_ARGS__, NULL}, rank, local, world, job)

START_TEST(each_launcher)
{
    EXPECT(3, 1, 8, "", "RANK=3", "LOCAL_RANK=1", "WORLD_SIZE=8");
    EXPECT(5, 1, 8, "prterun-7@1", "OMPI_COMM_WORLD_RANK=5", "OMPI_COMM_WORLD_LOCAL_RANK=1",
           "OMPI_COMM_WORLD_SIZE=8", "PMIX_RANK=5", "PMIX_NAMESPACE=prterun-7@1");
    EXPECT(0, 0, 2, "", "PMI_RANK=0", "MPI_LOCALRANKID=0", "PMI_SIZE=2");
    EXPECT(2, 0, 4, "", "MV2_COMM_WORLD_RANK=2", "MV2_COMM_WORLD_LOCAL_RANK=0",
           "MV2_COMM_WORLD_SIZE=4");
    EXPECT(7, 3, 16, "4711", "SLURM_PROCID=7", "SLURM_LOCALID=3", "SLURM_STEP_NUM_TASKS=16",
           "SLURM_NTASKS=16", "SLURM_JOB_ID=4711");
    EXPECT(1, -1, -1, "ns", "PMIX_RANK=1", "PMIX_NAMESPACE=ns");
}
END_TEST

START_TEST(which_one_counts)
{
    /* torchrun, started once a host by srun: the ranks are torchrun's, the job is Slurm's. */
    EXPECT(9, 1, 16, "4711", "RANK=9", "LOCAL_RANK=1", "WORLD_SIZE=16", "TORCHELASTIC_RUN_ID=none",
           "SLURM_PROCID=1", "SLURM_LOCALID=0", "SLURM_STEP_NUM_TASKS=2", "SLURM_JOB_ID=4711");
    /* A batch script is no rank, though Slurm says so. */
    EXPECT(-1, -1, -1, "4711", "SLURM_PROCID=0", "SLURM_LOCALID=0", "SLURM_NTASKS=8",
           "SLURM_JOB_ID=4711");
    /* Not what a launcher sets: the next one is asked. */
    EXPECT(2, -1, -1, "", "RANK=high", "PMI_RANK=2");
    EXPECT(2, -1, -1, "", "RANK=", "PMI_RANK=2");
    EXPECT(2, -1, -1, "", "RANK=-1", "PMI_RANK=2");
    EXPECT(2, -1, 4, "", "RANK=8", "WORLD_SIZE=8", "PMI_RANK=2", "PMI_SIZE=4");
    EXPECT(-1, -1, -1, "", "RANK=99999999999999999999");
    EXPECT(-1, -1, -1, "", "HOME=/");
}
END_TEST

START_TEST(a_long_job_is_cut)
{
    char job[200] = "PBS_JOBID=";
    memset(job + strlen(job), 'x', 150);
    struct prof_rank found;
    clearenv();
    putenv(job);
    prof_rank_read(&found);
    ck_assert_uint_eq(strlen(found.job), PROF_RANK_JOB_BYTES - 1);
}
END_TEST

CHECK_MAIN("rank", each_launcher, which_one_counts, a_long_job_is_cut)
