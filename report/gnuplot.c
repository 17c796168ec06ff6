/* Draws by gnuplot; see figures.h. The script reaches it in a file of our own and the picture comes
 * back through a pipe, so that gnuplot writes no file itself. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libprof/base/format.h"
#include "report/figures.h"
#include "libprof/base/utf8.h"
#include "report/writers.h"

extern char **environ;

/* ---- what scripts share ---------------------------------------------------------------------- */

/* In single quotes gnuplot reads nothing but their end; quotes written twice, as its manual has it,
 * it does not always take. So they become the typographic ones. */
void prof_gnuplot_quoted(FILE *out, const char *text, size_t cells)
{
    PROF_FREED char *fitted = prof_report_fit(text, cells);
    fputc('\'', out);
    for (const char *c = fitted ? fitted : ""; *c; c++) {
        if (*c == '\'')
            fputs("\xe2\x80\x99", out);
        else
            fputc((unsigned char)*c < ' ' || *c == 0x7f ? ' ' : *c, out);
    }
    fputc('\'', out);
}

static void put_gnuplot_text(FILE *out, const char *text)
{
    fputs(text, out);
}

static void put_gnuplot_real(FILE *out, double value)
{
    char text[64];
    prof_print_real(text, value);
    fputs(text, out);
}

void prof_gnuplot_print(FILE *out, const char *format, ...)
{
    static const struct prof_quoting quoting = {put_gnuplot_text, put_gnuplot_real};
    va_list arguments;
    va_start(arguments, format);
    prof_print_quoted(out, &quoting, format, arguments);
    va_end(arguments);
}

void prof_gnuplot_text(FILE *out, double x, double y, const char *style, const char *text,
                       size_t cells)
{
    fputs("set label ", out);
    prof_gnuplot_quoted(out, text, cells);
    prof_gnuplot_print(out, " at screen %f, screen %f noenhanced %s\n", x, y, style);
}

void prof_gnuplot_heading(FILE *out, const char *title, const char *below)
{
    prof_gnuplot_text(out, PROF_GNUPLOT_LEFT, 0.96, "font ',15'", title, 60);
    if (!*below)
        return;
    prof_gnuplot_text(out, PROF_GNUPLOT_LEFT, 0.92, "font ',10' tc rgb '" PROF_GNUPLOT_FAINT "'",
                      below, 110);
}

/* ---- drawing --------------------------------------------------------------------------------- */

/* gnuplot with the script as its input; *picture is the reading end of its output. 0, or errno. */
static int start_gnuplot(int script, pid_t *child, int *picture)
{
    static char *const arguments[] = {"gnuplot", "-d", "-", NULL}; /* no settings of the user */
    posix_spawn_file_actions_t actions;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return errno;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, script, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    int code = posix_spawnp(child, "gnuplot", &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (code)
        close(ends[0]);
    *picture = ends[0];
    return code;
}

static bool copy_picture(int from, FILE *to, size_t *bytes)
{
    char block[1 << 16];
    for (;;) {
        ssize_t got = read(from, block, sizeof block);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got == 0;
        *bytes += (size_t)got;
        if (fwrite(block, 1, (size_t)got, to) != (size_t)got)
            return false;
    }
}

static enum prof_status draw_with_gnuplot(int script, const char *otherwise, FILE *out,
                                          struct prof_error *err)
{
    pid_t child;
    int picture = -1, ending = 0;
    size_t bytes = 0;
    int code = start_gnuplot(script, &child, &picture);
    if (code) {
        errno = code;
        return code == ENOENT
                   ? prof_fail(err, PROF_UNSUPPORTED,
                               "gnuplot is not installed (Debian: gnuplot-nox): install it%s",
                               otherwise)
                   : prof_fail_errno(err, PROF_SYSTEM, "cannot start gnuplot");
    }
    bool copied = copy_picture(picture, out, &bytes);
    int why = errno;
    close(picture); /* before waiting: it may be writing still */
    while (waitpid(child, &ending, 0) < 0 && errno == EINTR)
        ;
    if (!copied) {
        errno = why;
        return prof_fail_errno(err, PROF_IO, "cannot write the figure");
    }
    if (!bytes || !WIFEXITED(ending) || WEXITSTATUS(ending))
        return prof_fail(err, PROF_SYSTEM, "gnuplot drew nothing%s", otherwise);
    return prof_report_flush(out, err);
}

/* A character that no font has is drawn in a PNG as its number, as large as the picture. So only
 * those stand in one that every font has (European letters, signs); the others are boxes. In an SVG
 * the reader's fonts decide. */
static void put_drawable(FILE *out, const char *text, size_t left)
{
    for (size_t bytes; left; text += bytes, left -= bytes) {
        uint32_t code = 0;
        bytes = prof_report_utf8(text, left, &code);
        bool drawn = code < 0x590 || (code >= 0x2000 && code < 0x2c00);
        if (bytes && drawn)
            fwrite(text, 1, bytes, out);
        else
            fputs(bytes ? "\xe2\x96\xa1" : "?", out);
        bytes = bytes ? bytes : 1;
    }
}

/* An unlinked file with the script, at its begin; -1 and *err. */
static int script_file(const char *script, const char *terminal, struct prof_error *err)
{
    FILE *file = tmpfile();
    if (!file) {
        prof_fail_errno(err, PROF_IO, "cannot make a temporary file for the figure");
        return -1;
    }
    fprintf(file, "set terminal %s size %d,%d noenhanced font 'Sans,11' background '#ffffff'\n",
            terminal, PROF_GNUPLOT_WIDTH, PROF_GNUPLOT_HEIGHT);
    if (!strcmp(terminal, "svg"))
        fputs(script, file);
    else
        put_drawable(file, script, strlen(script));
    int fd = prof_report_flush(file, err) ? -1 : fcntl(fileno(file), F_DUPFD_CLOEXEC, 3);
    if (fd < 0 && !err->status)
        prof_fail_errno(err, PROF_SYSTEM, "cannot draw the figure");
    if (fd >= 0)
        lseek(fd, 0, SEEK_SET);
    fclose(file);
    return fd;
}

enum prof_status prof_gnuplot_draw(const char *script, const char *terminal, const char *otherwise,
                                   FILE *out, struct prof_error *err)
{
    struct prof_error why = {0};
    int fd = script_file(script, terminal, &why);
    if (fd < 0) {
        if (err)
            *err = why;
        return why.status;
    }
    enum prof_status status = draw_with_gnuplot(fd, otherwise, out, err);
    close(fd);
    return status;
}
