/* What the tests of the CUDA collector's parts share: one buffer of CUPTI's to fill with records,
 * decoded against a core that keeps what it is given (fake_core.h). One program (decode_case.c), a
 * file for each part. */
#ifndef PERFKIT_TESTS_CUDA_DECODE_CASE_H
#define PERFKIT_TESTS_CUDA_DECODE_CASE_H

#include <check.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "collectors/cuda/parts.h"
#include "tests/cuda/fake_core.h"

#define KERNEL CUpti_ActivityKernel10
#define COPY CUpti_ActivityMemcpy6
#define PEER CUpti_ActivityMemcpyPtoP4
#define FILL CUpti_ActivityMemset4
#define CALL CUpti_ActivityAPI
#define SYNC CUpti_ActivitySynchronization2
#define MEMORY CUpti_ActivityMemory4
#define EVENT CUpti_ActivityCudaEvent2
#define OVERHEAD CUpti_ActivityOverhead3
#define JIT CUpti_ActivityJit2
#define POOL CUpti_ActivityMemoryPool3
#define MANAGED CUpti_ActivityUnifiedMemoryCounter3
#define GRAPH CUpti_ActivityGraphTrace2
#define DEVICE CUpti_ActivityDevice5

extern bool real_cupti; /* the libcupti in use is NVIDIA's */
extern uint8_t *data;   /* the buffer */
extern size_t size, filled;

void add(const void *record, size_t bytes); /* one more record */
void decode(uint64_t now);                  /* what was added; then there is an empty buffer */
const void *first(enum wire_type type);     /* fails the test when there is none */
size_t number(enum wire_type type);

/* From here on CUPTI's flush is ours: it counts, and brings nothing. */
void begin_flushing(void);
extern _Atomic unsigned flushes, forced;
extern _Atomic unsigned flush_ms; /* the next one takes so long */

void add_layout_tests(TCase *cases);
void add_record_tests(TCase *cases);
void add_name_tests(TCase *cases);
void add_window_tests(TCase *cases);
void add_thread_tests(TCase *cases);
void add_failure_tests(TCase *cases);
void add_stack_tests(TCase *cases);
void add_correlation_tests(TCase *cases);

#endif
