/* Names of collective operations, of every form that libraries gave them. */
#include <math.h>

#include "libprof/gpu/collective_name.h"
#include "tests/check_main.h"

static const struct {
    const char *name;
    enum prof_collective operation;
} kernels[] = {
    {"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
     PROF_COLLECTIVE_ALL_REDUCE},
    {"ncclDevKernel_ReduceScatter_Sum_bf16_RING_SIMPLE", PROF_COLLECTIVE_REDUCE_SCATTER},
    {"ncclDevKernel_Reduce_Sum_f32_RING_LL", PROF_COLLECTIVE_REDUCE},
    {"ncclDevKernel_SendRecv(ncclDevComm*, unsigned long, ncclWork*)", PROF_COLLECTIVE_SEND_RECV},
    {"ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)",
     PROF_COLLECTIVE_ALL_GATHER},
    {"ncclSymkDevKernel_AllReduce_AGxLL_R_sum_f32", PROF_COLLECTIVE_ALL_REDUCE},
    {"ncclSymDevKernel_AllGather_LL", PROF_COLLECTIVE_ALL_GATHER},
    {"ncclAllReduceRingLLKernel_sum_f32(ncclColl)", PROF_COLLECTIVE_ALL_REDUCE},
    {"ncclReduceScatterRingKernel_sum_f32(ncclColl)", PROF_COLLECTIVE_REDUCE_SCATTER},
    {"ncclBroadcastTreeLL128Kernel_copy_i8(ncclColl)", PROF_COLLECTIVE_BROADCAST},
    {"ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)", PROF_COLLECTIVE_OTHER},
    {"void vllm::cross_device_reduce_1stage<float, 2>(vllm::RankData*)",
     PROF_COLLECTIVE_ALL_REDUCE},
    {"void (anonymous namespace)::two_shot_all_reduce_kernel<c10::BFloat16>(int)",
     PROF_COLLECTIVE_ALL_REDUCE},
    {"void at::native::reduce_kernel<512, 1>(int)", PROF_COLLECTIVE_NONE},
    {"my_nccl_Kernel_of_mine", PROF_COLLECTIVE_NONE},
    {"nccl", PROF_COLLECTIVE_NONE},
    {"", PROF_COLLECTIVE_NONE},
    {NULL, PROF_COLLECTIVE_NONE},
};

START_TEST(kernels_by_name)
{
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        ck_assert_msg(prof_collective_kernel(kernels[i].name) == kernels[i].operation,
                      "%s is taken for %s", kernels[i].name ? kernels[i].name : "NULL",
                      prof_collective_name(prof_collective_kernel(kernels[i].name)));
}
END_TEST

static const struct {
    const char *domain, *name;
    enum prof_collective operation;
} ranges[] = {
    {"NCCL", "ncclAllReduce", PROF_COLLECTIVE_ALL_REDUCE},
    {"NCCL", "ncclAlltoAll", PROF_COLLECTIVE_ALL_TO_ALL},
    {"NCCL", "ncclRecv", PROF_COLLECTIVE_RECV},
    {"NCCL", "ncclGroupStart", PROF_COLLECTIVE_NONE},
    {"NCCL", "ncclCommInitRank", PROF_COLLECTIVE_NONE},
    {"mine", "ncclAllReduce", PROF_COLLECTIVE_NONE},
    {NULL, "ncclAllReduce", PROF_COLLECTIVE_NONE},
    {NULL, "MPI_Allreduce", PROF_COLLECTIVE_ALL_REDUCE},
    {"MPI", "MPI_Reduce_scatter_block", PROF_COLLECTIVE_REDUCE_SCATTER},
    {NULL, "MPI_Waitall", PROF_COLLECTIVE_WAIT},
    {NULL, "MPI_Iallreduce", PROF_COLLECTIVE_NONE}, /* its time is not the operation's */
    {NULL, "MPI_Comm_rank", PROF_COLLECTIVE_NONE},
    {"perfkit.collective", "reduce_scatter", PROF_COLLECTIVE_REDUCE_SCATTER},
    {"perfkit.collective", "none", PROF_COLLECTIVE_NONE},
    {"perfkit.collective", NULL, PROF_COLLECTIVE_NONE},
};

START_TEST(ranges_by_name)
{
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        ck_assert_msg(prof_collective_range(ranges[i].domain, ranges[i].name) ==
                          ranges[i].operation,
                      "%s", ranges[i].name ? ranges[i].name : "NULL");
}
END_TEST

/* The figures that nccl-tests prints for 8 ranks and 1 GB in 10 ms. */
START_TEST(bandwidths_are_those_of_nccl_tests)
{
    ck_assert_double_eq_tol(prof_collective_bus_factor(PROF_COLLECTIVE_ALL_REDUCE, 8), 1.75, 1e-12);
    ck_assert_double_eq_tol(prof_collective_bus_factor(PROF_COLLECTIVE_ALL_GATHER, 8), 0.875,
                            1e-12);
    ck_assert_double_eq(prof_collective_bus_factor(PROF_COLLECTIVE_BROADCAST, 8), 1);
    ck_assert_double_eq(prof_collective_bus_factor(PROF_COLLECTIVE_ALL_REDUCE, 1), 0);
    ck_assert(isnan(prof_collective_bus_factor(PROF_COLLECTIVE_ALL_REDUCE, 0)));
    ck_assert(isnan(prof_collective_bus_factor(PROF_COLLECTIVE_BARRIER, 8)));
    ck_assert_double_eq(prof_collective_bytes(PROF_COLLECTIVE_REDUCE_SCATTER, 100, 8), 800);
    ck_assert_double_eq(prof_collective_bytes(PROF_COLLECTIVE_ALL_REDUCE, 100, 8), 100);
    ck_assert(isnan(prof_collective_bytes(PROF_COLLECTIVE_ALL_REDUCE, INT64_MIN, 8)));
    ck_assert(isnan(prof_collective_bytes(PROF_COLLECTIVE_ALL_GATHER, 100, 0)));
}
END_TEST

CHECK_MAIN("collective names", kernels_by_name, ranges_by_name, bandwidths_are_those_of_nccl_tests)
