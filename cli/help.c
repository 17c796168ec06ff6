/* --help and the overview, made from the tables and wrapped to the terminal's width, so that help
 * cannot say other than what the parser does. */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/terminal.h"

#define LEFT_WIDTH 26

/* "-o, --output FILE" into buffer. */
static void option_label(const struct cli_option *option, char *buffer, size_t size)
{
    char letter[8] = "    ";
    if (option->letter)
        snprintf(letter, sizeof letter, "-%c, ", option->letter);
    const char *format = option->implied    ? "%s--%s[=%s]"
                         : option->argument ? "%s--%s %s"
                                            : "%s--%s%s";
    snprintf(buffer, size, format, letter, option->name, option->argument ? option->argument : "");
}

void cli_print_wrapped(FILE *out, const char *text, size_t column, size_t indent, size_t width)
{
    bool first = true;
    while (*text) {
        size_t length = strcspn(text, " ");
        if (!first && column + 1 + length > width) {
            fprintf(out, "\n%*s", (int)indent, "");
            column = indent;
        } else if (!first) {
            fputc(' ', out);
            column++;
        }
        fwrite(text, 1, length, out);
        column += length;
        first = false;
        text += length;
        text += strspn(text, " ");
    }
    fputc('\n', out);
}

static void print_row(FILE *out, const char *left, const char *text, size_t width)
{
    size_t used = 2 + strlen(left);
    fprintf(out, "  %s", left);
    if (used + 2 > LEFT_WIDTH) {
        fputc('\n', out);
        used = 0;
    }
    fprintf(out, "%*s", (int)(LEFT_WIDTH - used), "");
    cli_print_wrapped(out, text, LEFT_WIDTH, LEFT_WIDTH, width);
}

static void print_option(FILE *out, const struct cli_option *option, size_t width)
{
    char label[96], text[512];
    option_label(option, label, sizeof label);
    if (option->fallback)
        snprintf(text, sizeof text, "%s (default: %s)", option->text, option->fallback);
    else
        snprintf(text, sizeof text, "%s", option->text);
    print_row(out, label, text, width);
}

static void print_paragraphs(FILE *out, const char *text, size_t width)
{
    while (*text) {
        const char *end = strstr(text, "\n\n");
        size_t length = end ? (size_t)(end - text) : strlen(text);
        char paragraph[2048];
        snprintf(paragraph, sizeof paragraph, "%.*s", (int)length, text);
        cli_print_wrapped(out, paragraph, 0, 0, width);
        fputc('\n', out);
        text += length;
        text += strspn(text, "\n");
    }
}

/* The command on a line of its own, to be copied whole. */
static void print_example(FILE *out, const struct cli_text_row *example, size_t width)
{
    fprintf(out, "  %s\n      ", example->left);
    cli_print_wrapped(out, example->text, 6, 6, width);
}

void cli_print_help(const struct cli_command *command)
{
    FILE *out = stdout;
    size_t width = terminal_width(out);
    int begun = fprintf(out, "Usage: perfkit %s [OPTION...]%s", command->name,
                        *command->operands ? " " : "");
    cli_print_wrapped(out, command->operands, (size_t)begun, strlen("Usage: "), width);
    fputc('\n', out);
    print_paragraphs(out, command->text, width);

    const char *group = "Options";
    bool opened = false;
    for (const struct cli_option *o = command->options; o->name; o++) {
        if (o->group || !opened) {
            group = o->group ? o->group : group;
            fprintf(out, "%s%s:\n", opened ? "\n" : "", group);
            opened = true;
        }
        print_option(out, o, width);
    }
    if (!opened)
        fputs("Options:\n", out);
    print_option(out, &cli_help_option, width);

    if (command->statuses) {
        fputs("\nExit status:\n", out);
        for (const struct cli_text_row *s = command->statuses; s->left; s++)
            print_row(out, s->left, s->text, width);
    }
    if (command->examples) {
        fputs("\nExamples:\n", out);
        for (const struct cli_text_row *e = command->examples; e->left; e++)
            print_example(out, e, width);
    }
}

void cli_print_overview(bool to_stderr)
{
    static const char about[] = "perfkit records what a program does on a GPU, keeps it in one "
                                "SQLite file and says what to fix.";
    FILE *out = to_stderr ? stderr : stdout;
    size_t width = terminal_width(out);
    fputs("Usage: perfkit COMMAND [OPTION...] [ARGUMENT...]\n\n", out);
    print_paragraphs(out, about, width);
    fputs("Commands:\n", out);
    for (const struct cli_command *const *c = cli_commands(); *c; c++)
        print_row(out, (*c)->name, (*c)->summary, width);
    fputs("\nStart with:\n"
          "  perfkit run -- ./program      record it, into program.sqlite\n"
          "  perfkit report                read the newest capture of this folder\n"
          "\n`perfkit help COMMAND` shows the options of one command.\n",
          out);
}
