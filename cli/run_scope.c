/* What `perfkit run` records and when, and what the collector adds to calls on request.
 * Combinations that cannot mean anything are refused before the program starts: a capture that is
 * empty after an hour is the most expensive mistake. */
#include <ctype.h>
#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/run.h"
#include "libprof/base/clock.h"
#include "libprof/base/utf8.h"

#define PROFILER_WORD "cudaProfilerApi"
#define NVTX_WORD "nvtx:"
#define MOST_NAME_BYTES 160 /* of NAME; escaped it must fit the collector's 511 */
#define MOST_DOMAIN_BYTES 80
#define MOST_DUMP_BYTES 399u /* what the collector keeps of the path */

const char *const scope_cupti[] = {"own", "yield", "off", NULL};
const char *const scope_graph[] = {"node", "graph", NULL};
const char *const scope_managed[] = {"moves", "faults", "off", NULL};

/* NAME and DOMAIN of nvtx:NAME[@DOMAIN]; the last @ divides. Empty domain = the default one. */
static const char *split_scope_range(const char *range, size_t *name_bytes)
{
    const char *name = range + strlen(NVTX_WORD);
    const char *at = strrchr(name, '@');
    *name_bytes = at ? (size_t)(at - name) : strlen(name);
    return at ? at + 1 : "";
}

static bool is_nvtx(const char *range)
{
    return strncmp(range, NVTX_WORD, strlen(NVTX_WORD)) == 0;
}

static bool check_range(const char *command, const char *range, const char *trace)
{
    if (strcmp(range, PROFILER_WORD) == 0) {
        if (trace_names_domain(trace, "cuda"))
            return true;
        return cli_refuse(command,
                          "--capture-range=" PROFILER_WORD " needs the CUDA source: add cuda to "
                          "--trace");
    }
    if (!is_nvtx(range))
        return cli_refuse(command,
                          "--capture-range does not know '%s': give " PROFILER_WORD
                          " or nvtx:NAME, with @DOMAIN when the range is in a domain",
                          range);
    size_t bytes;
    const char *domain = split_scope_range(range, &bytes);
    if (bytes == 0)
        return cli_refuse(
            command,
            "--capture-range=%.100s: the name of the range is missing: give it whole, as in "
            "nvtx:step or nvtx:step@my_domain",
            range);
    if (bytes > MOST_NAME_BYTES || strlen(domain) > MOST_DOMAIN_BYTES)
        return cli_refuse(
            command,
            "--capture-range=%.100s: %s is too long: give a range whose name has at most %d "
            "bytes, in a domain whose name has at most %d",
            range, bytes > MOST_NAME_BYTES ? "the name" : "the domain's name", MOST_NAME_BYTES,
            MOST_DOMAIN_BYTES);
    if (!trace_names_domain(trace, "nvtx"))
        return cli_refuse(command,
                          "--capture-range=nvtx:NAME needs the NVTX source: add nvtx to --trace");
    return true;
}

bool scope_check_pattern(const char *command, const char *option, const char *pattern)
{
    regex_t regex;
    const char *too_much = prof_pattern_excess(pattern);
    if (too_much)
        return cli_refuse(command, "%s'%.100s': %s: give a simpler pattern", option, pattern,
                          too_much);
    int failed = regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB);
    if (failed) {
        char why[128];
        regerror(failed, &regex, why, sizeof why);
        return cli_refuse(command,
                          "%s'%s' is not a POSIX extended regular expression: %s: put a backslash "
                          "before characters that mean themselves",
                          option, pattern, why);
    }
    regfree(&regex);
    return true;
}

static bool check_kernel_scope(const char *command, const char *pattern, const char *trace)
{
    if (!scope_check_pattern(command, "--kernel=", pattern))
        return false;
    if (trace_names_domain(trace, "cuda") || trace_names_domain(trace, "opencl"))
        return true;
    return cli_refuse(command,
                      "--kernel needs a source that has kernels: add cuda or opencl to --trace");
}

/* Both set when the recording begins. */
static bool conflict(const char *command, const char *a, const char *b, const char *fix)
{
    return cli_refuse(command, "%s and %s do not go together: %s", a, b, fix);
}

static bool check_scope_options(struct run *run)
{
    struct scope_options *options = &run->options.scope;
    const char *command = run->name, *trace = run->options.trace;
    if (options->duration_ns == 0)
        return cli_refuse(command,
                          "--duration: no time at all records nothing: give a longer one, or leave "
                          "it out to record to the end");
    if (options->duration_ns == SCOPE_ALWAYS)
        options->duration_ns = 0;
    if (options->dormant && options->delay_ns)
        return conflict(command, "--dormant", "--delay",
                        "--dormant waits for `perfkit ctl start`; leave one of them out");
    if (options->dormant && options->duration_ns)
        return conflict(command, "--dormant", "--duration",
                        "end a dormant recording with `perfkit ctl stop`");
    if (options->dormant && options->range)
        return conflict(command, "--dormant", "--capture-range",
                        "either the program's range or `perfkit ctl start` begins the recording");
    if (options->range && !check_range(command, options->range, trace))
        return false;
    if (options->kernel && !check_kernel_scope(command, options->kernel, trace))
        return false;
    const struct {
        bool given;
        const char *name;
    } cuda[] = {{options->cupti != 0, "--cupti"},
                {options->graph != 0, "--cuda-graph"},
                {options->managed != 0, "--cuda-managed"},
                {options->dump != NULL, "--cupti-dump"}};
    for (size_t i = 0; i < sizeof cuda / sizeof cuda[0]; i++) {
        if (!cuda[i].given)
            continue;
        if (!trace_names_domain(trace, "cuda"))
            return cli_refuse(command, "%s needs the CUDA source: add cuda to --trace",
                              cuda[i].name);
        if (i > 0 && options->cupti != 0)
            return conflict(command, cuda[i].name, "--cupti=yield or off",
                            "without CUPTI there are no such records; leave one of them out");
    }
    if (options->range && !is_nvtx(options->range) && options->cupti != 0)
        return conflict(command, "--capture-range=" PROFILER_WORD, "--cupti=yield or off",
                        "the calls are seen through CUPTI; use an NVTX range");
    return true;
}

static enum prof_status prepare_dump(struct scope *scope, const char *folder,
                                     struct prof_error *err)
{
    struct stat info;
    scope->made_dump = mkdir(folder, 0700) == 0;
    if (!scope->made_dump && errno != EEXIST)
        return prof_fail_errno(err, PROF_IO, "cannot make the folder %s of --cupti-dump", folder);
    if (!realpath(folder, scope->dump) || stat(scope->dump, &info) < 0)
        return prof_fail_errno(err, PROF_IO, "cannot use %s for --cupti-dump", folder);
    if (!S_ISDIR(info.st_mode))
        return prof_fail(err, PROF_INVALID, "--cupti-dump: %s is not a folder: give one", folder);
    if (access(scope->dump, W_OK | X_OK) < 0)
        return prof_fail_errno(err, PROF_IO,
                               "--cupti-dump: nothing can be written into %s (give another folder)",
                               folder);
    if (strlen(scope->dump) > MOST_DUMP_BYTES)
        return prof_fail(err, PROF_INVALID,
                         "--cupti-dump: the path %s is too long: give a folder of at most %u bytes",
                         scope->dump, MOST_DUMP_BYTES);
    if (strchr(scope->dump, ','))
        return prof_fail(err, PROF_INVALID,
                         "--cupti-dump: the path %s holds a comma: give another folder",
                         scope->dump);
    return PROF_OK;
}

enum prof_status scope_prepare(struct scope *scope, const struct scope_options *options,
                               const char *folder, struct prof_error *err)
{
    bool open_now = !options->dormant && !options->delay_ns;
    bool limited = !open_now || options->duration_ns || options->range;
    scope->options = options;
    enum prof_status status =
        control_make(&scope->control, folder, open_now, limited, options->range, err);
    if (!status && !open_now && options->delay_ns) /* not dormant: time is what it waits for */
        atomic_store(&scope->control.page->change[0],
                     scope->control.page->start_ns << 8 | WIRE_WINDOW_TIME);
    return !status && options->dump ? prepare_dump(scope, options->dump, err) : status;
}

size_t scope_append_escaped(char *text, size_t used, size_t size, const char *from, size_t bytes)
{
    for (size_t i = 0; i < bytes && used < size; i++) {
        unsigned char byte = (unsigned char)from[i];
        bool plain = byte != '%' && byte != ',' && byte >= ' ';
        used += (size_t)snprintf(text + used, size - used, plain ? "%c" : "%%%02X", byte);
    }
    return used;
}

#define APPEND(...)                                                                                \
    used += used < size ? (size_t)snprintf(text + used, size - used, __VA_ARGS__) : 0

static bool hand_over_scope(const struct run *run, char *text, size_t size)
{
    const struct scope *scope = &run->scope;
    const struct scope_options *options = scope->options;
    size_t used = 0;
    if (options->range && !is_nvtx(options->range)) {
        APPEND(",capture=" PROFILER_WORD);
    } else if (options->range) {
        size_t bytes;
        const char *domain = split_scope_range(options->range, &bytes);
        APPEND(",capture=nvtx,capture-name=");
        used = scope_append_escaped(text, used, size, options->range + strlen(NVTX_WORD), bytes);
        APPEND(",capture-domain=");
        used = scope_append_escaped(text, used, size, domain, strlen(domain));
    }
    if (options->cupti)
        APPEND(",cupti=%s", scope_cupti[options->cupti]);
    if (options->graph)
        APPEND(",cuda-graph=%s", scope_graph[options->graph]);
    if (options->managed)
        APPEND(",cuda-managed=%s", scope_managed[options->managed]);
    if (scope->dump[0])
        APPEND(",cupti-dump=%s", scope->dump);
    return used < size;
}

static bool note_scope(const struct run *run, char *text, size_t size)
{
    const struct scope_options *options = run->scope.options;
    size_t used = 0;
    text[0] = '\0';
    if (options->dormant)
        APPEND("dormant: recorded only between `perfkit ctl start` and `stop`");
    else if (options->delay_ns || options->duration_ns || options->range)
        APPEND("recorded only");
    if (options->delay_ns)
        APPEND(" from %.9g s after the start", (double)options->delay_ns / 1e9);
    if (options->duration_ns)
        APPEND("%s for %.9g s", options->delay_ns ? "," : "", (double)options->duration_ns / 1e9);
    if (options->range)
        APPEND("%s within --capture-range=%s", options->delay_ns || options->duration_ns ? "," : "",
               options->range);
    return used > 0;
}

/* ---- the clock ------------------------------------------------------------------------------- */

static void start_clock(struct run *run)
{
    struct scope *scope = &run->scope;
    const struct scope_options *options = scope->options;
    uint64_t now = prof_now_ns();
    if (options->delay_ns)
        scope->opens_at_ns = now + options->delay_ns;
    if (options->duration_ns)
        scope->closes_at_ns = now + options->delay_ns + options->duration_ns;
}

void scope_undo(struct scope *scope)
{
    control_close(&scope->control);
    if (scope->made_dump)
        rmdir(scope->options->dump);
}

void scope_ready(struct scope *scope)
{
    struct control_page *page = scope->control.page;
    page->start_ns = prof_now_ns();
    atomic_store(&page->change[0], page->start_ns << 8 | (atomic_load(&page->change[0]) & 255u));
}

/* A lock that another writer holds is tried again at the next step. */
static bool switch_scope(struct scope *scope, bool open_now, uint64_t *changed_ns)
{
    return control_set(&scope->control, open_now, WIRE_WINDOW_TIME, changed_ns, NULL) == PROF_OK;
}

int scope_step(struct scope *scope)
{
    uint64_t now = prof_now_ns(), changed;
    if (scope->opens_at_ns && now >= scope->opens_at_ns && switch_scope(scope, true, &changed)) {
        scope->opens_at_ns = 0;
        if (scope->closes_at_ns) /* counted from when it really opened */
            scope->closes_at_ns = changed + scope->options->duration_ns;
    }
    if (!scope->opens_at_ns && scope->closes_at_ns && now >= scope->closes_at_ns &&
        switch_scope(scope, false, &changed))
        scope->closes_at_ns = 0;
    uint64_t next = scope->opens_at_ns ? scope->opens_at_ns : scope->closes_at_ns;
    if (!next)
        return -1;
    uint64_t wait_ms = next > now ? (next - now + 999999) / 1000000 : 1;
    return wait_ms < INT_MAX ? (int)wait_ms : INT_MAX;
}

const char *scope_why_nothing(const struct scope *scope, char *text, size_t size)
{
    const struct scope_options *options = scope->options;
    uint64_t state = atomic_load(&scope->control.page->state);
    bool turned = control_generation(state) > 0;
    if (control_windows(state) == 0)
        return options->dormant ? "nothing was recorded: the capture was dormant and `perfkit ctl "
                                  "start` never came"
                                : "nothing was recorded: the program ended before --delay was over";
    if (options->range && is_nvtx(options->range)) {
        size_t bytes;
        const char *domain = split_scope_range(options->range, &bytes);
        bool any = strcmp(domain, "*") == 0, named = *domain && !any;
        snprintf(text, size,
                 "nothing was recorded: no NVTX range '%.*s' began in %s%s%s%s: check the name%s",
                 (int)bytes, options->range + strlen(NVTX_WORD),
                 any     ? "any domain"
                 : named ? "the domain '"
                         : "the default domain",
                 named ? domain : "", named ? "'" : "", turned ? " while the recording was on" : "",
                 any ? "" : ", and the domain (@* behind the name is any domain)");
        return text;
    }
    if (options->range)
        return "nothing was recorded: no GPU or NVTX call was seen between cudaProfilerStart and "
               "cudaProfilerStop: does the program call them?";
    if (turned)
        return "nothing was recorded: no GPU or NVTX call was seen while the recording was on "
               "(--delay, --duration, perfkit ctl)";
    return NULL;
}

const struct run_feature run_scope = {.name = "scope",
                                      .check = check_scope_options,
                                      .hand_over = hand_over_scope,
                                      .note = note_scope,
                                      .started = start_clock};

/* ---- call stacks and PyTorch ----------------------------------------------------------------- */

/* What the collector does at calls on request: --stacks takes their call stacks, --pytorch names
 * the operators and modules that make them. Lists are checked here and handed over as they are,
 * with + for the commas, which divide the collector's options. */

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

/* Is there a kind before its word already? */
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
        if (!is_kind(word, name))
            return cli_refuse(
                command,
                "--stacks does not know '%.*s': give launch, alloc and sync, those that are "
                "wanted, separated by commas",
                (int)bytes, word);
        if (is_repeated(kinds, word, name))
            return cli_refuse(command, "--stacks=%s: %.*s is there twice: give each kind once",
                              kinds, (int)name, word);
        if (name < bytes && !is_rate(word + name + 1, word + bytes))
            return cli_refuse(
                command,
                "--stacks=%.*s: after the colon comes the number of calls per stack taken: "
                "give a number from 1 to 1,000,000,000, as in launch:10",
                (int)bytes, word);
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
    if (strlen(options->kinds) > MOST_LIST_BYTES)
        return cli_refuse(command, "--stacks: the list is too long: give each kind once");
    if (!trace_names_domain(trace, "cuda") && !trace_names_domain(trace, "opencl"))
        return cli_refuse(
            command, "--stacks needs a source with calls of a GPU's API: add cuda or opencl to "
                     "--trace");
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

/* ---- --pytorch ------------------------------------------------------------------------------- */

const char *const pytorch_words[] = {"ops", "modules", "shapes", NULL};

static bool check_pytorch_options(struct run *run)
{
    if (run->options.pytorch && !trace_names_domain(run->options.trace, "nvtx"))
        return cli_refuse(run->name, "--pytorch needs the NVTX source: add nvtx to --trace");
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
