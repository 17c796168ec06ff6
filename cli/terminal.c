/* Colour only on a terminal and never with NO_COLOR (https://no-color.org); width for wrapping.
 * Kept apart so that the rule is written once. */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/terminal.h"

size_t terminal_width(FILE *stream)
{
    struct winsize size;
    if (ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col >= 40)
        return size.ws_col < 100 ? size.ws_col : 100;
    return 80;
}

size_t terminal_columns_set(void)
{
    const char *text = getenv("COLUMNS");
    char *end;
    if (!text || *text < '0' || *text > '9')
        return 0;
    unsigned long columns = strtoul(text, &end, 10);
    return *end == '\0' && columns >= 40 && columns <= 10000 ? columns : 0;
}

bool terminal_colour(FILE *stream)
{
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    if ((no_color && *no_color) || (term && strcmp(term, "dumb") == 0))
        return false;
    return isatty(fileno(stream));
}
