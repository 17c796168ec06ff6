/* What the user can do about an error of CUPTI's counters. */
#ifndef PERFKIT_COLLECTORS_CUDA_REMEDY_H
#define PERFKIT_COLLECTORS_CUDA_REMEDY_H

/* A sentence for the result of a call, or NULL where CUPTI's own name of it has to do. */
const char *counter_remedy(int result);

#endif
