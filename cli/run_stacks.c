/* What the collector does at calls on request: --stacks takes their call stacks, --pytorch names
 * the operators and modules that make them. Lists are checked here and handed over as they are,
 * with + for the commas, which divide the collector's options. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/run.h"

#define MOST_LIST_BYTES 60u /* what the collector reads of it */
#define MOST_EVERY 1000000000ul

static bool is_kind(const char *word, size_t bytes)
{
    static const char *const kinds[] = {"launch", "alloc", "sync"};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strlen(kinds[i]) == bytes && memcmp(kinds[i], word, bytes) == 0)
            return true;
    }
    return false;
}

/* A number from 1 that ends where the word does. */
static bool is_rate(const char *text, const char *end)
{
    char *rest;
    if (!isdigit((unsigned char)*text))
        return false;
    unsigned long every = strtoul(text, &rest, 10);
    return rest == end && every >= 1 && every <= MOST_EVERY;
}

/* Does a kind stand before its word already? */
static bool is_repeated(const char *kinds, const char *word, size_t name)
{
    for (const char *other = kinds; other < word; other += strcspn(other, ",") + 1) {
        if (strcspn(other, ":,") == name && memcmp(other, word, name) == 0)
            return true;
    }
    return false;
}

static bool check_kinds(const char *command, const char *kinds)
{
    for (const char *word = kinds;;) {
        size_t bytes = strcspn(word, ","), name = strcspn(word, ":,");
        if (!is_kind(word, name)) {
            cli_say(command,
                    "--stacks does not know '%.*s': give launch, alloc and sync, those that are "
                    "wanted, separated by commas",
                    (int)bytes, word);
            return false;
        }
        if (is_repeated(kinds, word, name)) {
            cli_say(command, "--stacks=%s: %.*s is there twice: give each kind once", kinds,
                    (int)name, word);
            return false;
        }
        if (name < bytes && !is_rate(word + name + 1, word + bytes)) {
            cli_say(command,
                    "--stacks=%.*s: after the colon comes the number of calls per stack taken: "
                    "give a number from 1 to 1,000,000,000, as in launch:10",
                    (int)bytes, word);
            return false;
        }
        if (!word[bytes])
            return true;
        word += bytes + 1;
    }
}

static bool check_stacks_options(struct run *run)
{
    const struct stacks_options *options = &run->options.stacks;
    const char *command = run->name, *trace = run->options.trace;
    if (!options->kinds) {
        if (options->depth)
            cli_say(command, "--stack-depth is of no use without --stacks: add it");
        return !options->depth;
    }
    if (strlen(options->kinds) > MOST_LIST_BYTES) {
        cli_say(command, "--stacks: the list is too long: give each kind once");
        return false;
    }
    if (!trace_names_domain(trace, "cuda") && !trace_names_domain(trace, "opencl")) {
        cli_say(command, "--stacks needs a source with calls of a GPU's API: add cuda or opencl to "
                         "--trace");
        return false;
    }
    return check_kinds(command, options->kinds);
}

/* ",NAME=LIST". Returns the bytes used, more than fit in `size` when it did not fit. */
static size_t hand_over_list(const char *name, const char *list, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, ",%s=%s", name, list);
    for (char *at = text + 1; used < size && (at = strchr(at, ','));)
        *at = '+';
    return used;
}

static bool hand_over_stacks(const struct run *run, char *text, size_t size)
{
    const struct stacks_options *options = &run->options.stacks;
    size_t used = options->kinds ? hand_over_list("stacks", options->kinds, text, size) : 0;
    if (options->kinds && options->depth && used < size)
        used += (size_t)snprintf(text + used, size - used, ",stack-depth=%u", options->depth);
    return used < size;
}

static bool note_stacks_options(const struct run *run, char *text, size_t size)
{
    const struct stacks_options *options = &run->options.stacks;
    if (options->kinds)
        snprintf(text, size, "call stacks are taken of %s%s", options->kinds,
                 strchr(options->kinds, ':') ? ": the others of a kind with :N have none" : "");
    return options->kinds != NULL;
}

const struct run_feature run_stacks = {.name = "stacks",
                                       .check = check_stacks_options,
                                       .hand_over = hand_over_stacks,
                                       .note = note_stacks_options};

/* ---- --pytorch ------------------------------------------------------------------------------ */

const char *const pytorch_words[] = {"ops", "modules", NULL};

static bool check_pytorch_options(struct run *run)
{
    if (run->options.pytorch && !trace_names_domain(run->options.trace, "nvtx")) {
        cli_say(run->name, "--pytorch needs the NVTX source: add nvtx to --trace");
        return false;
    }
    return true;
}

static bool hand_over_pytorch(const struct run *run, char *text, size_t size)
{
    const char *list = run->options.pytorch;
    return !list || hand_over_list("pytorch", list, text, size) < size;
}

const struct run_feature run_pytorch = {
    .name = "pytorch", .check = check_pytorch_options, .hand_over = hand_over_pytorch};

/* The hook is Python code that Python itself runs at its start (sitecustomize), in every process
 * that the environment reaches; what it does is in collectors/python/pytorch. */
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
