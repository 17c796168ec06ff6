/* perfkit_sampler: the process that reads the GPUs' counters for one `perfkit run`, its child. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/counters/self_test.h"

static int self_test(int argc, char **argv)
{
    struct counter_self_test options = {
        .bursts = 3, .burst_ms = 20, .pause_ms = 200, .interval_ns = 20000, .own_clock = true};
    int c;
    while ((c = getopt(argc, argv, "d:n:b:p:i:ucel:")) != -1) {
        switch (c) {
        case 'd': options.device = (unsigned)atoi(optarg); break;
        case 'n': options.bursts = (unsigned)atoi(optarg); break;
        case 'b': options.burst_ms = atof(optarg); break;
        case 'p': options.pause_ms = atof(optarg); break;
        case 'i': options.interval_ns = (uint64_t)(atof(optarg) * 1e3); break;
        case 'u': options.own_clock = false; break;
        case 'c': options.context = true; break;
        case 'e': options.edges = true; break;
        case 'l': options.cupti_path = optarg; break;
        default:
            fprintf(stderr, "usage: perfkit_sampler --self-test [-d device] [-n bursts] "
                            "[-b burst_ms] [-p pause_ms] [-i interval_us] [-u] [-c] [-e] [-l libcupti]\n");
            return 2;
        }
    }
    return counter_self_test(&options);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--self-test") == 0)
        return self_test(argc - 1, argv + 1);
    fprintf(stderr, "perfkit_sampler is run by `perfkit run --counters`\n");
    return 2;
}
