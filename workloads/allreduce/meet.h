/* How the ranks of a run find each other and tell each other small things: addresses of what is
 * fast, results, whether all could do something. Sockets between rank 0 and each other rank. */
#ifndef WORKLOADS_ALLREDUCE_MEET_H
#define WORKLOADS_ALLREDUCE_MEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MEET_RANKS 1024

struct meet {
    uint32_t rank, ranks;
    uint32_t local_rank;  /* among those of this machine */
    uint32_t local_ranks; /* as the launcher says; 0: it does not */
    uint32_t patience_s;  /* for the others to come */
    int *peers;           /* rank 0: of each rank, -1 for itself; others: that of rank 0 */
};

/* Is this process a rank already, as our own launcher, torchrun, Slurm or Open MPI say by its
 * environment? 1: who it is stands in `meet`. 0: no. -1: what the environment says makes no sense,
 * the reason in `why`. */
int meet_identity(struct meet *meet, char *why, size_t why_bytes);

/* Connects to the others: by the sockets that our launcher left, else over TCP to MASTER_ADDR,
 * MASTER_PORT. Waits `patience_s` for them, and says so on stderr after some seconds. 0, or -1 and
 * the reason in `why`. */
int meet_open(struct meet *meet, char *why, size_t why_bytes);
void meet_close(struct meet *meet);

/* Each rank gives `bytes` of `mine` and gets those of all in the order of ranks in `all`. Nobody
 * goes on before all came. -1 when a rank is gone. */
int meet_gather(struct meet *meet, const void *mine, size_t bytes, void *all);

/* Whether all ranks say yes; the reason of the first that does not in `why` then. */
bool meet_agree(struct meet *meet, bool yes, char *why, size_t why_bytes);

/* Starts `ranks` processes of this program with the same arguments, each of which meet_identity
 * knows, and waits for them. When one fails the others are ended. The exit status of the first that
 * failed, 0 when none did. */
int meet_launch(const char *program, uint32_t ranks, char **argv);

#endif
