/* cuda_parity: graphs, captured and made by hand. */
#include "parity.h"

extern "C" __global__ void parity_node(float *data)
{
    data[threadIdx.x] *= 2.0f;
}

static void replay(cudaGraph_t graph, cudaStream_t stream, int launches)
{
    cudaGraphExec_t exec;
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < launches; i++)
        DO(cudaGraphLaunch, exec, stream);
    done.n("graph_launches", "all", launches);
    WAIT(cudaStreamSynchronize, 3, stream);
    DO(cudaGraphExecDestroy, exec);
}

static void node_kernels(const char *name, int count, int launches)
{
    launched(name, 1, 32, 0, count * launches);
    done.n("graph_kernels", name, count * launches);
}

/* 3 kernels, a copy and a fill, captured; instantiated twice; then a clone. */
void mode_graph_capture()
{
    cudaStream_t stream;
    DO(cudaStreamCreateWithFlags, &stream, cudaStreamNonBlocking);
    float *data = (float *)device_memory(4096), *other = (float *)device_memory(4096);
    cudaGraph_t graph, clone;
    DO(cudaStreamBeginCapture, stream, cudaStreamCaptureModeThreadLocal);
    for (int i = 0; i < 3; i++)
        parity_node<<<1, 32, 0, stream>>>(data);
    DO(cudaMemcpyAsync, other, data, 256, cudaMemcpyDeviceToDevice, stream);
    DO(cudaMemsetAsync, data, 0, 512, stream);
    DO(cudaStreamEndCapture, stream, &graph);
    done.n("captured", "launch", 3);
    done.n("captured", "transfer");
    done.n("captured", "memset");
    replay(graph, stream, 10);
    replay(graph, stream, 5);
    DO(cudaGraphClone, &clone, graph);
    replay(clone, stream, 4);
    node_kernels("parity_node", 3, 19);
    copied(COPY_DTOD, DEVICE, DEVICE, 256, 19);
    filled(512, 19);
    DO(cudaGraphDestroy, clone);
    DO(cudaGraphDestroy, graph);
    free_device(data);
    free_device(other);
    DO(cudaStreamDestroy, stream);
}

void mode_graph_manual()
{
    cudaStream_t stream;
    DO(cudaStreamCreate, &stream);
    float *data = (float *)device_memory(4096), *other = (float *)device_memory(4096);
    cudaGraph_t graph;
    DO(cudaGraphCreate, &graph, 0);
    cudaGraphNode_t fill, first, copy, second;
    cudaMemsetParams fill_of = {};
    fill_of.dst = data;
    fill_of.elementSize = 4;
    fill_of.width = 256;
    fill_of.height = 1;
    DO(cudaGraphAddMemsetNode, &fill, graph, NULL, 0, &fill_of);
    void *arguments[] = {&data};
    cudaKernelNodeParams kernel = {};
    kernel.func = plain_kernel();
    kernel.gridDim = dim3(1);
    kernel.blockDim = dim3(32);
    kernel.kernelParams = arguments;
    DO(cudaGraphAddKernelNode, &first, graph, &fill, 1, &kernel);
    DO(cudaGraphAddMemcpyNode1D, &copy, graph, &first, 1, other, data, 1024,
       cudaMemcpyDeviceToDevice);
    DO(cudaGraphAddKernelNode, &second, graph, &copy, 1, &kernel);
    replay(graph, stream, 3);
    replay(graph, stream, 2);
    node_kernels("parity_plain", 2, 5);
    copied(COPY_DTOD, DEVICE, DEVICE, 1024, 5);
    filled(1024, 5);
    DO(cudaGraphDestroy, graph);
    free_device(data);
    free_device(other);
    DO(cudaStreamDestroy, stream);
}
