/* Processes that fork around the driver's start.
 *
 *     cuda_forks before CHILDREN LAUNCHES   children fork before cuInit and each launch; so does
 * the parent, after the fork cuda_forks after CHILDREN LAUNCHES    the parent launches, then forks
 * children that use no GPU and end by return, exit and _exit in turn, then launches cuda_forks exec
 * CHILDREN LAUNCHES     the parent launches, then forks and executes itself, which launches */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "did.h"

extern "C" __global__ void forks_parent()
{
}
extern "C" __global__ void forks_child()
{
}

static int launch(bool parent, int count)
{
    for (int i = 0; i < count; i++) {
        if (parent)
            forks_parent<<<1, 32>>>();
        else
            forks_child<<<1, 32>>>();
    }
    cudaError_t result = cudaDeviceSynchronize();
    if (result != cudaSuccess)
        fprintf(stderr, "%s: %s\n", parent ? "parent" : "child", cudaGetErrorString(result));
    return result == cudaSuccess ? 0 : 3;
}

static int await(int children)
{
    int bad = 0, status;
    for (int i = 0; i < children; i++) {
        if (wait(&status) < 0 || status != 0)
            bad++;
    }
    return bad ? 4 : 0;
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    const char *how = argv[1];
    int children = atoi(argv[2]), count = atoi(argv[3]), bad = 0;
    if (strcmp(how, "child") == 0)
        return launch(false, count);
    if (strcmp(how, "before") != 0)
        bad |= launch(true, count);
    for (int i = 0; i < children; i++) {
        if (fork() != 0)
            continue;
        if (strcmp(how, "before") == 0)
            exit(launch(false, count));
        if (strcmp(how, "exec") == 0) {
            execl("/proc/self/exe", argv[0], "child", "0", argv[3], (char *)NULL);
            _exit(5);
        }
        if (i % 3 == 0)
            return 0;
        if (i % 3 == 1)
            exit(0);
        _exit(0);
    }
    if (strcmp(how, "exec") != 0)
        bad |= launch(true, count);
    bad |= await(children);
    int parents = strcmp(how, "after") == 0 ? 2 * count : count;
    int childrens = strcmp(how, "after") == 0 ? 0 : children * count;
    printf("{\"children\": %d, \"kernels\": {\"forks_parent\": %d, \"forks_child\": %d}}\n",
           children, parents, childrens);
    return bad;
}
