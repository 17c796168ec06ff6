/* perfkit_sampler: the process that reads the GPUs' counters for one `perfkit run`, its child. Not
 * for users, but for --self-test: how far a machine lets it get. */
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "samplers/counters/sampler.h"

static const char usage[] =
    "usage: perfkit_sampler --self-test [-d device] [-n bursts] [-b burst_ms] [-p pause_ms]\n"
    "  [-i interval_us] [-m counter,...] [-s samples a decode] [-w MiB of the device's buffer]\n"
    "  [-o keep the oldest] [-P no peaks] [-u CUPTI's own clock] [-c own context]\n"
    "  [-e edges of DRAM reads] [-v each call] [-l libcupti]\n";

static int self_test(int argc, char **argv)
{
    struct counter_self_test options = {
        .bursts = 3, .burst_ms = 8, .pause_ms = 200, .interval_ns = 20000, .own_clock = true};
    int c;
    while ((c = getopt(argc, argv, "d:n:b:p:i:w:s:m:uceovPl:")) != -1) {
        switch (c) {
        case 'd':
            options.device = (unsigned)atoi(optarg);
            break;
        case 'n':
            options.bursts = (unsigned)atoi(optarg);
            break;
        case 'b':
            options.burst_ms = atof(optarg);
            break;
        case 'p':
            options.pause_ms = atof(optarg);
            break;
        case 'i':
            options.interval_ns = (uint64_t)(atof(optarg) * 1e3);
            break;
        case 'u':
            options.own_clock = false;
            break;
        case 'c':
            options.context = true;
            break;
        case 'e':
            options.edges = true;
            break;
        case 'v':
            options.steps = true;
            break;
        case 'o':
            options.keep_oldest = true;
            break;
        case 'P':
            options.no_peaks = true;
            break;
        case 'w':
            options.hardware_bytes = (uint64_t)atoi(optarg) << 20;
            break;
        case 's':
            options.batch = (uint32_t)atoi(optarg);
            break;
        case 'm':
            options.counters = optarg;
            break;
        case 'l':
            options.cupti_path = optarg;
            break;
        default:
            fputs(usage, stderr);
            return 2;
        }
    }
    return counter_self_test(&options);
}

/* A call into a vendor's library that does not come back must not keep the run waiting. */
#define PATIENCE_S 3

static void on_signal(int signal)
{
    (void)signal;
    sampler_stop();
    alarm(PATIENCE_S);
}

/* Stop with the parent, however it ends, and never for the terminal's keys: those are the target's.
 */
static void mind_signals(void)
{
    struct sigaction stop = {.sa_handler = on_signal}, ignore = {.sa_handler = SIG_IGN};
    sigset_t none;
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGHUP, &ignore, NULL);
    sigaction(SIGINT, &ignore, NULL);
    sigaction(SIGQUIT, &ignore, NULL);
    sigaction(SIGPIPE, &ignore, NULL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
}

/* NAME=VALUE operands, as run_counters.c of the command gives them. */
static bool take_operand(struct sampler_options *options, const char *text)
{
    static const char *const names[] = {"dir=", "set=", "cupti=", "interval=", "duty="};
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t length = strlen(names[i]);
        const char *value = text + length;
        if (strncmp(text, names[i], length) != 0)
            continue;
        switch (i) {
        case 0:
            options->directory = value;
            break;
        case 1:
            options->set = value;
            break;
        case 2:
            options->cupti = value;
            break;
        case 3:
            options->interval_ns = strtoull(value, NULL, 10);
            break;
        default:
            options->duty = strtod(value, NULL);
            break;
        }
        return true;
    }
    return false;
}

int main(int argc, char **argv)
{
    struct sampler_options options = {.interval_ns = SAMPLER_INTERVAL_NS, .stop_fd = STDIN_FILENO};
    if (argc > 1 && strcmp(argv[1], "--self-test") == 0)
        return self_test(argc - 1, argv + 1);
    bool understood = true;
    for (int i = 1; i < argc; i++)
        understood &= take_operand(&options, argv[i]);
    if (!understood || !options.directory || !options.set || options.interval_ns == 0) {
        fprintf(stderr, "perfkit_sampler is run by `perfkit run --counters`\n");
        return 2;
    }
    mind_signals();
    /* A profiler of perfkit itself does not mean this process. */
    unsetenv("CUDA_INJECTION64_PATH");
    unsetenv("NVTX_INJECTION64_PATH");
    options.ready_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(null, STDOUT_FILENO); /* libraries may print; the terminal is the target's */
    dup2(null, STDERR_FILENO);
    return sampler_run(&options);
}
