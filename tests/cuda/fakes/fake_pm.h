/* What the fake GPU counts; see fake_pm.c. */
#ifndef PERFKIT_TESTS_CUDA_FAKE_PM_H
#define PERFKIT_TESTS_CUDA_FAKE_PM_H

#define FAKE_PM_CYCLES 2.0 /* cycles of every clock in a nanosecond */
#define FAKE_PM_PEAK 100.0 /* of every counter, per cycle */

#endif
