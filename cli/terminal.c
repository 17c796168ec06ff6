/* Standard error and the terminal: messages, the line of progress, and what a terminal allows, so
 * that these rules are written once. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/command.h"
#include "libprof/base/clock.h"
#include "libprof/base/json.h"
#include "libprof/base/utf8.h"
#include "report/writers.h"

/* ---- messages -------------------------------------------------------------------------------- */

#define LINE 2048
#define TEXT (4 * LINE) /* so many bytes of a message are looked at */

/* What is wrong comes first and the fix last: a long name loses its middle. */
static void put_shortened(char *out, size_t room, const char *text)
{
    size_t length = strlen(text), half = (room - sizeof " ... ") / 2;
    if (length < room)
        memcpy(out, text, length + 1);
    else
        snprintf(out, room, "%.*s ... %s", (int)half, text, text + length - half);
}

static bool progress_shown;

void cli_show_progress(const char *command, const char *format, ...)
{
    char text[LINE], clean[LINE];
    if (!isatty(STDERR_FILENO))
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    prof_report_clean_into(text, clean, sizeof clean);
    fprintf(stderr, "\r\033[Kperfkit %s: %s", command, clean);
    fflush(stderr);
    progress_shown = true;
}

void cli_wipe_progress(void)
{
    if (progress_shown && write(STDERR_FILENO, "\r\033[K", 4) < 0) {
    }
    progress_shown = false;
}

bool cli_progress_due(struct cli_progress *progress)
{
    uint64_t now = prof_now_ns();
    progress->start_ns = progress->start_ns ? progress->start_ns : now;
    if (now - progress->start_ns < 1000000000u || now < progress->next_ns)
        return false;
    progress->next_ns = now + 200000000u;
    return true;
}

static void print_message(const char *command, const char *format, va_list args)
{
    int saved = errno;
    char line[LINE], text[TEXT],
        clean[2 * TEXT]; /* no memory: a message may be about having none */
    size_t used =
        (size_t)snprintf(line, sizeof line, "perfkit%s%s: ", *command ? " " : "", command);
    vsnprintf(text, sizeof text, format, args);
    /* Names come from the user, the program and the capture: none may steer the terminal. */
    prof_report_clean_into(text, clean, sizeof clean);
    put_shortened(line + used, sizeof line - used - 1, clean);
    used = strlen(line);
    line[used++] = '\n';
    cli_wipe_progress();
    /* Standard error may be closed; there is nowhere else to report that. */
    if (write(STDERR_FILENO, line, used) < 0) {
    }
    errno = saved;
}

void cli_say(const char *command, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_message(command, format, args);
    va_end(args);
}

bool cli_refuse(const char *command, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_message(command, format, args);
    va_end(args);
    return false;
}

int cli_fail(int exit_status, const char *command, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_message(command, format, args);
    va_end(args);
    return exit_status;
}

/* ---- what the terminal allows ---------------------------------------------------------------- */

/* Colour only on a terminal and never with NO_COLOR (https://no-color.org); width for wrapping. */

size_t terminal_width(FILE *stream)
{
    struct winsize size;
    if (ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col >= 40)
        return size.ws_col < 100 ? size.ws_col : 100;
    return 80;
}

static size_t number_in_environment(const char *name, unsigned long min)
{
    const char *text = getenv(name);
    char *end;
    if (!text || *text < '0' || *text > '9')
        return 0;
    unsigned long number = strtoul(text, &end, 10);
    return *end == '\0' && number >= min && number <= 10000 ? number : 0;
}

size_t terminal_report_width(void)
{
    size_t width = number_in_environment("COLUMNS", 40);
    return width || !isatty(STDOUT_FILENO) ? width : terminal_width(stdout);
}

size_t terminal_lines(FILE *stream)
{
    struct winsize size;
    size_t lines = number_in_environment("LINES", 10);
    if (!lines && isatty(fileno(stream)) && ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 &&
        size.ws_row >= 10)
        lines = size.ws_row;
    return lines ? lines - 1 : 0;
}

bool terminal_colour(FILE *stream)
{
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    if ((no_color && *no_color) || (term && strcmp(term, "dumb") == 0))
        return false;
    return isatty(fileno(stream));
}

/* ---- a table with a head --------------------------------------------------------------------- */

enum prof_status cli_print_document(const struct cli_document *document, unsigned format,
                                    struct prof_error *err)
{
    struct prof_json json;
    struct prof_report_output output = {
        .format = (enum prof_report_format)format,
        .page = {.out = stdout,
                 .width = isatty(STDOUT_FILENO) ? terminal_width(stdout) : number_in_environment("COLUMNS", 40) ?: 100}};
    enum prof_status status = PROF_OK;
    if (format == PROF_REPORT_TEXT)
        document->text_head(document->result);
    if (format == PROF_REPORT_JSON) {
        prof_json_to_file(&json, stdout, 2);
        output.json = &json;
        prof_json_object(&json, NULL);
        document->json_head(&json, document->result);
    }
    if (!document->refused || format != PROF_REPORT_TEXT)
        status =
            prof_report_put_rows(&output, document->table, document->rows, document->count, err);
    if (format == PROF_REPORT_JSON) {
        prof_json_end(&json);
        status = prof_json_finish(&json, err);
    }
    return status;
}
