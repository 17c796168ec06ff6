/* Copies between CUDA devices, for their ceiling. All that needs a second device is here, and
 * leaves the calling thread's current device as it was: the rest of the backend relies on that. */
#include <cuda_runtime_api.h>

#include "kernels/device/backend.h"
#include "kernels/device/cuda_check.h"

uint32_t cuda_peers(void)
{
    int count = 0;

    return cudaGetDeviceCount(&count) == cudaSuccess && count > 1 ? (uint32_t)count - 1 : 0;
}

/* The runtime's number of the n-th other device. */
static int ordinal_of(int own, uint32_t peer)
{
    return (int)peer < own ? (int)peer : (int)peer + 1;
}

/* Memory of each, and whether copies go from one to the other or by way of the host. */
struct pair {
    int own, other;
    void *from, *to;
    int direct;
};

static int open_pair(struct dev *dev, uint32_t peer, size_t bytes, struct pair *pair)
{
    int result = check(dev, "cudaGetDevice", cudaGetDevice(&pair->own));

    if (result != 0)
        return result;
    pair->other = ordinal_of(pair->own, peer);
    if (cudaDeviceCanAccessPeer(&pair->direct, pair->own, pair->other) == cudaSuccess &&
        pair->direct) {
        cudaDeviceEnablePeerAccess(pair->other, 0); /* it may be on already */
        cudaGetLastError();
    }
    result = check(dev, "cudaMalloc", cudaMalloc(&pair->from, bytes));
    if (result == 0)
        result = check(dev, "cudaSetDevice", cudaSetDevice(pair->other));
    if (result == 0)
        result = check(dev, "cudaMalloc", cudaMalloc(&pair->to, bytes));
    cudaSetDevice(pair->own);
    return result;
}

static void close_pair(const struct pair *pair)
{
    cudaFree(pair->from);
    cudaFree(pair->to); /* of whichever device it is */
}

static int time_copy(struct dev_queue *queue, const struct pair *pair, size_t bytes, uint64_t *ns)
{
    struct dev_event *begin = NULL, *end = NULL;
    int result = dev_mark(queue, &begin);

    if (result == 0)
        result = check(queue->dev, "cudaMemcpyPeerAsync",
                       cudaMemcpyPeerAsync(pair->to, pair->other, pair->from, pair->own, bytes,
                                           queue->handle));
    if (result == 0)
        result = dev_mark(queue, &end);
    if (result == 0)
        result = dev_event_wait(end);
    if (result == 0)
        result = dev_elapsed_ns(begin, end, ns);
    dev_event_release(begin);
    dev_event_release(end);
    return result;
}

int cuda_peer_copy(struct dev_queue *queue, uint32_t peer, size_t bytes, int rounds,
                   struct dev_peer *out)
{
    struct pair pair = {.from = NULL};
    int result = open_pair(queue->dev, peer, bytes, &pair);

    *out = (struct dev_peer){.best_ns = UINT64_MAX};
    for (int i = 0; i < rounds && result == 0; i++) {
        uint64_t ns = 0;

        result = time_copy(queue, &pair, bytes, &ns);
        if (ns > 0 && ns < out->best_ns)
            out->best_ns = ns;
    }
    close_pair(&pair);
    out->ordinal = (uint32_t)pair.other;
    out->direct = pair.direct;
    return result;
}
