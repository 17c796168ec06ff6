/* What the annotated shared objects of the module test offer. */
#ifndef PERFKIT_TESTS_NVTX_MODULE_H
#define PERFKIT_TESTS_NVTX_MODULE_H

int module_run(void); /* 0 = every return value was right */

#endif
