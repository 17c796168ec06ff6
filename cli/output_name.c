/* Names of files that commands write. The patterns of -o: `srun perfkit run -o out-%r.sqlite --
 * ...` starts one perfkit a rank, and each must choose another name by itself. The letters are
 * those of Nsight Systems. */
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/output_name.h"
#include "libprof/spool/rank.h"
#include "libprof/base/regular.h"
#include "report/report.h"

struct name {
    const char *pattern;
    char *out;
    size_t used;
    struct prof_error *err;
};

static enum prof_status add_name_text(struct name *name, const char *text, size_t length)
{
    if (length >= PATH_MAX - name->used)
        return prof_fail(name->err, PROF_INVALID, "the name given with -o is too long");
    memcpy(name->out + name->used, text, length);
    name->used += length;
    name->out[name->used] = '\0';
    return PROF_OK;
}

/* Text that the user did not choose and first sees in a file's name. */
static enum prof_status add_foreign(struct name *name, const char *text)
{
    size_t from = name->used;
    enum prof_status status = add_name_text(name, text, strlen(text));
    for (size_t i = from; i < name->used; i++) {
        unsigned char byte = (unsigned char)name->out[i];
        if (byte < 0x20 || byte == 0x7f)
            name->out[i] = '_';
    }
    return status;
}

static enum prof_status add_name_number(struct name *name, long number)
{
    char text[24];
    int length = snprintf(text, sizeof text, "%ld", number);
    return add_name_text(name, text, (size_t)length);
}

static enum prof_status add_host(struct name *name)
{
    struct utsname system;
    uname(&system);
    return add_foreign(name, system.nodename);
}

static enum prof_status add_rank(struct name *name)
{
    struct prof_rank rank;
    prof_rank_read(&rank);
    const char *misread = rank.rank < 0 ? prof_rank_misread() : NULL;
    if (misread)
        return prof_fail(name->err, PROF_INVALID,
                         "-o %s: %s=%s is no rank: it is a number from 0 on, below the number of "
                         "ranks where that is known; correct it, or use %%p",
                         name->pattern, misread, getenv(misread));
    if (rank.rank < 0)
        return prof_fail(name->err, PROF_INVALID,
                         "-o %s: there is no rank in the environment (RANK, OMPI_COMM_WORLD_RANK, "
                         "PMI_RANK, SLURM_PROCID ...): let the launcher start perfkit, or use %%p",
                         name->pattern);
    return add_name_number(name, rank.rank);
}

/* `at` is behind "%q". */
static enum prof_status add_variable(struct name *name, const char **at)
{
    char variable[256];
    size_t length = **at == '{' ? strcspn(*at + 1, "}") : 0;
    if (!length || (*at)[length + 1] != '}' || length >= sizeof variable)
        return prof_fail(
            name->err, PROF_INVALID,
            "-o %s: %%q needs the name of an environment variable in braces: %%q{NAME}",
            name->pattern);
    memcpy(variable, *at + 1, length);
    variable[length] = '\0';
    *at += length + 2;
    const char *value = getenv(variable);
    if (!value || !*value)
        return prof_fail(
            name->err, PROF_INVALID,
            "-o %s: the variable %s is empty or not set: set it, or choose another name",
            name->pattern, variable);
    return add_foreign(name, value);
}

static enum prof_status add_pattern(struct name *name, const char **at)
{
    char letter = *(*at)++;
    switch (letter) {
    case '%':
        return add_name_text(name, "%", 1);
    case 'h':
        return add_host(name);
    case 'p':
        return add_name_number(name, (long)getpid());
    case 'r':
        return add_rank(name);
    case 'q':
        return add_variable(name, at);
    default:
        return prof_fail(name->err, PROF_INVALID, "-o %s: %%%.1s is no pattern: there are %s",
                         name->pattern, *at - 1, OUTPUT_PATTERNS);
    }
}

enum prof_status output_name(const char *pattern, char out[PATH_MAX], struct prof_error *err)
{
    struct name name = {.pattern = pattern, .out = out, .err = err};
    enum prof_status status = PROF_OK;
    out[0] = '\0';
    for (const char *at = pattern; *at && !status;) {
        size_t plain = strcspn(at, "%");
        status = plain ? add_name_text(&name, at, plain) : PROF_OK;
        at += plain;
        if (*at && !status) {
            at++;
            status = add_pattern(&name, &at);
        }
    }
    return status;
}

/* An output file replaces an older report without a question. That is right for reports and wrong
 * for everything that cannot be made again, so commands check here first what has that name. */
bool cli_is_database(const char *path)
{
    static const char magic[] = "SQLite format 3";
    char start[sizeof magic] = {0};
    int fd = prof_look_open(AT_FDCWD, path);
    bool whole = fd >= 0 && read(fd, start, sizeof start) == (ssize_t)sizeof start;
    if (fd >= 0)
        prof_look_close(fd);
    return whole && !memcmp(start, magic, sizeof magic);
}

bool cli_same_file(const char *a, const char *b)
{
    struct stat one, other;
    if (stat(a, &one) == 0 && stat(b, &other) == 0)
        return S_ISREG(one.st_mode) && one.st_ino == other.st_ino && one.st_dev == other.st_dev;
    return !strcmp(a, b);
}

bool cli_outputs_are_free(const char *command, const struct cli_output_file *files, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *path = files[i].path;
        if (!path || !strcmp(path, "-"))
            continue;
        if (cli_is_database(path))
            return cli_refuse(
                command,
                "--%s %s: a capture or a file of baselines is there, which a report must not "
                "replace: give another name",
                files[i].option, path);
        for (size_t j = 0; j < i; j++) {
            if (!files[j].path || !cli_same_file(path, files[j].path))
                continue;
            return cli_refuse(command, "--%s and --%s both name %s: give each a file of its own",
                              files[j].option, files[i].option, path);
        }
    }
    return true;
}

/* ---- reports that a signal interrupts -------------------------------------------------------- */

/* What a signal that ends perfkit must not leave behind: half a report. */

/* The disposition is the default one again: after the handler the signal ends the process, so that
 * a shell sees what ended it. */
static void on_report_interrupt(int number)
{
    prof_report_abandon();
    raise(number);
}

void cli_leave_no_half_report(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        struct sigaction old,
            action = {.sa_handler = on_report_interrupt, .sa_flags = (int)SA_RESETHAND};
        sigemptyset(&action.sa_mask);
        if (!sigaction(signals[i], NULL, &old) && old.sa_handler == SIG_DFL)
            sigaction(signals[i], &action, NULL); /* what is ignored, as under nohup, stays so */
    }
}
