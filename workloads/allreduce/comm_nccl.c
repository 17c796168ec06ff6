/* All-reduce by NCCL, loaded at run time through prototypes of our own: the program links and
 * starts without it. The operations go into a queue of their own, each behind what makes its part
 * of the gradient, so that they run beside the rest of the backward pass. NCCL tells profilers
 * about itself (its NVTX domain), so nothing is declared here. */
#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/device/symbols.h"
#include "workloads/allreduce/comm.h"

#define LIBRARY "PERFKIT_NCCL" /* in the environment: the library's file */
#define CALLS 4096             /* of a step: more fails */

/* nccl.h: ncclUniqueId, ncclFloat32, ncclSum. */
struct unique_id {
    char internal[128];
};
enum { FLOAT32 = 7, SUM = 0, SUCCESS = 0 };

struct nccl {
    struct comm base;
    void *handle; /* ncclComm_t */
    struct dev_queue *queue;
    struct dev_event *calls[CALLS]; /* of the running step, where times are taken */
    size_t call_count;
    int (*get_unique_id)(struct unique_id *id);
    int (*init_rank)(void **comm, int ranks, struct unique_id id, int rank);
    int (*all_reduce)(const void *send, void *receive, size_t count, int type, int operation,
                      void *comm, void *stream);
    int (*destroy)(void *comm);
    const char *(*error_text)(int status);
};

static struct nccl *self(struct comm *comm)
{
    return (struct nccl *)comm;
}

/* ---- the library ----------------------------------------------------------------------------- */

#define WHEEL "lib/python3*/*-packages/nvidia/nccl/lib/libnccl.so.2"

/* PyTorch's wheels bring one that the loader does not know of: beside each interpreter on the PATH.
 */
static void *load_from_wheels(void)
{
    const char *path = getenv("PATH");
    glob_t found = {.gl_pathc = 0};
    void *object = NULL;
    char pattern[4096];

    glob("~/.local/" WHEEL, GLOB_TILDE, NULL, &found);
    glob("~/.pyenv/versions/*/" WHEEL, GLOB_TILDE | GLOB_APPEND, NULL, &found);
    while (path && *path) {
        size_t length = strcspn(path, ":");

        snprintf(pattern, sizeof pattern, "%.*s/../" WHEEL, (int)length, path);
        glob(pattern, GLOB_APPEND, NULL, &found);
        path += length + (path[length] == ':');
    }
    for (size_t i = 0; i < found.gl_pathc && !object; i++)
        object = dlopen(found.gl_pathv[i], RTLD_NOW | RTLD_LOCAL);
    globfree(&found);
    return object;
}

/* Once, and for good: threads of its own may outlive what they worked for. */
static void *load(void)
{
    static void *object;
    const char *named = getenv(LIBRARY);
    bool is_named = named && *named;

    if (!object)
        object = dlopen(is_named ? named : "libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!object && !is_named)
        object = load_from_wheels();
    return object;
}

static bool resolve(struct nccl *nccl, void *object)
{
    const struct library_symbol symbols[] = {
        {"ncclGetUniqueId", &nccl->get_unique_id}, {"ncclCommInitRank", &nccl->init_rank},
        {"ncclAllReduce", &nccl->all_reduce},      {"ncclCommDestroy", &nccl->destroy},
        {"ncclGetErrorString", &nccl->error_text},
    };

    return library_symbols(object, symbols, sizeof symbols / sizeof symbols[0]);
}

/* ---- a step ---------------------------------------------------------------------------------- */

struct piece {
    struct nccl *nccl;
    float *at;
    size_t count;
};

static int call_all_reduce(void *stream, void *context)
{
    const struct piece *piece = context;
    struct nccl *nccl = piece->nccl;
    int status =
        nccl->all_reduce(piece->at, piece->at, piece->count, FLOAT32, SUM, nccl->handle, stream);

    if (status == SUCCESS)
        return 0;
    return dev_fail(nccl->base.session->dev, "ncclAllReduce", "%s", nccl->error_text(status));
}

/* `later` starts what it gets from now on behind what `earlier` has. */
static int order(struct dev_queue *earlier, struct dev_queue *later)
{
    struct dev_event *mark = NULL;
    int result = dev_mark(earlier, &mark);

    if (result == 0)
        result = dev_queue_wait(later, mark);
    dev_event_release(mark);
    return result;
}

static int nccl_reduce(struct comm *comm, size_t first, size_t count)
{
    struct nccl *nccl = self(comm);
    struct piece piece = {nccl, (float *)dev_buffer_address(comm->gradient) + first, count};
    struct dev_event **event = NULL;

    if (!comm->session->untimed) {
        if (nccl->call_count == CALLS)
            return dev_fail(comm->session->dev, "buckets",
                            "more than %d in a step: take larger ones", CALLS);
        event = &nccl->calls[nccl->call_count++];
    }
    if (order(comm->session->queue, nccl->queue) != 0)
        return -1;
    return dev_call(nccl->queue, call_all_reduce, &piece, event);
}

static int nccl_finish(struct comm *comm)
{
    return order(self(comm)->queue, comm->session->queue);
}

static int nccl_take_time(struct comm *comm, double *ns)
{
    struct nccl *nccl = self(comm);
    int result = 0;

    *ns = 0;
    for (size_t i = 0; i < nccl->call_count; i++) {
        uint64_t duration = 0;

        if (nccl->calls[i] && dev_event_duration_ns(nccl->calls[i], &duration) != 0)
            result = -1;
        *ns += (double)duration;
        dev_event_release(nccl->calls[i]);
        nccl->calls[i] = NULL;
    }
    nccl->call_count = 0;
    return result;
}

/* ---- opening --------------------------------------------------------------------------------- */

static void nccl_close(struct comm *comm)
{
    struct nccl *nccl = self(comm);

    for (size_t i = 0; i < nccl->call_count; i++)
        dev_event_release(nccl->calls[i]);
    if (nccl->handle)
        nccl->destroy(nccl->handle);
    dev_queue_destroy(nccl->queue);
    free(nccl);
}

static const struct comm_ops nccl_ops = {
    .name = "NCCL",
    .reduce = nccl_reduce,
    .finish = nccl_finish,
    .take_time = nccl_take_time,
    .close = nccl_close,
};

/* What each rank needs before they can meet in NCCL. */
static bool prepare(struct nccl *nccl, struct session *session, char *why, size_t why_bytes)
{
    enum dev_backend backend = dev_info(session->dev)->backend;
    void *object;

    /* Another library with NCCL's functions may be named for memory of the host. */
    if (backend == DEV_OPENCL || (backend == DEV_CPU && !getenv(LIBRARY))) {
        snprintf(why, why_bytes, "NCCL is for CUDA only");
        return false;
    }
    object = load();
    if (!object)
        snprintf(why, why_bytes, "no libnccl.so.2 on this machine (" LIBRARY " may name one)");
    else if (!resolve(nccl, object))
        snprintf(why, why_bytes, "libnccl.so.2 lacks a function");
    else if (dev_queue_create(session->dev, &nccl->queue) != 0)
        snprintf(why, why_bytes, "%s", dev_error_text(session->dev));
    else
        return true;
    return false;
}

/* All ranks must call ncclCommInitRank, or those that do wait for ever. */
static bool join(struct nccl *nccl, struct meet *meet, char *why, size_t why_bytes)
{
    struct unique_id mine = {{0}}, *all = calloc(meet->ranks, sizeof *all);
    int status = meet->rank == 0 && all ? nccl->get_unique_id(&mine) : SUCCESS;
    bool ready = all && status == SUCCESS;

    if (!ready)
        snprintf(why, why_bytes, "%s", all ? nccl->error_text(status) : "out of memory");
    ready =
        meet_agree(meet, ready, why, why_bytes) && meet_gather(meet, &mine, sizeof mine, all) == 0;
    if (ready) {
        status = nccl->init_rank(&nccl->handle, (int)meet->ranks, all[0], (int)meet->rank);
        if (status != SUCCESS)
            snprintf(why, why_bytes, "ncclCommInitRank: %s", nccl->error_text(status));
        ready = meet_agree(meet, status == SUCCESS, why, why_bytes);
    }
    free(all);
    return ready;
}

void comm_open_nccl(struct meet *meet, struct session *session, struct comm **out, char *why,
                    size_t why_bytes)
{
    struct nccl *nccl = calloc(1, sizeof *nccl);
    bool ready = false;

    *out = NULL;
    if (nccl) {
        nccl->base = (struct comm){.ops = &nccl_ops, .meet = meet, .session = session};
        ready = prepare(nccl, session, why, why_bytes);
    } else {
        snprintf(why, why_bytes, "out of memory");
    }
    if (meet_agree(meet, ready, why, why_bytes) && join(nccl, meet, why, why_bytes))
        *out = &nccl->base;
    else if (nccl)
        nccl_close(&nccl->base);
}
