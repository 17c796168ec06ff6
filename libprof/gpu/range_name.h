/* What NVTX ranges are by their names. */
#ifndef PERFKIT_GPU_RANGE_NAME_H
#define PERFKIT_GPU_RANGE_NAME_H

#include <stdbool.h>

#define PROF_RANGE_NAME_ROOM 48

/* In lower case, letters and digits only, no digits at the end: "step 1" and "Step 2" are one name.
 * False: the name is too long to be one that is looked for. */
bool prof_simplify_range_name(const char *text, char out[PROF_RANGE_NAME_ROOM]);

/* Do programs call what repeats so ("step", "iteration")? `simple`: a simplified name. */
bool prof_range_name_is_iteration(const char *simple);

/* Is it an operator of PyTorch, as its profiler and its NVTX ranges write them: "aten::mm",
 * "AddmmBackward0"? */
bool prof_range_name_is_operator(const char *name);

#endif
