/* Which rank a process is, as launchers say it by the environment. Words that make no sense are
 * refused: a rank that took itself for none would start ranks of its own, beside the others. */
#include <stdio.h>
#include <stdlib.h>

#include "workloads/allreduce/meet.h"

static const struct launcher {
    const char *rank, *ranks, *local_rank, *local_ranks;
    bool strict; /* nobody but a launcher sets these */
} launchers[] = {
    {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", true},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", true},
    {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE", false},
};

static const char *text_of(const char *name)
{
    const char *text = getenv(name);

    return text && *text ? text : NULL;
}

/* The number in a variable; false where there is none. */
static bool variable(const char *name, uint32_t *out)
{
    const char *text = text_of(name);
    char *end;
    unsigned long number;

    if (!text || *text < '0' || *text > '9')
        return false;
    number = strtoul(text, &end, 10);
    *out = (uint32_t)number;
    return !*end && number <= MEET_RANKS;
}

/* Both numbers, 0 when neither is there, -1 and the reason. */
static int read_numbers(const struct launcher *launcher, struct meet *meet, char *why,
                        size_t why_bytes)
{
    const char *rank = text_of(launcher->rank), *ranks = text_of(launcher->ranks);

    if (variable(launcher->rank, &meet->rank) && variable(launcher->ranks, &meet->ranks) &&
        meet->rank < meet->ranks)
        return 1;
    if (!launcher->strict || (!rank && !ranks))
        return 0;
    snprintf(why, why_bytes,
             "%s is %s and %s is %s: take a rank from 0 on, of 1 to %d ranks, or unset both",
             launcher->rank, rank ? rank : "not set", launcher->ranks, ranks ? ranks : "not set",
             MEET_RANKS);
    return -1;
}

int meet_identity(struct meet *meet, char *why, size_t why_bytes)
{
    for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; i++) {
        struct meet found = {.patience_s = meet->patience_s};
        int known = read_numbers(&launchers[i], &found, why, why_bytes);

        if (known < 0)
            return -1;
        /* Slurm's own variables are also in a job's only shell, from which ranks are to start. */
        if (known == 0 || (found.ranks == 1 && i > 0))
            continue;
        if (!variable(launchers[i].local_rank, &found.local_rank))
            found.local_rank = found.rank;
        variable(launchers[i].local_ranks, &found.local_ranks);
        *meet = found;
        return 1;
    }
    return 0;
}
