/* Running an export or import for a person: it may take a minute, may be interrupted, and says at
 * the end what the other shape could not hold. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/exchange.h"
#include "libprof/base/clock.h"
#include "libprof/base/format.h"

#define QUIET_NS 1000000000u /* what takes less needs no progress */
#define PERIOD_NS 250000000u

static volatile sig_atomic_t interrupted;

static void on_exchange_interrupt(int signal)
{
    interrupted = signal;
}

bool exchange_show(void *user, uint64_t done)
{
    struct exchange_shown *shown = user;
    uint64_t now = prof_now_ns();
    if (shown->quiet || now - shown->start_ns < QUIET_NS || now - shown->last_ns < PERIOD_NS)
        return !interrupted;
    shown->last_ns = now;
    shown->drawn = true;
    fprintf(stderr, "\rperfkit %s: %s %s ... ", shown->command, prof_count((int64_t)done).text,
            shown->what);
    fflush(stderr);
    return !interrupted;
}

bool exchange_is_file(const struct cli_command *command, const char *output)
{
    bool is_file = strcmp(output, "-") != 0;
    if (!is_file)
        cli_say(command->name, "-: this is not written in order: give a name");
    return is_file;
}

void exchange_begin(struct exchange_shown *shown, const char *command, const char *what, bool quiet)
{
    struct sigaction action = {.sa_handler = on_exchange_interrupt, .sa_flags = (int)SA_RESETHAND};
    *shown = (struct exchange_shown){.command = command,
                                     .what = what,
                                     .quiet = quiet || !isatty(STDERR_FILENO),
                                     .start_ns = prof_now_ns()};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
}

int exchange_end(const struct exchange_shown *shown, const char *output, enum prof_status status,
                 const struct prof_error *err)
{
    if (shown->drawn)
        fprintf(stderr, "\r\033[K");
    if (interrupted && status) { /* nothing is left behind: end as the signal asked */
        cli_say(shown->command, "interrupted: %s was not written", output);
        raise(interrupted);
        return CLI_FAILED;
    }
    if (!status)
        return CLI_OK;
    cli_say(shown->command, "%s", err->message);
    return cli_exit_status(status);
}

int exchange_run(const struct cli_command *command, exchange_call *call, const char *path,
                 const char *output, bool force, bool quiet, const char *what)
{
    struct exchange_shown shown;
    struct prof_exchange_options options = {
        .overwrite = force, .progress = exchange_show, .user = &shown};
    struct prof_exchange_result result;
    struct prof_error err = {0};
    char one[16];
    snprintf(one, sizeof one, "%.*s", (int)strlen(what) - 1, what);
    if (!exchange_is_file(command, output))
        return CLI_USAGE;
    exchange_begin(&shown, command->name, what, quiet);
    enum prof_status status = call(path, output, &options, &result, &err);
    int exit_status = exchange_end(&shown, output, status, &err);
    if (exit_status)
        return exit_status;
    for (int i = 0; !quiet && i < result.note_count; i++)
        cli_say(command->name, "note: %s", result.notes[i]);
    if (!quiet)
        cli_say(command->name, "wrote %s: %s", output,
                prof_counted((int64_t)result.rows, one, what).text);
    prof_exchange_result_free(&result);
    return CLI_OK;
}
