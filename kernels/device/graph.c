/* Graphs: recording a queue's commands, where the backend can. */
#include <stdlib.h>

#include "kernels/device/backend.h"

int dev_graph_begin(struct dev_queue *queue)
{
    struct dev *dev = queue->dev;

    if (!dev->info.graphs)
        return dev_fail(dev, "dev_graph_begin", "%s has no graphs here",
                        dev_backend_name(dev->info.backend));
    if (queue->recording)
        return dev_fail(dev, "dev_graph_begin", "the queue is recording already");
    if (dev->ops->graph_begin(queue) != 0)
        return -1;
    queue->recording = true;
    return 0;
}

int dev_graph_end(struct dev_queue *queue, struct dev_graph **out)
{
    struct dev *dev = queue->dev;
    struct dev_graph *graph = calloc(1, sizeof *graph);
    struct dev_graph none = {.dev = dev};

    *out = NULL;
    if (!queue->recording) {
        free(graph);
        return dev_fail(dev, "dev_graph_end", "the queue is not recording");
    }
    queue->recording = false; /* the backend ends the recording even when it fails */
    if (graph)
        graph->dev = dev;
    if (dev->ops->graph_end(queue, graph ? graph : &none) != 0) {
        free(graph);
        return -1;
    }
    if (!graph) {
        dev->ops->graph_free(&none);
        return dev_fail(dev, "dev_graph_end", "out of host memory");
    }
    *out = graph;
    return 0;
}

void dev_graph_free(struct dev_graph *graph)
{
    if (!graph)
        return;
    graph->dev->ops->graph_free(graph);
    free(graph);
}
