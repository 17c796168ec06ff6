/* Does what a profiler of CUDA programs is expected to record, one thing a mode, and says exactly
 * what it did, as JSON: device_check.py compares a capture of it with that.
 *
 *     cuda_parity list
 *     cuda_parity MODE...        (all = every mode; what the machine cannot do is told as skipped)
 *
 * Launches by the device itself are left out: they need relocatable device code and a device link.
 *
 * Tables that it prints: kernels (by name), launches (name, grid, block, cluster, dynamic shared
 * memory, c = cooperative), registers, shared_static, local_bytes (by kernel), transfers (by kind:
 * count, bytes), copies_between (source kind > target kind), memsets, allocations (by kind), freed,
 * api (calls by name), waits (function and kind), events, streams, ranges, marks, threads, pools,
 * graph_launches, graph_kernels, captured, green, migrations, jit, skipped. */
#include "parity.h"

did done;

static std::string kind_text(int kind)
{
    return format("%d", kind);
}

void allocated(int kind, size_t bytes)
{
    done.amount_of("allocations", kind_text(kind), 1, (long long)bytes);
}

void freed(int count)
{
    done.n("freed", "all", count);
}

void copied(int kind, int from, int to, size_t bytes, int times)
{
    done.amount_of("transfers", kind_text(kind), times, (long long)bytes * times);
    done.n("copies_between", format("%d>%d", from, to), times);
}

void filled(size_t bytes, int times)
{
    done.amount_of("memsets", "all", times, (long long)bytes * times);
}

char *device_memory(size_t bytes)
{
    void *p;
    DO(cudaMalloc, &p, bytes);
    allocated(DEVICE, bytes);
    return (char *)p;
}

char *pinned_memory(size_t bytes)
{
    void *p;
    CHECK(cudaMallocHost(&p, bytes));
    allocated(PINNED, bytes);
    memset(p, 1, bytes);
    return (char *)p;
}

void free_device(void *p)
{
    DO(cudaFree, p);
    freed();
}

void free_pinned(void *p)
{
    DO(cudaFreeHost, p);
    freed();
}

void launched(const char *name, dim3 grid, dim3 block, size_t dynamic, int times, unsigned cluster,
              bool cooperative)
{
    done.n("kernels", name, times);
    done.n("launches",
           format("%s grid %u,%u,%u block %u,%u,%u cluster %u dynamic %zu%s", name, grid.x, grid.y,
                  grid.z, block.x, block.y, block.z, cluster, dynamic, cooperative ? " c" : ""),
           times);
}

static const struct {
    const char *name;
    void (*run)();
} modes[] = {
#define X(name) {#name, mode_##name},
    PARITY_MODES(X)
#undef X
};

int main(int argc, char **argv)
{
    setenv("CUDA_CACHE_DISABLE", "1", 1); /* every module is compiled anew */
    int ran = 0;
    for (auto &mode : modes) {
        if (argc == 2 && strcmp(argv[1], "list") == 0) {
            printf("%s\n", mode.name);
            ran++;
            continue;
        }
        for (int i = 1; i < argc; i++) {
            if (strcmp(argv[i], mode.name) == 0 || strcmp(argv[i], "all") == 0) {
                mode.run();
                ran++;
                break;
            }
        }
    }
    if (!ran) {
        fprintf(stderr, "usage: %s list | all | MODE...\n", argv[0]);
        return 2;
    }
    if (argc != 2 || strcmp(argv[1], "list") != 0)
        done.print();
    return 0;
}
