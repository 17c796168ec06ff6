/* What the names of kernels and NVTX ranges say about collective operations, in one place: used by
 * merging, the analyses of ranks and the rules. Names are NCCL's own (src/device and
 * src/collectives.cc of its releases), MPI's, and perfkit's for programs that declare theirs. */
#include "libprof/gpu/collective_name.h"

#include <math.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

const char *prof_collective_name(enum prof_collective operation)
{
    static const char *const names[] = {
#define X(operation, name) name,
        PROF_COLLECTIVE_MAP(X)
#undef X
    };
    return (unsigned)operation < PROF_COLLECTIVES ? names[operation] : "other";
}

/* Words as NCCL and MPI write them, but for case. Longer ones first where one begins another. */
static const struct {
    const char *word;
    enum prof_collective operation;
} words[] = {
    {"AllReduce", PROF_COLLECTIVE_ALL_REDUCE},
    {"AllGather", PROF_COLLECTIVE_ALL_GATHER},
    {"AllGatherv", PROF_COLLECTIVE_ALL_GATHER},
    {"ReduceScatter", PROF_COLLECTIVE_REDUCE_SCATTER},
    {"Reduce_scatter", PROF_COLLECTIVE_REDUCE_SCATTER},
    {"Reduce_scatter_block", PROF_COLLECTIVE_REDUCE_SCATTER},
    {"Broadcast", PROF_COLLECTIVE_BROADCAST},
    {"Bcast", PROF_COLLECTIVE_BROADCAST},
    {"Reduce", PROF_COLLECTIVE_REDUCE},
    {"AllToAll", PROF_COLLECTIVE_ALL_TO_ALL},
    {"AllToAllv", PROF_COLLECTIVE_ALL_TO_ALL},
    {"Gather", PROF_COLLECTIVE_GATHER},
    {"Gatherv", PROF_COLLECTIVE_GATHER},
    {"Scatter", PROF_COLLECTIVE_SCATTER},
    {"Scatterv", PROF_COLLECTIVE_SCATTER},
    {"Barrier", PROF_COLLECTIVE_BARRIER},
    {"SendRecv", PROF_COLLECTIVE_SEND_RECV},
    {"Send", PROF_COLLECTIVE_SEND},
    {"Recv", PROF_COLLECTIVE_RECV},
    {"Wait", PROF_COLLECTIVE_WAIT},
    {"Waitall", PROF_COLLECTIVE_WAIT},
    {"Waitany", PROF_COLLECTIVE_WAIT},
    {"Waitsome", PROF_COLLECTIVE_WAIT},
    {"PutSignal", PROF_COLLECTIVE_OTHER},
    {"Signal", PROF_COLLECTIVE_OTHER},
    {"WaitSignal", PROF_COLLECTIVE_OTHER},
    {"Generic", PROF_COLLECTIVE_OTHER},
};
#define WORDS (sizeof words / sizeof *words)

static enum prof_collective whole_word(const char *text, size_t length)
{
    for (size_t i = 0; i < WORDS; i++)
        if (strlen(words[i].word) == length && strncasecmp(text, words[i].word, length) == 0)
            return words[i].operation;
    return PROF_COLLECTIVE_NONE;
}

/* Kernels before 2.8 are ncclAllReduceRingLLKernel_sum_f32: the longest word that it begins with.
 */
static enum prof_collective first_word(const char *text)
{
    enum prof_collective found = PROF_COLLECTIVE_OTHER;
    size_t longest = 0;
    for (size_t i = 0; i < WORDS; i++) {
        size_t length = strlen(words[i].word);
        if (length > longest && strncmp(text, words[i].word, length) == 0) {
            found = words[i].operation;
            longest = length;
        }
    }
    return found;
}

static const char *after(const char *text, const char *prefix)
{
    size_t length = strlen(prefix);
    return strncmp(text, prefix, length) == 0 ? text + length : NULL;
}

/* "void name<...>(...)" begins with what it returns. */
static const char *plain_name(const char *name)
{
    const char *rest = after(name, "void ");
    return rest ? rest : name;
}

enum prof_collective prof_collective_kernel(const char *name)
{
    static const char *const prefixes[] = {"ncclDevKernel_", "ncclKernel_", "ncclSymkDevKernel_",
                                           "ncclSymDevKernel_"};
    static const char *const one_node[] = {"one_shot_all_reduce_kernel",
                                           "two_shot_all_reduce_kernel",
                                           "multimem_all_reduce_kernel", "cross_device_reduce_"};
    if (!name)
        return PROF_COLLECTIVE_NONE;
    const char *plain = plain_name(name);
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        const char *rest = after(plain, prefixes[i]);
        enum prof_collective found =
            rest ? whole_word(rest, strcspn(rest, "_(< ")) : PROF_COLLECTIVE_NONE;
        if (rest)
            return found ? found : PROF_COLLECTIVE_OTHER;
    }
    const char *old = after(plain, "nccl");
    const char *end = plain + strcspn(plain, "(< ");
    const char *kernel = old ? strstr(old, "Kernel_") : NULL;
    if (kernel && kernel < end)
        return first_word(old);
    for (size_t i = 0; i < sizeof one_node / sizeof *one_node; i++)
        if (strstr(plain, one_node[i]))
            return PROF_COLLECTIVE_ALL_REDUCE;
    return PROF_COLLECTIVE_NONE;
}

static enum prof_collective declared(const char *name)
{
    for (int i = PROF_COLLECTIVE_NONE + 1; i < PROF_COLLECTIVES; i++) {
        if (strcmp(name, prof_collective_name((enum prof_collective)i)) == 0)
            return (enum prof_collective)i;
    }
    return PROF_COLLECTIVE_NONE;
}

enum prof_collective prof_collective_range(const char *domain, const char *name)
{
    if (!name)
        return PROF_COLLECTIVE_NONE;
    const char *mpi = after(name, "MPI_");
    if (mpi)
        return whole_word(mpi, strlen(mpi));
    if (!domain)
        return PROF_COLLECTIVE_NONE;
    if (strcmp(domain, "perfkit.collective") == 0)
        return declared(name);
    const char *nccl = after(name, "nccl");
    return nccl && strcmp(domain, "NCCL") == 0 ? whole_word(nccl, strlen(nccl))
                                               : PROF_COLLECTIVE_NONE;
}

enum prof_collective prof_collective_pytorch(const char *name)
{
    static const char *const ends[] = {"base", "coalesced"};
    char plain[32];
    size_t length = 0;
    for (; *name && length < sizeof plain - 1; name++)
        if (*name != '_')
            plain[length++] = *name;
    for (size_t i = 0; i < 2; i++) {
        size_t end = strlen(ends[i]);
        length -= length > end && !memcmp(plain + length - end, ends[i], end) ? end : 0;
    }
    if (length == strlen("reducescatter") && !strncmp(plain, "reducescatter", length))
        return PROF_COLLECTIVE_REDUCE_SCATTER;
    return whole_word(plain, length);
}

bool prof_collective_joins_all(enum prof_collective operation)
{
    return operation == PROF_COLLECTIVE_ALL_REDUCE || operation == PROF_COLLECTIVE_ALL_GATHER ||
           operation == PROF_COLLECTIVE_REDUCE_SCATTER || operation == PROF_COLLECTIVE_ALL_TO_ALL ||
           operation == PROF_COLLECTIVE_BARRIER;
}

double prof_collective_bytes(enum prof_collective operation, int64_t bytes, int64_t ranks)
{
    if (bytes < 0)
        return NAN;
    switch (operation) {
    case PROF_COLLECTIVE_ALL_REDUCE:
    case PROF_COLLECTIVE_BROADCAST:
    case PROF_COLLECTIVE_REDUCE:
    case PROF_COLLECTIVE_SEND:
    case PROF_COLLECTIVE_RECV:
    case PROF_COLLECTIVE_SEND_RECV:
        return (double)bytes;
    case PROF_COLLECTIVE_ALL_GATHER: /* a message is what one rank gives, or gets */
    case PROF_COLLECTIVE_REDUCE_SCATTER:
    case PROF_COLLECTIVE_ALL_TO_ALL:
    case PROF_COLLECTIVE_GATHER:
    case PROF_COLLECTIVE_SCATTER:
        return ranks > 0 ? (double)bytes * (double)ranks : NAN;
    default:
        return NAN;
    }
}

double prof_collective_bus_factor(enum prof_collective operation, int64_t ranks)
{
    double n = (double)ranks;
    switch (operation) {
    case PROF_COLLECTIVE_ALL_REDUCE:
        return ranks > 0 ? 2 * (n - 1) / n : NAN;
    case PROF_COLLECTIVE_ALL_GATHER:
    case PROF_COLLECTIVE_REDUCE_SCATTER:
    case PROF_COLLECTIVE_ALL_TO_ALL:
    case PROF_COLLECTIVE_GATHER:
    case PROF_COLLECTIVE_SCATTER:
        return ranks > 0 ? (n - 1) / n : NAN;
    case PROF_COLLECTIVE_BROADCAST:
    case PROF_COLLECTIVE_REDUCE:
    case PROF_COLLECTIVE_SEND:
    case PROF_COLLECTIVE_RECV:
    case PROF_COLLECTIVE_SEND_RECV:
        return 1;
    default:
        return NAN;
    }
}
