/* perfkit serve: a capture that is being recorded for dashboards and browsers, by HTTP. This is the
 * command: which capture, where to listen, who gets an answer, and the loop. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/process.h"
#include "cli/serve.h"
#include "libprof/base/clock.h"
#include "libprof/base/regular.h"

#define LOOK_BUDGET_NS 200000000 /* of a look, while nothing is answered */
#define TICK_MS 250              /* the file is left alone soon after its writer wants to end it */
#define LEAST_TOKEN 16
#define MOST_TOKEN 512

struct serve_options {
    bool attach, quiet;
    const char *address, *socket, *token_file, *iteration;
    uint64_t delay;
    unsigned top;
};

static const struct cli_option serve_options[] = {
    CLI_OPTION(
        serve_options, attach, "attach", 0, FLAG, NULL,
        "what `perfkit run` of this user records, now and from now on: wait for a recording, "
        "and go on to the next one",
        .group = "What is served"),
    CLI_OPTION(serve_options, top, "top", 'n', COUNT, "N",
               "kernels with series of their own, by their time; those that had one keep it, up to "
               "twice as many",
               .fallback = "50", .most = 1000),
    CLI_OPTION(serve_options, delay, "refresh", 'd', TIME, "TIME",
               "between two looks at the capture, at least 100ms", .fallback = "2s"),
    CLI_OPTION(serve_options, iteration, "iteration", 'i', TEXT, "RANGE[@DOMAIN]",
               "the NVTX range that is one iteration",
               .fallback = "step or alike, else the outermost range that repeats"),
    CLI_OPTION(serve_options, address, "listen", 0, TEXT, "ADDRESS:PORT",
               "where to listen: a numeric address or localhost; port 0 = a free one",
               .fallback = "127.0.0.1:9847", .group = "Access"),
    CLI_OPTION(serve_options, socket, "socket", 0, FILE, "PATH",
               "listen on a Unix socket instead, for this user only"),
    CLI_OPTION(serve_options, token_file, "token-file", 0, FILE, "FILE",
               "answer only requests with the token in this file, which only this user may read; "
               "needed for any address that is not of this machine alone"),
    CLI_QUIET_ROW(serve_options, quiet, "print only errors"),
    {0},
};

static const struct cli_text_row serve_examples[] = {
    {"perfkit serve --attach", "Metrics at http://127.0.0.1:9847/metrics, for Prometheus."},
    {"perfkit serve train.sqlite", "A page at http://127.0.0.1:9847/ that follows the recording."},
    {"perfkit serve --attach --listen 0.0.0.0:9847 --token-file token",
     "For other machines, which have the token."},
    {0},
};

/* ---- where to listen ------------------------------------------------------------------------- */

/* The first line. *err says what is wrong with it or with who may read it. */
static enum prof_status read_token(const char *path, char token[MOST_TOKEN], struct prof_error *err)
{
    struct stat info;
    PROF_FILE_CLOSED FILE *file = fopen(path, "re");
    if (!file)
        return prof_fail_errno(err, PROF_INVALID, "%s: cannot be read", path);
    bool others = !fstat(fileno(file), &info) && info.st_mode & 077;
    bool read = fgets(token, MOST_TOKEN, file) != NULL;
    if (others)
        return prof_fail(err, PROF_INVALID, "%s: others may read it: chmod 600 %s", path, path);
    token[read ? strcspn(token, "\r\n") : 0] = '\0';
    if (strlen(token) < LEAST_TOKEN)
        return prof_fail(err, PROF_INVALID, "%s: a token has at least %d characters, in one line",
                         path, LEAST_TOKEN);
    for (const char *c = token; *c; c++)
        if (*c <= ' ' || *c > '~')
            return prof_fail(err, PROF_INVALID,
                             "%s: a token has letters, digits and signs of ASCII", path);
    return PROF_OK;
}

static bool is_loopback(const struct sockaddr *address)
{
    const struct sockaddr_in *four = (const void *)address;
    const struct sockaddr_in6 *six = (const void *)address;
    return address->sa_family == AF_INET ? ntohl(four->sin_addr.s_addr) >> 24 == 127
                                         : IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
}

/* "127.0.0.1:9847", "[::1]:9847". */
static enum prof_status find_address(const char *text, struct addrinfo **found,
                                     struct prof_error *err)
{
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                                   .ai_socktype = SOCK_STREAM};
    char host[64] = "";
    const char *colon = strrchr(text, ':');
    size_t length = colon ? (size_t)(colon - text) : 0;
    bool brackets = length > 2 && text[0] == '[' && text[length - 1] == ']';
    if (length && length < sizeof host)
        snprintf(host, sizeof host, "%.*s", (int)(length - 2 * brackets), text + brackets);
    if (!strcmp(host, "localhost"))
        strcpy(host, "127.0.0.1");
    bool port = colon && strlen(colon + 1) <= 5 && strtoul(colon + 1, NULL, 10) <= UINT16_MAX;
    if (!*host || !port || getaddrinfo(host, colon + 1, &hints, found))
        return prof_fail(err, PROF_INVALID,
                         "--listen %s: give a numeric address or localhost, and a port, as "
                         "127.0.0.1:9847",
                         text);
    return PROF_OK;
}

static enum prof_status listen_address(const struct serve_options *options, int *fd,
                                       struct prof_error *err)
{
    struct addrinfo *address;
    const int on = 1;
    enum prof_status status = find_address(options->address, &address, err);
    if (status)
        return status;
    if (!options->token_file && !is_loopback(address->ai_addr))
        status = prof_fail(err, PROF_INVALID,
                           "--listen %s: other machines reach this address: give --token-file, or "
                           "listen on 127.0.0.1",
                           options->address);
    *fd = status ? -1 : socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*fd >= 0)
        setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (!status &&
        (*fd < 0 || bind(*fd, address->ai_addr, address->ai_addrlen) || listen(*fd, SOMAXCONN)))
        status =
            errno == EADDRINUSE
                ? prof_fail(err, PROF_SYSTEM,
                            "cannot listen on %s: Address already in use: stop what listens "
                            "there, or choose another port with --listen (port 0 = a free one)",
                            options->address)
                : prof_fail_errno(err, PROF_SYSTEM, "cannot listen on %s", options->address);
    freeaddrinfo(address);
    return status;
}

/* A socket whose server is gone is replaced; any other file stays. (To connect to one that is no
 * socket is refused just so.) */
static void remove_stale_socket(const char *path, const struct sockaddr_un *address)
{
    struct stat info;
    if (lstat(path, &info) || !S_ISSOCK(info.st_mode))
        return;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return;
    if (connect(fd, (const struct sockaddr *)address, sizeof *address) && errno == ECONNREFUSED)
        unlink(path);
    close(fd);
}

/* *own: the file, to remove no other at the end. */
static enum prof_status listen_socket(const char *path, int *fd, struct stat *own,
                                      struct prof_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path)
        return prof_fail(err, PROF_INVALID, "--socket %s: the path is too long", path);
    strcpy(address.sun_path, path);
    remove_stale_socket(path, &address);
    *fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    mode_t before = umask(0177);
    bool bound = *fd >= 0 && !bind(*fd, (struct sockaddr *)&address, sizeof address);
    umask(before);
    if (!bound || listen(*fd, SOMAXCONN) || lstat(path, own))
        return prof_fail_errno(err, PROF_SYSTEM, "cannot listen on %s", path);
    return PROF_OK;
}

static void remove_own_socket(const char *path, const struct stat *own)
{
    struct stat now;
    if (!lstat(path, &now) && now.st_ino == own->st_ino && now.st_dev == own->st_dev)
        unlink(path);
}

static void print_place(const struct cli_command *command, const struct serve_options *options,
                        int fd, const struct tui_model *model)
{
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    char host[64], port[16], place[200];
    snprintf(place, sizeof place, "%s", options->socket ? options->socket : options->address);
    if (!options->socket && !getsockname(fd, (struct sockaddr *)&address, &length) &&
        !getnameinfo((struct sockaddr *)&address, length, host, sizeof host, port, sizeof port,
                     NI_NUMERICHOST | NI_NUMERICSERV))
        snprintf(place, sizeof place, strchr(host, ':') ? "http://[%s]:%s/" : "http://%s:%s/", host,
                 port);
    cli_say(command->name, "%s is at %s", model ? model->path : "what is recorded next", place);
}

/* ---- the loop -------------------------------------------------------------------------------- */

/* Once: what is wrong for long is said at its begin. `message` "": nothing is. */
static void complain(char said[], size_t size, const char *message)
{
    if (*message && strcmp(said, message) != 0)
        cli_say("serve", "%s", message);
    snprintf(said, size, "%s", message);
}

/* --attach: the recording that runs, once none is watched any more. PROF_INVALID: it is not clear
 * which. */
static enum prof_status follow_recordings(struct serve_metrics *metrics, struct prof_error *err)
{
    const struct tui_model *model = metrics->model;
    if (model && tui_model_is_live(model))
        return PROF_OK;
    PROF_FREED struct top_capture *capture = calloc(1, sizeof *capture);
    if (!capture)
        return prof_out_of_memory(err);
    enum prof_status status = top_running(false, capture, err);
    bool other = !status && (!model || strcmp(capture->path, model->path) != 0);
    if (other && !serve_metrics_watch(metrics, capture))
        status = prof_out_of_memory(err);
    return status == PROF_NOTFOUND ? PROF_OK : status;
}

/* A capture that cannot be read may be replaced by one that can. */
static enum prof_status serve_until_ended(const struct serve_options *options,
                                          struct serve_metrics *metrics, struct serve_http *http,
                                          struct prof_error *err)
{
    uint64_t due = 0;
    char said[sizeof err->message] = "";
    enum prof_status status = PROF_OK;
    while (status != PROF_NOMEM && !cli_interrupted()) {
        bool at_once = metrics->model && tui_model_tick(metrics->model);
        if (prof_now_ns() >= due || at_once) {
            *err = (struct prof_error){0};
            status = options->attach ? follow_recordings(metrics, err) : PROF_OK;
            if (!status && metrics->model)
                status = serve_metrics_look(metrics, LOOK_BUDGET_NS, err);
            complain(said, sizeof said, status ? err->message : "");
            serve_http_refresh(http);
            due = prof_now_ns() + options->delay;
        }
        serve_http_run(http, TICK_MS);
    }
    return status == PROF_NOMEM ? status : PROF_OK;
}

static enum prof_status find_served(const struct serve_options *options, const char *file,
                                    struct serve_metrics *metrics, struct prof_error *err)
{
    PROF_FREED struct top_capture *capture = calloc(1, sizeof *capture);
    enum prof_status status = capture ? PROF_OK : prof_out_of_memory(err);
    if (!status && file && access(file, F_OK))
        status = prof_fail(err, PROF_NOTFOUND, "%s: no such file", file);
    else if (!status && file)
        top_named(file, capture);
    else if (!status)
        status = top_running(false, capture, err);
    if (!status && capture->path[0] == '-') /* which reports would take for an option */
        status = prof_fail(err, PROF_INVALID, "%s: write ./%s", capture->path, capture->path);
    if (!status && !serve_metrics_watch(metrics, capture))
        status = prof_out_of_memory(err);
    /* All that is there: the counters begin with it, unless it cannot be read now. */
    while (!status && !cli_interrupted() && metrics->model && !metrics->model->caught_up &&
           !metrics->model->error.message[0] && metrics->model->phase != TUI_GONE &&
           metrics->model->phase != TUI_LET_GO)
        status = serve_metrics_look(metrics, 0, err);
    if (status && status != PROF_NOMEM && options->attach && !file) {
        *err = (struct prof_error){0};
        return PROF_OK; /* none yet, or its file is not there yet */
    }
    return status;
}

static int serve_run(const struct cli_command *command, void *given,
                     const struct cli_operands *operands, struct prof_error *err)
{
    struct serve_options *options = given;
    struct serve_metrics metrics = {0};
    struct serve_http *http = NULL;
    struct stat own;
    char token[MOST_TOKEN];
    int fd = -1;
    if (operands->count && options->attach)
        return cli_fail(CLI_USAGE, command->name,
                        "a file and --attach exclude each other: give one");
    if (options->delay < 100000000)
        options->delay = 100000000;
    metrics.top = options->top;
    metrics.filter.iteration = options->iteration;
    cli_catch_interrupts();
    enum prof_status status = serve_http_load(err);
    if (!status && options->token_file)
        status = read_token(options->token_file, token, err);
    if (!status)
        status = options->socket ? listen_socket(options->socket, &fd, &own, err)
                                 : listen_address(options, &fd, err);
    bool bound = !status && options->socket;
    if (!status)
        status = find_served(options, operands->count ? operands->values[0] : NULL, &metrics, err);
    if (!status)
        status = serve_http_start(fd, options->token_file ? token : NULL,
                                  !options->token_file && !options->socket, &metrics, &http, err);
    if (!status && !options->quiet)
        print_place(command, options, fd, metrics.model);
    status = status ?: serve_until_ended(options, &metrics, http, err);
    serve_http_stop(http);
    serve_metrics_free(&metrics);
    if (bound)
        remove_own_socket(options->socket, &own);
    return (int)cli_exit_status(status);
}

const struct cli_command serve_command = {
    .name = "serve",
    .summary = "give live numbers to Prometheus, and the report to browsers",
    .operands = "[FILE]",
    .text =
        "Answers HTTP requests about a capture while it is recorded, or a finished one: metrics "
        "for Prometheus at /metrics, the HTML report at /, JSON at /api/report and /api/top, a "
        "profile for pprof at /profile.pb.gz and for OpenTelemetry at /profile.otlp. Without a "
        "file: of the program that `perfkit run` "
        "is recording. It reads only, and the program is not affected. Only this machine can "
        "reach it unless a token is given.",
    .options = serve_options,
    CLI_OPTIONS_ARE(serve_options, .address = "127.0.0.1:9847", .delay = 2000000000, .top = 50),
    .examples = serve_examples,
    .operand = CLI_FILE,
    .most = 1,
    .run = serve_run,
};
