/* What fake_cublas.c counts, and how it is told to behave. */
#ifndef PERFKIT_TESTS_FAKE_CUBLAS_H
#define PERFKIT_TESTS_FAKE_CUBLAS_H

struct fake_cublas_counts {
    int refuse; /* what cublasCreate returns */
    int open;   /* handles, descriptors, layouts that are not destroyed yet */
    long own_choice, algorithm[3];
};

#endif
