/* perfkit mcp: captures for assistants and editors, by the Model Context Protocol over standard
 * input and output. A tool is a row of a table: a command of perfkit with some of its options,
 * which runs as a process of its own, so that what it says is what people read, and a fault or an
 * endless query ends there. Nothing is written or recorded. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/find_capture.h"
#include "cli/process.h"
#include "libprof/base/array.h"
#include "libprof/base/clock.h"
#include "libprof/base/json.h"
#include "libprof/include/prof.h"

#define MOST_REQUEST (1u << 20)   /* bytes of a line */
#define MOST_ANSWER 15000u        /* of a text, as JSON writes it: messages stay below 16 KiB */
#define MOST_SECONDS 120          /* of a tool */
#define MOST_PRINTED (256u << 20) /* bytes; a query can return endless rows */
#define MOST_WORDS 32

enum rpc_code {
    RPC_PARSE = -32700,
    RPC_REQUEST = -32600,
    RPC_METHOD = -32601,
    RPC_PARAMS = -32602,
};

/* ---- tools ----------------------------------------------------------------------------------- */

/* An argument of a tool: an option of its command, or an operand. */
struct tool_argument {
    const char *name, *type, *text;
    const char *option; /* "--kernel"; NULL = an operand, in this order */
    bool needed;
};
#define TOOL_ARGUMENTS 8

struct tool {
    const char *name, *text;
    const char *words[6]; /* of the command line, the options first; NULL = list_captures */
    const char *query;    /* the last operand, fixed */
    struct tool_argument arguments[TOOL_ARGUMENTS];
};

#define ITERATION                                                                                  \
    {                                                                                              \
        "iteration_range", "string", "the NVTX range that is one iteration", "--iteration", false  \
    }
#define CAPTURE                                                                                    \
    {                                                                                              \
        "capture", "string", "path of the capture; without: the newest of the current folder",     \
            NULL, false                                                                            \
    }

static const struct tool tools[] = {
    {"list_captures",
     "List the captures (recordings of GPU programs) of a folder.",
     {NULL},
     NULL,
     {{"folder", "string", "without: the current folder", NULL, false}}},
    {"report",
     "What a capture holds: whether it is complete, how busy the devices were, findings, kernels, "
     "memcpys, API calls, synchronizations, NVTX ranges, summed; for single events use sql on "
     "kernels, transfers, calls, synchronizations, ranges. Of the whole run, or of a part of it by "
     "kernel, NVTX range, time or iteration.",
     {"report"},
     NULL,
     {CAPTURE,
      {"kernel", "string", "kernels whose name matches this POSIX regular expression", "--kernel",
       false},
      {"range", "string", "what was called inside NVTX ranges of this name", "--nvtx", false},
      {"from", "string", "what starts at or after this time since the start: 1.5s, 20ms", "--from",
       false},
      {"to", "string", "what starts before this time", "--to", false},
      {"iteration", "integer", "the time of the N-th iteration", "--iteration-number", false},
      {"top", "integer", "rows of each table", "--top", false}}},
    {"findings",
     "What slows the program, the worst first: rule, severity, the most that fixing it saves "
     "(bound_ns, bound_share of the analysed time; rule_bound_ns in all phases of the program), "
     "what was seen, the fix, and a place.",
     {"sql", "--json", "--timeout=60s"},
     "SELECT rule, severity, bound_ns, bound_share, rule_bound_ns, phase, seen, fix, place, name, "
     "line FROM "
     "findings",
     {CAPTURE}},
    {"explain",
     "What a rule of the findings means, why it matters, how to fix it, how its bound is computed.",
     {"explain"},
     NULL,
     {{"rule", "string", "as findings name it", NULL, true}}},
    {"iterations",
     "How long the iterations took, which are slow, whether they become slower; in sql, the "
     "table iterations.",
     {"report", "--iterations"},
     NULL,
     {CAPTURE, ITERATION, {"top", "integer", "rows of each table", "--top", false}}},
    {"why",
     "Where one iteration took longer than the others, and what began it.",
     {"report"},
     NULL,
     {{"number", "integer", "of the iteration, as iterations number them", "--why", true},
      CAPTURE}},
    {"memory",
     "What GPU memory was live at its peak, what leaks, what failed; in sql, the table "
     "allocations.",
     {"report", "--memory"},
     NULL,
     {CAPTURE}},
    {"diff",
     "What differs between two captures: time by kernel and range, counts, bytes.",
     {"diff", "--quiet"},
     NULL,
     {{"before", "string", "path of a capture", NULL, true},
      {"after", "string", "path of a capture", NULL, true},
      ITERATION,
      {"top", "integer", "rows of each list", "--top", false}}},
    {"verify",
     "What became of each finding after a change, and the saving that was predicted beside that of "
     "the median iteration.",
     {"verify"},
     NULL,
     {{"before", "string", "path of the capture before the change", NULL, true},
      {"after", "string", "path of the capture after it", NULL, true},
      {"finding", "string", "only this rule", "--finding", false},
      ITERATION}},
    {"what_if",
     "Predict how long the median iteration takes after a change, and what limits it then.",
     {"what-if"},
     NULL,
     {{"change", "string",
       "WHAT=VALUE: kernel:GLOB, memcpy, memcpy:h2d, memset, sync, alloc, build, launch or host; "
       "=0.5x (the share that stays), =12us (what each takes), =0 (gone); or fuse:A,B, "
       "overlap:h2d, "
       "wait, graph, device=H100",
       "--set", true},
      {"change_2", "string", "another change: each is predicted alone, then all together", "--set",
       false},
      {"change_3", "string", "another change", "--set", false},
      {"capture", "string", "path of the capture", NULL, true},
      ITERATION}},
    {"gate",
     "Compare a capture with a baseline and give a verdict for each metric: regression or not.",
     {"gate"},
     NULL,
     {{"baseline", "string", "name of the baseline", "--baseline", true},
      {"baselines", "string", "file of baselines", "--baselines", false},
      {"capture", "string", "path of the capture", NULL, true}}},
    {"sql",
     "Run one SELECT, or a ready query by its name, on a capture. Times are ns since its start. "
     "sql_schema lists what there is.",
     {"sql", "--json", "--timeout=10s"},
     NULL,
     {{"capture", "string", "path of the capture", NULL, true},
      {"query", "string", "SELECT ..., or the name of a ready query", NULL, true},
      {"limit", "integer", "rows; without: 100", "--top", false}}},
    {"sql_schema",
     "The ready queries, and the views and tables of a capture with their columns; with table, "
     "what its columns hold.",
     {"sql", "--list"},
     NULL,
     {{"table", "string", "name of a view or table", NULL, false}}},
};
#define TOOLS (sizeof tools / sizeof *tools)

static const struct tool *find_mcp_tool(const char *name)
{
    for (size_t i = 0; name && i < TOOLS; i++)
        if (!strcmp(tools[i].name, name))
            return &tools[i];
    return NULL;
}

/* ---- list_captures --------------------------------------------------------------------------- */

static void list_capture(const char *path)
{
    CLI_CLOSED struct prof_capture *capture = NULL;
    struct prof_error err;
    if (prof_open(path, &capture, &err)) {
        printf("%s: %s\n", path, err.message);
        return;
    }
    const struct prof_info *info = prof_info(capture);
    char date[32] = "unknown date";
    time_t started = (time_t)(info->start_realtime_ns / 1000000000);
    struct tm utc;
    if (info->start_realtime_ns != PROF_UNKNOWN && gmtime_r(&started, &utc))
        strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S UTC", &utc);
    printf("%s: %s, %.3f s, %.200s\n", path, date, (double)prof_end_ns(capture) / 1e9,
           info->command ? info->command : "");
}

static int list_captures(const cJSON *given)
{
    const char *name = prof_document_text(given, "folder"), *folder = name ? name : ".";
    struct dirent **entries;
    int count = scandir(folder, &entries, NULL, alphasort);
    bool any = false;
    for (int i = 0; i < count; i++) {
        char path[PATH_MAX];
        int length = snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (length < (int)sizeof path && is_capture_file(AT_FDCWD, path)) {
            list_capture(path);
            any = true;
        }
        free(entries[i]);
    }
    if (count < 0)
        cli_say("mcp", "cannot read the folder %s: %s", folder, strerror(errno));
    else
        free(entries);
    if (count >= 0 && !any)
        puts("no captures in this folder");
    return count < 0 || fflush(stdout) ? CLI_FAILED : CLI_OK;
}

/* ---- what a tool prints ---------------------------------------------------------------------- */

/* Text that grows; a page of it is sent. */
struct answer {
    PROF_ARRAY(char) text;
    bool failed;
};

static bool add_answer(struct answer *answer, const char *text, size_t length)
{
    if (!prof_array_reserve(&answer->text, length + 1))
        return false;
    memcpy(answer->text.data + answer->text.count, text, length);
    answer->text.count += length;
    answer->text.data[answer->text.count] = 0;
    return true;
}

/* Both outputs of a tool, until it has closed them; NULL, or why it is to be stopped. */
static const char *read_outputs(const int fds[2], struct answer *texts[2])
{
    struct pollfd ends[2] = {{.fd = fds[0], .events = POLLIN}, {.fd = fds[1], .events = POLLIN}};
    const uint64_t end_ns = prof_now_ns() + MOST_SECONDS * 1000000000ull;
    char piece[16384];
    while (ends[0].fd >= 0 || ends[1].fd >= 0) {
        uint64_t now_ns = prof_now_ns();
        if (now_ns >= end_ns)
            return "it took too long";
        if (poll(ends, 2, (int)((end_ns - now_ns) / 1000000 + 1)) < 0)
            continue;
        for (int i = 0; i < 2; i++) {
            ssize_t got = ends[i].revents ? read(ends[i].fd, piece, sizeof piece) : -1;
            if (got > 0 && texts[i]->text.count + (size_t)got > MOST_PRINTED)
                return "its answer is too long";
            if (got > 0 && !add_answer(texts[i], piece, (size_t)got))
                return "out of memory";
            if (ends[i].revents && got <= 0)
                ends[i].fd = -1; /* which poll() passes over */
        }
    }
    return NULL;
}

/* A process of perfkit whose standard output and standard error are outs[1] and errs[1]; of
 * list_captures, which is no command, a copy of this one. */
static bool spawn_tool(const struct tool *tool, char *const argv[], const cJSON *given,
                       const int outs[2], const int errs[2], pid_t *pid)
{
    if (!tool->words[0]) {
        *pid = fork();
        if (!*pid)
            _exit(dup2(outs[1], STDOUT_FILENO) < 0 || dup2(errs[1], STDERR_FILENO) < 0
                      ? CLI_FAILED
                      : list_captures(given));
        return *pid > 0;
    }
    return process_spawn_self(argv, outs[1], errs[1], pid);
}

static void close_pipe(int ends[2])
{
    for (int i = 0; i < 2; i++)
        if (ends[i] >= 0)
            close(ends[i]);
    ends[0] = ends[1] = -1;
}

/* Standard output of a tool, standard error where it failed. False: it could not be run. */
static bool run_tool(const struct tool *tool, char *const argv[], const cJSON *given,
                     struct answer *answer)
{
    struct answer complaint = {.failed = false};
    int outs[2] = {-1, -1}, errs[2] = {-1, -1}, status = 0;
    const char *stopped = NULL;
    pid_t pid;
    bool ran = !pipe2(outs, O_CLOEXEC) && !pipe2(errs, O_CLOEXEC) &&
               spawn_tool(tool, argv, given, outs, errs, &pid);
    if (ran) {
        close(outs[1]);
        close(errs[1]);
        outs[1] = errs[1] = -1;
        stopped =
            read_outputs((int[2]){outs[0], errs[0]}, (struct answer *[2]){answer, &complaint});
        if (stopped)
            kill(pid, SIGKILL);
        status = process_wait(pid);
        if (!stopped && WIFSIGNALED(status))
            stopped = "it was ended by a signal";
    }
    close_pipe(outs);
    close_pipe(errs);
    if (stopped) {
        char line[64];
        answer->text.count = 0;
        answer->failed = true;
        ran =
            add_answer(answer, line, (size_t)snprintf(line, sizeof line, "stopped: %s\n", stopped));
    } else if (ran) {
        /* The gate ends with its verdict: 1 and above are answers where something was printed. */
        int code = WEXITSTATUS(status);
        bool printed = answer->text.count > 0;
        answer->failed = code != 0 && (!printed || code == CLI_USAGE);
        if ((code != 0 || !printed) && complaint.text.count)
            ran = add_answer(answer, complaint.text.data, complaint.text.count);
    }
    prof_array_free(&complaint.text);
    return ran;
}

/* ---- a call ---------------------------------------------------------------------------------- */

struct words {
    char *words[MOST_WORDS + 1];
    size_t count;
    bool no_memory;
};

static void add_word(struct words *line, const char *option, const char *value)
{
    char *word = NULL;
    if (line->count < MOST_WORDS &&
        asprintf(&word, "%s%s%s", option, *option ? "=" : "", value) >= 0)
        line->words[line->count++] = word;
    else
        line->no_memory = true;
}

/* The value of an argument as a word; NULL: it was not given. */
static const char *given_value(const cJSON *given, const struct tool_argument *argument,
                               char number[32])
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(given, argument->name);
    int64_t value;
    if (cJSON_IsString(item))
        return item->valuestring;
    if (!cJSON_IsNumber(item) || !prof_document_int(item, &value))
        return NULL;
    snprintf(number, 32, "%lld", (long long)value);
    return number;
}

static const struct tool_argument page_argument = {
    "page", "integer", "of an answer that is longer than one message; from 1", NULL, false};

/* Whether the tool has all that is given, as texts or whole numbers. What it does not have is an
 * error: left out, the answer would be about another capture, or about all of it. */
static bool check_arguments(const struct tool *tool, const cJSON *given, char *why, size_t size)
{
    char number[32];
    const cJSON *item;
    if (given && !cJSON_IsObject(given) && !cJSON_IsNull(given)) {
        snprintf(why, size, "the arguments are no object");
        return false;
    }
    cJSON_ArrayForEach(item, given)
    {
        const struct tool_argument *argument = &page_argument;
        for (size_t i = 0; i < TOOL_ARGUMENTS && tool->arguments[i].name; i++)
            if (!strcmp(tool->arguments[i].name, item->string))
                argument = &tool->arguments[i];
        if (strcmp(argument->name, item->string) != 0)
            snprintf(why, size, "%s has no argument %.60s", tool->name, item->string);
        else if (!cJSON_IsNull(item) && !given_value(given, argument, number))
            snprintf(why, size, "the argument %s is no %s", argument->name, argument->type);
        else
            continue;
        return false;
    }
    return true;
}

/* The command line; the name of a needed argument that is missing, or NULL. */
static const char *tool_words(const struct tool *tool, const cJSON *given, struct words *line)
{
    char number[32];
    bool limited = strcmp(tool->name, "sql") != 0;
    add_word(line, "", "perfkit");
    for (size_t i = 0; tool->words[i]; i++)
        add_word(line, "", tool->words[i]);
    for (int operands = 0; operands < 2; operands++) {
        if (operands && !limited)
            add_word(line, "--top", "100");
        if (operands)
            add_word(line, "", "--");
        for (size_t i = 0; i < TOOL_ARGUMENTS && tool->arguments[i].name; i++) {
            const struct tool_argument *argument = &tool->arguments[i];
            const char *value = given_value(given, argument, number);
            if (!value && argument->needed)
                return argument->name;
            if (!value || (argument->option == NULL) != operands)
                continue;
            limited |= argument->option && !strcmp(argument->option, "--top");
            add_word(line, argument->option ? argument->option : "", value);
        }
    }
    if (tool->query)
        add_word(line, "", tool->query);
    return NULL;
}

/* Where the page that begins at `at` ends: behind a line where one ends in it. */
static size_t page_end(const char *text, size_t at, size_t length)
{
    size_t cost = 0, line = 0, end = at;
    for (; end < length && cost < MOST_ANSWER; end++) {
        unsigned char c = (unsigned char)text[end];
        cost += c == '"' || c == '\\' || c == '\n' ? 2 : c < 0x20 ? 6 : 1;
        if (c == '\n')
            line = end + 1;
    }
    if (end == length)
        return length;
    while (!line && end > at + 1 && ((unsigned char)text[end] & 0xc0) == 0x80)
        end--;
    return line > at ? line : end;
}

/* Page `page` of the answer as the content of a result. */
static void add_content(cJSON *result, struct answer *answer, int64_t page, bool *failed)
{
    cJSON *content = prof_document_add(result, "content", cJSON_CreateArray(), failed);
    cJSON *item = prof_document_add(content, NULL, cJSON_CreateObject(), failed);
    char *text = answer->text.data;
    size_t length = answer->text.count, begin = 0, end = page_end(text ? text : "", 0, length);
    int64_t at = 1;
    for (; at != page && end < length; at++) {
        begin = end;
        end = page_end(text, begin, length);
    }
    char more[96] = "";
    if (at != page) {
        snprintf(more, sizeof more, "there is no page %lld: they are numbered 1 to %lld\n",
                 (long long)page, (long long)at);
        begin = end = length;
        answer->failed = true;
    }
    size_t left = length - end;
    if (left)
        snprintf(more, sizeof more, "[page %lld; %zu bytes more, from page %lld on]\n",
                 (long long)page, left, (long long)page + 1);
    PROF_FREED char *whole = NULL;
    if (asprintf(&whole, "%.*s%s", (int)(end - begin), text ? text + begin : "", more) < 0)
        *failed = true;
    prof_document_add_text(item, "type", "text", failed);
    prof_document_add_text(item, "text", whole ? whole : "", failed);
    prof_document_add(result, "isError", cJSON_CreateBool(answer->failed), failed);
}

/* Returns an RPC code, 0 = `result` is filled. */
static int call_tool(const cJSON *params, cJSON *result, char *why, size_t size, bool *failed)
{
    const cJSON *given = cJSON_GetObjectItemCaseSensitive(params, "arguments");
    const struct tool *tool = find_mcp_tool(prof_document_text(params, "name"));
    struct words line = {.count = 0};
    struct answer answer = {.failed = false};
    char number[32];
    if (!tool) {
        snprintf(why, size, "no such tool");
        return RPC_PARAMS;
    }
    if (!check_arguments(tool, given, why, size))
        return RPC_PARAMS;
    const char *missing = tool_words(tool, given, &line);
    if (missing)
        snprintf(why, size, "the argument %s is needed", missing);
    const char *wanted = given_value(given, &page_argument, number);
    int64_t page = wanted ? strtoll(wanted, NULL, 10) : 1;
    if (!missing) {
        *failed |= line.no_memory || !run_tool(tool, line.words, given, &answer);
        add_content(result, &answer, page, failed);
    }
    for (size_t i = 0; i < line.count; i++)
        free(line.words[i]);
    prof_array_free(&answer.text);
    return missing ? RPC_PARAMS : 0;
}

/* ---- the protocol ---------------------------------------------------------------------------- */

static void add_property(cJSON *properties, const struct tool_argument *argument, bool *failed)
{
    cJSON *property = prof_document_add(properties, argument->name, cJSON_CreateObject(), failed);
    prof_document_add_text(property, "type", argument->type, failed);
    prof_document_add_text(property, "description", argument->text, failed);
}

static void add_tool(cJSON *list, const struct tool *tool, bool *failed)
{
    cJSON *item = prof_document_add(list, NULL, cJSON_CreateObject(), failed);
    prof_document_add_text(item, "name", tool->name, failed);
    prof_document_add_text(item, "description", tool->text, failed);
    cJSON *schema = prof_document_add(item, "inputSchema", cJSON_CreateObject(), failed);
    prof_document_add_text(schema, "type", "object", failed);
    cJSON *properties = prof_document_add(schema, "properties", cJSON_CreateObject(), failed);
    cJSON *needed = prof_document_add(schema, "required", cJSON_CreateArray(), failed);
    for (size_t i = 0; i < TOOL_ARGUMENTS && tool->arguments[i].name; i++) {
        add_property(properties, &tool->arguments[i], failed);
        if (tool->arguments[i].needed)
            prof_document_add_text(needed, NULL, tool->arguments[i].name, failed);
    }
    add_property(properties, &page_argument, failed);
    cJSON *hints = prof_document_add(item, "annotations", cJSON_CreateObject(), failed);
    prof_document_add(hints, "readOnlyHint", cJSON_CreateTrue(), failed);
}

static void add_initialization(cJSON *result, const cJSON *params, bool *failed)
{
    static const char *const versions[] = {"2025-06-18", "2025-03-26", "2024-11-05"};
    const char *asked = prof_document_text(params, "protocolVersion"), *version = versions[0];
    for (size_t i = 0; asked && i < sizeof versions / sizeof *versions; i++)
        if (!strcmp(asked, versions[i]))
            version = versions[i];
    prof_document_add_text(result, "protocolVersion", version, failed);
    cJSON *abilities = prof_document_add(result, "capabilities", cJSON_CreateObject(), failed);
    prof_document_add(abilities, "tools", cJSON_CreateObject(), failed);
    cJSON *info = prof_document_add(result, "serverInfo", cJSON_CreateObject(), failed);
    prof_document_add_text(info, "name", "perfkit", failed);
    prof_document_add_text(info, "version", PERFKIT_VERSION, failed);
    prof_document_add_text(result, "instructions",
                           "Captures are recordings of GPU programs. Begin with report or findings "
                           "of a capture; explain says what a finding means; sql answers the rest.",
                           failed);
}

static int handle_method(const char *method, const cJSON *params, cJSON *result, char *why,
                         size_t size, bool *failed)
{
    if (!strcmp(method, "initialize")) {
        add_initialization(result, params, failed);
    } else if (!strcmp(method, "tools/list")) {
        cJSON *list = prof_document_add(result, "tools", cJSON_CreateArray(), failed);
        for (size_t i = 0; i < TOOLS; i++)
            add_tool(list, &tools[i], failed);
    } else if (!strcmp(method, "tools/call")) {
        return call_tool(params, result, why, size, failed);
    } else if (strcmp(method, "ping")) {
        snprintf(why, size, "no such method");
        return RPC_METHOD;
    }
    return 0;
}

/* One line on standard output. False: it is gone. */
static bool send_message(cJSON *message, bool failed)
{
    PROF_FREED char *text = failed ? NULL : prof_document_print(message, false);
    cJSON_Delete(message);
    return text && fprintf(stdout, "%s\n", text) > 0 && !fflush(stdout);
}

/* NUL in a text, which would end it here. */
static bool has_nul_escape(const char *line, size_t length)
{
    for (size_t i = 0; i + 6 <= length; i++) {
        if (line[i] != '\\')
            continue;
        if (!memcmp(line + i, "\\u0000", 6))
            return true;
        i++;
    }
    return false;
}

/* One that is sent back as it came: each integer below 2^53 is a double of its own. */
static bool is_request_id(const cJSON *id)
{
    return cJSON_IsString(id) || (cJSON_IsNumber(id) && fabs(id->valuedouble) < 0x1p53 &&
                                  id->valuedouble == floor(id->valuedouble));
}

static bool answer_request(const char *line, size_t length)
{
    struct prof_error err;
    cJSON *request = NULL, *message = cJSON_CreateObject(), *result = cJSON_CreateObject();
    char why[256] = "no JSON-RPC request";
    bool failed = !message || !result;
    int code = prof_document_parse(line, length, "request", &request, &err) ? RPC_PARSE : 0;
    const char *method = code ? NULL : prof_document_text(request, "method");
    const cJSON *id = code ? NULL : cJSON_GetObjectItemCaseSensitive(request, "id");
    if (method && !id) { /* a notification */
        cJSON_Delete(request);
        cJSON_Delete(message);
        cJSON_Delete(result);
        return true;
    }
    bool has_nul = !code && has_nul_escape(line, length);
    if (has_nul || (id && !is_request_id(id))) {
        method = NULL;
        snprintf(why, sizeof why, "%s",
                 has_nul ? "a text of the request has \\u0000"
                         : "the id is neither a string nor an integer below 2^53");
        id = cJSON_IsNumber(id) && is_request_id(id) ? id : NULL;
    }
    if (!code)
        code = method ? handle_method(method, cJSON_GetObjectItemCaseSensitive(request, "params"),
                                      result, why, sizeof why, &failed)
                      : RPC_REQUEST;
    prof_document_add_text(message, "jsonrpc", "2.0", &failed);
    prof_document_add(message, "id", id ? cJSON_Duplicate(id, true) : cJSON_CreateNull(), &failed);
    if (code) {
        cJSON *error = prof_document_add(message, "error", cJSON_CreateObject(), &failed);
        prof_document_add_int(error, "code", code, &failed);
        prof_document_add_text(error, "message", code == RPC_PARSE ? err.message : why, &failed);
        cJSON_Delete(result);
    } else {
        prof_document_add(message, "result", result, &failed);
    }
    cJSON_Delete(request);
    return send_message(message, failed);
}

static int mcp_run(const struct cli_command *command, void *given,
                   const struct cli_operands *operands, struct prof_error *err)
{
    PROF_FREED PROF_ARRAY(char) line = {0};
    bool ok = true;
    int c;
    (void)command, (void)given, (void)operands, (void)err;
    signal(SIGCHLD, SIG_DFL); /* who starts it may ignore it: how tools ended would be unknown */
    do {
        c = getchar();
        if (c != '\n' && c != EOF) {
            /* What is too long is no request: its rest is passed over. */
            ok = line.count > MOST_REQUEST || prof_array_push(&line, (char)c);
            continue;
        }
        if (line.count)
            ok = answer_request(line.data, line.count > MOST_REQUEST ? 0 : line.count);
        line.count = 0;
    } while (ok && c != EOF);
    return ok ? CLI_OK : CLI_FAILED;
}

static const struct cli_option mcp_options[] = {{0}};
static const struct cli_text_row mcp_examples[] = {
    {"claude mcp add perfkit -- perfkit mcp", "Add it to an assistant, here Claude Code."},
    {0},
};

const struct cli_command mcp_command = {
    .name = "mcp",
    .summary = "answer questions of assistants about captures",
    .operands = "",
    .text = "Speaks the Model Context Protocol on standard input and output: an assistant or an "
            "editor starts it and requests reports, findings, iterations, differences, verdicts of "
            "the gate and SQL on captures. It reads only; an answer is at most 16 KiB, longer ones "
            "come in pages.",
    .options = mcp_options,
    .examples = mcp_examples,
    .run = mcp_run,
};
