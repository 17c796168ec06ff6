/* See run_pytorch.h. The hook is Python code that Python itself runs at its start (sitecustomize),
 * in every process that the environment reaches; what it does is in collectors/python/pytorch. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/run_environment.h"
#include "cli/run_pytorch.h"

const char *const pytorch_words[] = {"ops", "modules", NULL};

bool pytorch_check(const char *command, const char *list, const char *trace)
{
    if (list && !trace_names_domain(trace, "nvtx")) {
        cli_say(command, "--pytorch needs the NVTX source: add nvtx to --trace");
        return false;
    }
    return true;
}

bool pytorch_hand_over(const char *list, char *text, size_t size)
{
    text[0] = '\0';
    if (!list)
        return true;
    size_t used = (size_t)snprintf(text, size, ",pytorch=%s", list);
    for (char *at = text + 1; used < size && (at = strchr(at, ','));)
        *at = '+';
    return used < size;
}

bool pytorch_folder(const char *collector, char folder[PATH_MAX])
{
    char file[PATH_MAX], real[PATH_MAX];
    if (!realpath(collector, real)) /* it may be a link in the spool folder */
        return false;
    const char *slash = strrchr(real, '/');
    if (!slash ||
        snprintf(folder, PATH_MAX, "%.*s/python", (int)(slash - real), real) >= PATH_MAX ||
        (size_t)snprintf(file, sizeof file, "%s/sitecustomize.py", folder) >= sizeof file)
        return false;
    return access(file, R_OK) == 0;
}
