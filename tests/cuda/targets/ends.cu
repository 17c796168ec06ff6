/* A CUDA program that launches and then ends in the way its argument names. Every launch is complete
 * on the device before the end.
 *
 *     cuda_ends return|exit|_exit|abort|kill|fork|threads LAUNCHES [SETTLE_MS] */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cuda_runtime.h>

extern "C" __global__ void ends_kernel(int *data)
{
    data[0]++;
}

static void launch(int count)
{
    int *data;
    if (cudaMalloc(&data, sizeof *data) != cudaSuccess)
        _exit(3);
    for (int i = 0; i < count; i++)
        ends_kernel<<<1, 1>>>(data);
    if (cudaDeviceSynchronize() != cudaSuccess)
        _exit(4);
}

static void *other_thread(void *)
{
    exit(0);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "return";
    launch(argc > 2 ? atoi(argv[2]) : 1000);
    if (argc > 3)
        usleep((useconds_t)atoi(argv[3]) * 1000);
    if (strcmp(how, "exit") == 0)
        exit(0);
    if (strcmp(how, "_exit") == 0)
        _exit(0);
    if (strcmp(how, "abort") == 0)
        abort();
    if (strcmp(how, "kill") == 0)
        kill(getpid(), SIGKILL);
    if (strcmp(how, "threads") == 0) { /* another thread ends the process */
        pthread_t thread;
        pthread_create(&thread, NULL, other_thread, NULL);
        pthread_join(thread, NULL);
    }
    if (strcmp(how, "fork") == 0) { /* the child must not send the parent's records again */
        pid_t child = fork();
        if (child == 0)
            exit(0);
        int status = 0;
        waitpid(child, &status, 0);
        return status != 0;
    }
    return 0;
}
