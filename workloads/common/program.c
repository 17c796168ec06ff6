/* Every workload's main; see program.h. */
#include "workloads/common/program.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perfkit/annotate.h"

/* -1 to go on, with the options in `values`. */
static int read_options(const struct program *program, int argc, char **argv, void *values,
                        size_t bytes)
{
    void *defaults = malloc(bytes);
    int status = 2;

    if (!defaults)
        return 2;
    memcpy(defaults, values, bytes);
    if (options_parse(&program->options, argc, argv, values) == 0)
        status = options_end(&program->options, values, defaults);
    if (status < 0 && program->check && program->check(values) != 0)
        status = 2;
    free(defaults);
    return status;
}

static int run_program(const struct program *program, int argc, char **argv, void *values,
                       size_t bytes)
{
    const struct common_options *common = values;
    int status = read_options(program, argc, argv, values, bytes);
    struct dev *dev;

    if (status < 0 && program->start)
        status = program->start(values, argv);
    if (status >= 0)
        return status;
    perfkit_thread_name("main");
    dev = program->open
              ? program->open(values)
              : open_device(program->options.program, (enum dev_backend)common->backend, 0);
    if (!dev)
        return 2;
    status = program->run(values, dev);
    close_device(dev);
    return status;
}

int program_main(const struct program *program, int argc, char **argv, void *values, size_t bytes)
{
    int status = run_program(program, argc, argv, values, bytes);

    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    fprintf(stderr, "%s: cannot write the results: %s\n", program->options.program,
            strerror(errno));
    return status ? status : 2;
}
