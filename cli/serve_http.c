/* The HTTP of perfkit serve, by libmicrohttpd, which is loaded when it is needed: no other command
 * pays for it and for what it links. One thread answers; reports are made by processes of perfkit,
 * one of a kind at a time, so that neither their memory nor a fault of theirs is the server's. It
 * reads only. */
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/process.h"
#include "cli/serve.h"
#include "libprof/base/clock.h"
#include "libprof/base/json.h"
#include "report/html.h"
#include "report/pack.h"

#if PERFKIT_HAVE_MICROHTTPD
#include <microhttpd.h>

#define LIBRARY "libmicrohttpd.so.12"
#define CONNECTIONS 1536 /* at once; of 8 KiB each */
#define CONNECTION_BYTES                                                                           \
    8192          /* what a request's head may have, with what is said about the answer */
#define IDLE_S 10 /* a client that sends or takes nothing for so long is gone */
#define FRESH_NS 5000000000ull  /* a report that is younger is given again */
#define FRESH_TIMES 10          /* likewise for so many times what making it took */
#define MOST_NS 120000000000ull /* that making one may take */
#define REFRESH_MS 2000         /* between two events */

/* ---- libmicrohttpd --------------------------------------------------------------------------- */

#define CALLS(X)                                                                                   \
    X(start_daemon)                                                                                \
    X(stop_daemon)                                                                                 \
    X(get_daemon_info)                                                                             \
    X(get_timeout)                                                                                 \
    X(run)                                                                                         \
    X(create_response_from_buffer)                                                                 \
    X(create_response_from_fd64)                                                                   \
    X(add_response_header)                                                                         \
    X(queue_response)                                                                              \
    X(destroy_response)                                                                            \
    X(lookup_connection_value)                                                                     \
    X(suspend_connection)                                                                          \
    X(resume_connection)

static struct {
#define X(name) __typeof__(&MHD_##name) name;
    CALLS(X)
#undef X
} mhd;

enum prof_status serve_http_load(struct prof_error *err)
{
    static const char *const names[] = {
#define X(name) "MHD_" #name,
        CALLS(X)
#undef X
    };
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return prof_fail(err, PROF_UNSUPPORTED,
                         "%s: install libmicrohttpd (Debian: libmicrohttpd12, Ubuntu 24.04: "
                         "libmicrohttpd12t64)",
                         dlerror());
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *function = dlsym(library, names[i]);
        if (!function)
            return prof_fail(err, PROF_UNSUPPORTED, "%s of this machine has no %s", LIBRARY,
                             names[i]);
        memcpy((char *)&mhd + i * sizeof function, &function, sizeof function);
    }
    return PROF_OK;
}

/* ---- what is made by a process --------------------------------------------------------------- */

struct job {
    const char *path, *type;
    const char *words[6]; /* of the command line; the capture is behind them */

    pid_t process;               /* 0 = none runs */
    enum tui_phase phase;        /* of the capture when it was started */
    uint64_t began_ns, stale_ns; /* when the last one is too old; 0 = there is none */
    FILE *output, *errors;       /* nameless files */
    struct MHD_Response *made;
    int status; /* of the last one: exit status, -1 = it could not be run */
    PROF_ARRAY(struct MHD_Connection *) waiting; /* suspended */
};

static const struct job jobs[] = {
    {.path = "/report.html", .type = "text/html; charset=utf-8", .words = {"report", "--html=-"}},
    {.path = "/api/report", .type = "application/json", .words = {"report", "--json"}},
    {.path = "/api/top",
     .type = "application/json",
     .words = {"top", "--json", "--count=1", "--view=all"}},
    {.path = "/profile.pb.gz",
     .type = "application/octet-stream",
     .words = {"report", "--quiet", "--pprof=-"}},
    {.path = "/profile.otlp",
     .type = "application/x-protobuf",
     .words = {"report", "--quiet", "--otlp=-"}},
};
#define JOBS (sizeof jobs / sizeof *jobs)

struct serve_http {
    struct MHD_Daemon *daemon;
    int epoll;
    struct serve_metrics *metrics;
    bool numeric;
    char *bearer, *basic;          /* what Authorization must be, one of them; NULL = nothing */
    struct MHD_Response *pages[2]; /* of /metrics: as text, OpenMetrics */
    struct job jobs[JOBS];
};

static void forget_made(struct job *job)
{
    if (job->made)
        mhd.destroy_response(job->made);
    job->made = NULL;
    if (job->output)
        fclose(job->output);
    if (job->errors)
        fclose(job->errors);
    job->output = job->errors = NULL;
}

static bool start_job(struct job *job, const char *capture)
{
    char *argv[10] = {(char *)(uintptr_t) "perfkit"};
    size_t count = 1;
    forget_made(job);
    job->output = tmpfile();
    job->errors = tmpfile();
    if (!job->output || !job->errors)
        return false;
    for (; job->words[count - 1]; count++)
        argv[count] = (char *)(uintptr_t)job->words[count - 1];
    argv[count] = (char *)(uintptr_t)capture;
    if (!process_spawn_self(argv, fileno(job->output), fileno(job->errors), &job->process)) {
        job->process = 0;
        return false;
    }
    setpriority(PRIO_PROCESS, (id_t)job->process, 10); /* the program goes first */
    job->began_ns = prof_now_ns();
    return true;
}

static void end_job(struct job *job, int status)
{
    job->process = 0;
    job->status = status;
    uint64_t now = prof_now_ns(), fresh = (now - job->began_ns) * FRESH_TIMES;
    job->stale_ns = now + (fresh > FRESH_NS ? fresh : FRESH_NS);
    for (size_t i = 0; i < job->waiting.count; i++)
        mhd.resume_connection(job->waiting.data[i]);
    job->waiting.count = 0;
}

/* True: one runs. */
static bool check_jobs(struct serve_http *http)
{
    bool running = false;
    for (size_t i = 0; i < JOBS; i++) {
        struct job *job = &http->jobs[i];
        int status;
        if (!job->process)
            continue;
        if (waitpid(job->process, &status, WNOHANG) == job->process)
            end_job(job, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
        else if (prof_now_ns() - job->began_ns > MOST_NS)
            kill(job->process, SIGKILL);
        running |= job->process != 0;
    }
    return running;
}

/* ---- answers --------------------------------------------------------------------------------- */

/* Takes the response. */
static enum MHD_Result give(struct MHD_Connection *connection, unsigned status,
                            struct MHD_Response *response)
{
    if (!response)
        return MHD_NO; /* closes the connection */
    enum MHD_Result queued = mhd.queue_response(connection, status, response);
    mhd.destroy_response(response);
    return queued;
}

static struct MHD_Response *with_headers(struct MHD_Response *response, const char *type)
{
    static const char *const headers[][2] = {
        {"Cache-Control", "no-store"},
        {"X-Content-Type-Options", "nosniff"},
        {"Referrer-Policy", "no-referrer"},
    };
    if (response)
        mhd.add_response_header(response, "Content-Type", type);
    for (size_t i = 0; response && i < sizeof headers / sizeof *headers; i++)
        mhd.add_response_header(response, headers[i][0], headers[i][1]);
    return response;
}

/* `text` is copied. */
static struct MHD_Response *text_response(const char *text, size_t length, const char *type)
{
    return with_headers(
        mhd.create_response_from_buffer(length, (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY),
        type);
}

static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned status, const char *why)
{
    struct MHD_Response *response = text_response(why, strlen(why), "text/plain; charset=utf-8");
    if (response && status == MHD_HTTP_UNAUTHORIZED)
        mhd.add_response_header(response, "WWW-Authenticate", "Basic realm=\"perfkit\"");
    if (response && status == MHD_HTTP_METHOD_NOT_ALLOWED)
        mhd.add_response_header(response, "Allow", "GET, HEAD");
    if (response)
        mhd.add_response_header(response, "Connection", "close");
    return give(connection, status, response);
}

static enum MHD_Result answer_metrics(struct serve_http *http, struct MHD_Connection *connection)
{
    const char *accept = mhd.lookup_connection_value(connection, MHD_HEADER_KIND, "Accept");
    bool open = accept && strstr(accept, "application/openmetrics-text");
    struct MHD_Response **page = &http->pages[open];
    if (!*page) {
        PROF_FREED char *text = NULL;
        size_t size;
        FILE *out = prof_open_memory(&text, &size);
        if (out)
            serve_metrics_write(http->metrics, out, open);
        if (out && prof_close_stream(out))
            *page = text_response(text, size,
                                  open ? "application/openmetrics-text; version=1.0.0; "
                                         "charset=utf-8"
                                       : "text/plain; version=0.0.4; charset=utf-8");
    }
    return *page ? mhd.queue_response(connection, MHD_HTTP_OK, *page)
                 : refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory\n");
}

/* One event, after which the browser requests the next: nothing is kept open. */
static enum MHD_Result answer_event(struct serve_http *http, struct MHD_Connection *connection)
{
    const struct tui_model *model = http->metrics->model;
    PROF_FREED char *text = NULL;
    size_t size;
    struct prof_json json;
    FILE *out = prof_open_memory(&text, &size);
    if (!out)
        return MHD_NO;
    fprintf(out, "retry: %d\ndata: ", REFRESH_MS);
    prof_json_to_file(&json, out, 0);
    prof_json_object(&json, NULL);
    prof_json_string(&json, "state", serve_metrics_state(http->metrics));
    prof_json_int(&json, "time_ns", model && model->now_ns > 0 ? model->now_ns : 0);
    prof_json_int(&json, "kernels", model ? model->total.count : 0);
    prof_json_real(&json, "kernels_per_s", http->metrics->kernels_per_s);
    prof_json_int(&json, "memcpys", model ? model->moved.memcpys : 0);
    prof_json_int(&json, "dropped", http->metrics->most_dropped);
    prof_json_end(&json);
    bool ok = !prof_json_finish(&json, NULL);
    fputs("\n\n", out);
    ok &= prof_close_stream(out);
    struct MHD_Response *response = ok ? text_response(text, size, "text/event-stream") : NULL;
    return give(connection, MHD_HTTP_OK, response);
}

/* The same response, and one descriptor, for all. */
static enum MHD_Result answer_made(struct MHD_Connection *connection, struct job *job)
{
    struct stat info;
    bool ok = job->status == CLI_OK;
    FILE *file = ok ? job->output : job->errors;
    int fd = job->made || !file ? -1 : fcntl(fileno(file), F_DUPFD_CLOEXEC, 3);
    if (fd >= 0 && !fstat(fd, &info))
        job->made = with_headers(mhd.create_response_from_fd64((uint64_t)info.st_size, fd),
                                 ok ? job->type : "text/plain; charset=utf-8");
    if (fd >= 0 && !job->made)
        close(fd);
    return job->made ? mhd.queue_response(
                           connection, ok ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE, job->made)
                     : MHD_NO;
}

/* What is young enough, else the connection waits for what is made now. */
static enum MHD_Result answer_job(struct serve_http *http, struct MHD_Connection *connection,
                                  struct job *job)
{
    const struct tui_model *model = http->metrics->model;
    if (!model)
        return refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "no capture is being recorded\n");
    if (!job->process && prof_now_ns() < job->stale_ns && job->phase == model->phase)
        return answer_made(connection, job);
    if (!job->process)
        job->phase = model->phase;
    if (!job->process && !start_job(job, model->path))
        return refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "cannot start perfkit\n");
    if (!prof_array_push(&job->waiting, connection))
        return MHD_NO;
    mhd.suspend_connection(connection);
    return MHD_YES;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* In a time that does not depend on where they differ. */
static bool same_secret(const char *given, const char *secret)
{
    size_t length = strlen(secret);
    unsigned differ = 0;
    if (strlen(given) != length)
        return false;
    for (size_t i = 0; i < length; i++)
        differ |= (unsigned char)given[i] ^ (unsigned char)secret[i];
    return !differ;
}

/* A page of another site can make a browser send requests to 127.0.0.1 by a name of its own: only
 * numbers and localhost are answered. */
static bool is_numeric_host(const char *host)
{
    size_t name = host ? strcspn(host, ":") : 0;
    return !host || host[0] == '[' || (name == 9 && !strncasecmp(host, "localhost", 9)) ||
           strspn(host, "0123456789.") == name;
}

static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *path,
                              const char *method, const char *version, const char *data,
                              size_t *size, void **state)
{
    struct serve_http *http = context;
    const char *given = mhd.lookup_connection_value(connection, MHD_HEADER_KIND, "Authorization");
    (void)version;
    (void)data;
    (void)size;
    (void)state;
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "this server is read only\n");
    if (http->bearer &&
        (!given || (!same_secret(given, http->bearer) && !same_secret(given, http->basic))))
        return refuse(connection, MHD_HTTP_UNAUTHORIZED,
                      "give the token: as Bearer, or as the password of the user perfkit\n");
    if (http->numeric &&
        !is_numeric_host(mhd.lookup_connection_value(connection, MHD_HEADER_KIND, "Host")))
        return refuse(connection, MHD_HTTP_FORBIDDEN,
                      "use localhost or a numeric address in place of a host name\n");
    if (!strcmp(path, "/metrics"))
        return answer_metrics(http, connection);
    if (!strcmp(path, "/events"))
        return answer_event(http, connection);
    if (!strcmp(path, "/")) {
        const struct prof_html_file *live = prof_html_files;
        while (strcmp(live->name, "live.html") != 0)
            live++;
        struct MHD_Response *page =
            text_response((const char *)live->bytes, live->length, "text/html; charset=utf-8");
        if (page)
            mhd.add_response_header(page, "Content-Security-Policy",
                                    "default-src 'none'; frame-src 'self'; connect-src 'self'; "
                                    "script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
                                    "img-src data:; frame-ancestors 'none'");
        return give(connection, MHD_HTTP_OK, page);
    }
    for (size_t i = 0; i < JOBS; i++)
        if (!strcmp(path, jobs[i].path))
            return answer_job(http, connection, &http->jobs[i]);
    return refuse(connection, MHD_HTTP_NOT_FOUND,
                  "there are: / /report.html /metrics /events /api/report /api/top "
                  "/profile.pb.gz /profile.otlp\n");
}

/* ---- the server ------------------------------------------------------------------------------ */

/* "Basic " and base64 of perfkit:TOKEN. */
static char *basic_secret(const char *token)
{
    char *text = NULL;
    size_t size;
    FILE *out = prof_open_memory(&text, &size);
    if (out)
        fputs("Basic ", out);
    FILE *coded = out ? prof_report_base64(out) : NULL;
    bool whole = coded && fprintf(coded, "perfkit:%s", token) > 0;
    whole &= coded && !fclose(coded);
    if (out && prof_close_stream(out) && whole)
        return text;
    free(text);
    return NULL;
}

/* A connection each, and files. */
static unsigned allow_descriptors(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files))
        return 256;
    rlim_t wanted = CONNECTIONS + 64;
    if (files.rlim_cur < wanted) {
        files.rlim_cur = files.rlim_max < wanted ? files.rlim_max : wanted;
        setrlimit(RLIMIT_NOFILE, &files);
        getrlimit(RLIMIT_NOFILE, &files);
    }
    return files.rlim_cur >= wanted ? CONNECTIONS
           : files.rlim_cur > 128   ? (unsigned)files.rlim_cur - 64
                                    : 64;
}

enum prof_status serve_http_start(int socket, const char *token, bool numeric,
                                  struct serve_metrics *metrics, struct serve_http **result,
                                  struct prof_error *err)
{
    struct serve_http *http = *result = calloc(1, sizeof *http);
    if (!http)
        return prof_out_of_memory(err);
    http->metrics = metrics;
    http->numeric = numeric;
    memcpy(http->jobs, jobs, sizeof jobs);
    if (token &&
        (asprintf(&http->bearer, "Bearer %s", token) < 0 || !(http->basic = basic_secret(token))))
        return prof_out_of_memory(err);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_DFL);
    http->daemon = mhd.start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, answer, http,
        MHD_OPTION_LISTEN_SOCKET, socket, MHD_OPTION_CONNECTION_LIMIT, allow_descriptors(),
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_BYTES, MHD_OPTION_END);
    const union MHD_DaemonInfo *info =
        http->daemon ? mhd.get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
    if (!info)
        return prof_fail(err, PROF_SYSTEM, "libmicrohttpd cannot start a server");
    http->epoll = info->epoll_fd;
    return PROF_OK;
}

void serve_http_run(struct serve_http *http, int wait_ms)
{
    MHD_UNSIGNED_LONG_LONG due;
    if (check_jobs(http) && wait_ms > 50)
        wait_ms = 50;
    if (mhd.get_timeout(http->daemon, &due) == MHD_YES && due < (unsigned)wait_ms)
        wait_ms = (int)due;
    poll(&(struct pollfd){.fd = http->epoll, .events = POLLIN}, 1, wait_ms);
    mhd.run(http->daemon);
}

void serve_http_refresh(struct serve_http *http)
{
    for (int i = 0; i < 2; i++) {
        if (http->pages[i])
            mhd.destroy_response(http->pages[i]);
        http->pages[i] = NULL;
    }
}

void serve_http_stop(struct serve_http *http)
{
    if (!http)
        return;
    for (size_t i = 0; i < JOBS; i++) {
        struct job *job = &http->jobs[i];
        if (job->process) {
            kill(job->process, SIGKILL);
            waitpid(job->process, NULL, 0);
            end_job(job, -1);
        }
    }
    serve_http_refresh(http);
    if (http->daemon)
        mhd.stop_daemon(http->daemon);
    for (size_t i = 0; i < JOBS; i++) {
        forget_made(&http->jobs[i]);
        prof_array_free(&http->jobs[i].waiting);
    }
    free(http->bearer);
    free(http->basic);
    free(http);
}

#else

enum prof_status serve_http_load(struct prof_error *err)
{
    return prof_fail(err, PROF_UNSUPPORTED,
                     "this perfkit was built without libmicrohttpd: build it with "
                     "libmicrohttpd-dev");
}

enum prof_status serve_http_start(int socket, const char *token, bool numeric,
                                  struct serve_metrics *metrics, struct serve_http **result,
                                  struct prof_error *err)
{
    (void)socket, (void)token, (void)numeric, (void)metrics;
    *result = NULL;
    return serve_http_load(err);
}

void serve_http_run(struct serve_http *http, int wait_ms)
{
    (void)http, (void)wait_ms;
}

void serve_http_refresh(struct serve_http *http)
{
    (void)http;
}

void serve_http_stop(struct serve_http *http)
{
    (void)http;
}

#endif
