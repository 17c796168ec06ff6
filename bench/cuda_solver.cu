// What profiling costs a program of the kind that HPC writes in C++: a solver on refined blocks.
// Every block of every level has its stencils, of some microseconds each, launched through
// templates on one of four streams, in the three stages of a Runge-Kutta step; the step's width is
// a reduction that the host waits for. With 32 blocks that is 512 kernels, a fill, a copy and two
// waits a step. Prints one line of JSON a round; bench/overhead runs it bare, under perfkit and
// under others (section "solver").
//
//     bench_cuda_solver [--rounds R] [BLOCKS [SIDE [STEPS]]]
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "bench/must.h"
#include "bench/turns.h"

constexpr int components = 8, streams = 4, stages = 3, threads = 256;
constexpr int launches_a_block = stages * 5 + 1;

struct box {
    float *now, *next, *flux;
    int side;
    cudaStream_t stream;
    __host__ __device__ int cells() const
    {
        return side * side * side;
    }
    __host__ __device__ int values() const
    {
        return cells() * components;
    }
};

template <typename Body> __global__ void __launch_bounds__(threads) for_each(int n, Body body)
{
    int i = blockIdx.x * threads + threadIdx.x;
    if (i < n)
        body(i);
}

template <typename Body> static void parallel_for(const box &where, int n, const Body &body)
{
    for_each<<<(n + threads - 1) / threads, threads, 0, where.stream>>>(n, body);
}

// The faces of a block, from the block beside it.
struct halo {
    box to, from;
    __device__ void operator()(int i) const
    {
        int area = to.side * to.side, c = i / area % components, face = i % area;
        int at = c * to.cells() + face, other = c * from.cells() + face % (from.side * from.side);
        to.now[at] = 0.5f * (to.now[at] + from.now[other]);
    }
};

struct advect {
    box at;
    __device__ void operator()(int i) const
    {
        int stride = at.side, left = i >= stride ? i - stride : i;
        at.flux[i] = 0.1f * (at.now[i] - at.now[left]);
    }
};

struct diffuse {
    box at;
    __device__ void operator()(int i) const
    {
        int plane = at.side * at.side, last = at.values() - 1;
        int below = i >= plane ? i - plane : i, above = i + plane <= last ? i + plane : last;
        at.flux[i] += 0.05f * (at.now[below] - 2 * at.now[i] + at.now[above]);
    }
};

// Chemistry: all arithmetic, on the species of a cell.
struct react {
    box at;
    __device__ void operator()(int i) const
    {
        float rate = at.now[i];
        for (int k = 0; k < 24; k++)
            rate += 1e-4f * __expf(-rate * rate) - 1e-5f * rate;
        at.next[i] = rate;
    }
};

struct update {
    box at;
    float width;
    __device__ void operator()(int i) const
    {
        at.now[i] = at.next[i] - width * at.flux[i];
    }
};

struct fastest {
    box at;
    int *result; // of positive floats, whose order is that of their bits
    __device__ void operator()(int i) const
    {
        if (i % 64 == 0)
            atomicMax(result, __float_as_int(fabsf(at.now[i])));
    }
};

class solver
{
  public:
    solver(int blocks, int side) : blocks_(blocks)
    {
        for (cudaStream_t &stream : streams_)
            MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        for (int i = 0; i < blocks; i++)
            blocks_[i] = make(i % 2 ? side : side / 2, streams_[i % streams]);
        MUST(cudaMalloc(&fastest_, sizeof *fastest_));
        MUST(cudaMallocHost(&answer_, sizeof *answer_));
        MUST(cudaDeviceSynchronize());
    }

    void step()
    {
        for (int stage = 0; stage < stages; stage++)
            for (size_t i = 0; i < blocks_.size(); i++)
                advance(blocks_[i], blocks_[(i + streams) % blocks_.size()], stage);
        width_ = 0.5f / (1.0f + speed());
    }

  private:
    static box make(int side, cudaStream_t stream)
    {
        box made = {nullptr, nullptr, nullptr, side, stream};
        for (float **values : {&made.now, &made.next, &made.flux}) {
            MUST(cudaMalloc(values, made.values() * sizeof(float)));
            MUST(cudaMemset(*values, 0, made.values() * sizeof(float)));
        }
        return made;
    }

    void advance(const box &at, const box &beside, int stage)
    {
        parallel_for(at, at.side * at.side * components, halo{at, beside});
        parallel_for(at, at.values(), advect{at});
        parallel_for(at, at.values(), diffuse{at});
        parallel_for(at, at.values(), react{at});
        parallel_for(at, at.values(), update{at, width_ / (float)(stage + 1)});
    }

    float speed()
    {
        MUST(cudaMemsetAsync(fastest_, 0, sizeof *fastest_, streams_[0]));
        MUST(cudaStreamSynchronize(streams_[0]));
        for (const box &at : blocks_)
            parallel_for(at, at.values(), fastest{at, fastest_});
        MUST(cudaDeviceSynchronize());
        MUST(cudaMemcpy(answer_, fastest_, sizeof *answer_, cudaMemcpyDeviceToHost));
        float result;
        memcpy(&result, answer_, sizeof result);
        return result;
    }

    std::vector<box> blocks_;
    cudaStream_t streams_[streams];
    int *fastest_, *answer_;
    float width_ = 0.1f;
};

static uint64_t gpu_used()
{
    size_t free_bytes = 0, total = 0;
    MUST(cudaMemGetInfo(&free_bytes, &total));
    return total - free_bytes;
}

int main(int argc, char **argv)
{
    bool counted = argc > 2 && strcmp(argv[1], "--rounds") == 0;
    char **words = argv + (counted ? 3 : 1);
    int count = argc - (counted ? 3 : 1);
    long rounds = counted ? atol(argv[2]) : 1;
    int blocks = count > 0 ? atoi(words[0]) : 32, side = count > 1 ? atoi(words[1]) : 64;
    int steps = count > 2 ? atoi(words[2]) : 50;
    if (blocks < 1 || side < 2 || side > 256 || steps < 1) {
        fprintf(stderr, "usage: bench_cuda_solver [--rounds R] [BLOCKS [SIDE [STEPS]]]\n");
        return 2;
    }
    struct turns turns;
    solver solver(blocks, side);
    turns_open(&turns, rounds);
    uint64_t done = 0;
    for (long round = 0; turns_next(&turns); round++) {
        solver.step();
        uint64_t begun = turns_now_ns();
        for (int i = 0; i < steps; i++)
            solver.step();
        double ms = (double)(turns_now_ns() - begun) / 1e6 / steps;
        done += (uint64_t)(steps + 1) * (uint64_t)blocks * launches_a_block;
        fprintf(turns.out,
                "{\"mode\": \"solver\", \"round\": %ld, \"count\": %d, \"ms_per_step\": %.4f, "
                "\"gpu_used_bytes\": %llu}\n",
                round, steps, ms, (unsigned long long)gpu_used());
        fflush(turns.out);
    }
    turns_end(&turns, done, gpu_used());
    return 0;
}
