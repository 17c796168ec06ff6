/* cuda_parity: copies between every kind of memory, and fills. */
#include "parity.h"

void mode_copies()
{
    enum { BYTES = 1 << 20, SMALL = 4096 };
    cudaStream_t stream;
    DO(cudaStreamCreateWithFlags, &stream, cudaStreamNonBlocking);
    char *a = device_memory(BYTES), *b = device_memory(BYTES), *pinned = pinned_memory(BYTES);
    char *pageable = (char *)calloc(1, BYTES), *other = (char *)calloc(1, BYTES);
    DO(cudaMemcpyAsync, a, pinned, BYTES, cudaMemcpyHostToDevice, stream);
    copied(COPY_HTOD, PINNED, DEVICE, BYTES);
    DO(cudaMemcpyAsync, pinned, a, BYTES / 2, cudaMemcpyDeviceToHost, stream);
    copied(COPY_DTOH, DEVICE, PINNED, BYTES / 2);
    DO(cudaMemcpyAsync, b, a, BYTES / 4, cudaMemcpyDeviceToDevice, stream);
    copied(COPY_DTOD, DEVICE, DEVICE, BYTES / 4);
    WAIT(cudaStreamSynchronize, 3, stream);
    DO(cudaMemcpy, a, pageable, SMALL, cudaMemcpyHostToDevice);
    copied(COPY_HTOD, PAGEABLE, DEVICE, SMALL);
    DO(cudaMemcpy, pageable, a, SMALL / 2, cudaMemcpyDeviceToHost);
    copied(COPY_DTOH, DEVICE, PAGEABLE, SMALL / 2);
    DO(cudaMemcpy, other, pageable, 1234, cudaMemcpyHostToHost);
    copied(COPY_HTOH, PAGEABLE, PAGEABLE, 1234);
    DO(cudaMemcpy, a, pinned, 777, cudaMemcpyDefault);
    copied(COPY_HTOD, PINNED, DEVICE, 777);
    /* rows of 1000 bytes */
    DO(cudaMemcpy2DAsync, a, 2048, pinned, 1024, 1000, 100, cudaMemcpyHostToDevice, stream);
    copied(COPY_HTOD, PINNED, DEVICE, 100000);
    DO(cudaMemcpy2DAsync, b, 2048, a, 2048, 1000, 50, cudaMemcpyDeviceToDevice, stream);
    copied(COPY_DTOD, DEVICE, DEVICE, 50000);
    cudaMemcpy3DParms box = {};
    box.srcPtr = make_cudaPitchedPtr(a, 512, 400, 16);
    box.dstPtr = make_cudaPitchedPtr(b, 1024, 400, 32);
    box.extent = make_cudaExtent(400, 10, 5);
    box.kind = cudaMemcpyDeviceToDevice;
    DO(cudaMemcpy3DAsync, &box, stream);
    copied(COPY_DTOD, DEVICE, DEVICE, 400 * 10 * 5);
    WAIT(cudaStreamSynchronize, 3, stream);
    free_device(a);
    free_device(b);
    free_pinned(pinned);
    DO(cudaStreamDestroy, stream);
    free(pageable);
    free(other);
}

void mode_arrays()
{
    enum { WIDTH = 256, HEIGHT = 64, BYTES = WIDTH * HEIGHT };
    cudaStream_t stream;
    DO(cudaStreamCreate, &stream);
    cudaChannelFormatDesc format_ = cudaCreateChannelDesc<unsigned char>();
    cudaArray_t one, two;
    DO(cudaMallocArray, &one, &format_, WIDTH, HEIGHT, 0);
    DO(cudaMallocArray, &two, &format_, WIDTH, HEIGHT, 0);
    done.n("arrays", "all", 2);
    char *pinned = pinned_memory(BYTES), *device = device_memory(BYTES);
    DO(cudaMemcpy2DToArrayAsync, one, 0, 0, pinned, WIDTH, WIDTH, HEIGHT, cudaMemcpyHostToDevice,
       stream);
    copied(COPY_HTOA, PINNED, ARRAY, BYTES);
    DO(cudaMemcpy2DFromArrayAsync, pinned, WIDTH, one, 0, 0, WIDTH, HEIGHT, cudaMemcpyDeviceToHost,
       stream);
    copied(COPY_ATOH, ARRAY, PINNED, BYTES);
    DO(cudaMemcpy2DToArrayAsync, two, 0, 0, device, WIDTH, WIDTH, HEIGHT, cudaMemcpyDeviceToDevice,
       stream);
    copied(COPY_DTOA, DEVICE, ARRAY, BYTES);
    DO(cudaMemcpy2DFromArrayAsync, device, WIDTH, two, 0, 0, WIDTH, HEIGHT,
       cudaMemcpyDeviceToDevice, stream);
    copied(COPY_ATOD, ARRAY, DEVICE, BYTES);
    WAIT(cudaStreamSynchronize, 3, stream);
    DO(cudaMemcpy2DArrayToArray, two, 0, 0, one, 0, 0, WIDTH, HEIGHT, cudaMemcpyDeviceToDevice);
    copied(COPY_ATOA, ARRAY, ARRAY, BYTES);
    WAIT_DEVICE_NOW();
    DO(cudaFreeArray, one);
    DO(cudaFreeArray, two);
    free_device(device);
    free_pinned(pinned);
    DO(cudaStreamDestroy, stream);
}

void mode_fills()
{
    enum { BYTES = 1 << 20 };
    cudaStream_t stream;
    DO(cudaStreamCreate, &stream);
    char *p = device_memory(BYTES);
    DO(cudaMemset, p, 1, 100001);
    filled(100001);
    DO(cudaMemsetAsync, p, 2, 4096, stream);
    filled(4096);
    DO(cudaMemset2D, p, 2048, 3, 1000, 100);
    filled(100000);
    DO(cudaMemset2DAsync, p, 2048, 4, 500, 10, stream);
    filled(5000);
    WAIT(cudaStreamSynchronize, 3, stream);
    WAIT_DEVICE_NOW();
    free_device(p);
    DO(cudaStreamDestroy, stream);
}

void mode_peer()
{
    int devices = 0;
    CHECK(cudaGetDeviceCount(&devices));
    if (devices < 2) {
        done.skip("peer", "one GPU");
        return;
    }
    enum { BYTES = 1 << 20 };
    char *here = device_memory(BYTES);
    CHECK(cudaSetDevice(1));
    char *there = device_memory(BYTES);
    CHECK(cudaSetDevice(0));
    int can = 0;
    CHECK(cudaDeviceCanAccessPeer(&can, 0, 1));
    if (can)
        CHECK(cudaDeviceEnablePeerAccess(1, 0));
    for (int i = 0; i < 4; i++)
        DO(cudaMemcpyPeerAsync, there, 1, here, 0, BYTES, 0);
    copied(COPY_PTOP, DEVICE, DEVICE, BYTES, 4);
    WAIT_DEVICE_NOW();
    free_device(here);
    CHECK(cudaSetDevice(1));
    launch_plain((float *)there);
    launched("parity_plain", 1, 32, 0, 1);
    WAIT_DEVICE_NOW();
    free_device(there);
    CHECK(cudaSetDevice(0));
    done.n("devices", "working", 2);
}
