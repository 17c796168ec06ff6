/* Copies to another device of the same kind, where the backend has such. */
#include "kernels/device/backend.h"

uint32_t dev_peers(const struct dev *dev)
{
    return dev->ops->peers ? dev->ops->peers() : 0;
}

int dev_peer_copy(struct dev_queue *queue, uint32_t peer, size_t bytes, int rounds,
                  struct dev_peer *out)
{
    if (peer >= dev_peers(queue->dev))
        return dev_fail(queue->dev, "dev_peer_copy", "there is no other device");
    return queue->dev->ops->peer_copy(queue, peer, bytes, rounds, out);
}
