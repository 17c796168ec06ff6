/* The main function of a workload: options, the device, and the exit status. */
#ifndef WORKLOADS_COMMON_PROGRAM_H
#define WORKLOADS_COMMON_PROGRAM_H

#include "workloads/common/options.h"
#include "workloads/common/start.h"

struct program {
    struct option_set options;
    /* What the options' table cannot check; may round values. 0, or -1 after saying on stderr what
     * is wrong. NULL: nothing. */
    int (*check)(void *values);
    /* Runs next, for a program that is several processes: the exit status of one that has nothing
     * more to do, -1 to go on. NULL: nothing. */
    int (*start)(void *values, char **argv);
    /* Opens the device; NULL after saying on stderr why there is none. NULL: that of --backend. */
    struct dev *(*open)(const void *values);
    /* Measures and prints. The exit status: 0, 1 for a failed verification, 2 for a device that
     * failed, said on stderr. */
    int (*run)(const void *values, struct dev *dev);
};

/* `values` holds the defaults, `bytes` of them, and begins with a struct common_options. The exit
 * status; 2 also when what was printed cannot be written. */
int program_main(const struct program *program, int argc, char **argv, void *values, size_t bytes);

#endif
