/* Man pages from the command tables. Plain man(7) macros, so that every man program reads them. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "cli/build.h"
#include "cli/generate.h"

/* Text with what roff would take for itself escaped. `start` = at the beginning of a line. */
static void put_roff(FILE *out, const char *text, bool start)
{
    for (; *text; text++) {
        if (start && (*text == '.' || *text == '\''))
            fputs("\\&", out);
        start = *text == '\n';
        if (*text == '\\')
            fputs("\\e", out);
        else if (*text == '-')
            fputs("\\-", out);
        else if (*text == '`' && strchr(text + 1, '`')) { /* `code` becomes bold */
            const char *end = strchr(text + 1, '`');
            fputs("\\fB", out);
            for (text++; text < end; text++) {
                if (*text == '-' || *text == '\\')
                    fputc('\\', out);
                fputc(*text == '\\' ? 'e' : *text, out);
            }
            fputs("\\fR", out);
        } else
            fputc(*text, out);
    }
}

static void put_line(FILE *out, const char *text)
{
    put_roff(out, text, true);
    fputc('\n', out);
}

static void put_paragraphs(FILE *out, const char *text)
{
    while (*text) {
        const char *end = strstr(text, "\n\n");
        size_t length = end ? (size_t)(end - text) : strlen(text);
        char paragraph[2048];
        snprintf(paragraph, sizeof paragraph, "%.*s", (int)length, text);
        put_line(out, paragraph);
        text += length;
        text += strspn(text, "\n");
        if (*text)
            fputs(".PP\n", out);
    }
}

static void put_option(FILE *out, const struct cli_option *option)
{
    fputs(".TP\n", out);
    if (option->letter)
        fprintf(out, "\\fB\\-%c\\fR, ", option->letter);
    fputs("\\fB\\-\\-", out);
    put_roff(out, option->name, false);
    fputs("\\fR", out);
    if (option->argument) {
        fputs(option->implied ? "[=\\fI" : " \\fI", out);
        put_roff(out, option->argument, false);
        fputs(option->implied ? "\\fR]" : "\\fR", out);
    }
    fputc('\n', out);
    char text[1024];
    snprintf(text, sizeof text, "%c%s%s%s%s.", toupper((unsigned char)option->text[0]),
             option->text + 1, option->fallback ? " (default: " : "",
             option->fallback ? option->fallback : "", option->fallback ? ")" : "");
    put_line(out, text);
}

static void put_rows(FILE *out, const char *heading, const struct cli_text_row *rows)
{
    if (!rows)
        return;
    fprintf(out, ".SH %s\n", heading);
    for (; rows->left; rows++) {
        fputs(".TP\n\\fB", out);
        put_roff(out, rows->left, false);
        fputs("\\fR\n", out);
        put_line(out, rows->text);
    }
}

static void put_options(FILE *out, const struct cli_command *command)
{
    fputs(".SH OPTIONS\n", out);
    for (const struct cli_option *o = command->options; o->name; o++) {
        if (o->group) {
            fputs(".SS ", out);
            put_line(out, o->group);
        }
        put_option(out, o);
    }
    put_option(out, &cli_help_option);
}

static void put_examples(FILE *out, const struct cli_text_row *rows)
{
    if (!rows)
        return;
    fputs(".SH EXAMPLES\n", out);
    for (; rows->left; rows++) {
        fputs(".PP\n", out);
        put_line(out, rows->text);
        fputs(".PP\n.RS 4\n.nf\n", out);
        put_line(out, rows->left);
        fputs(".fi\n.RE\n", out);
    }
}

static void man_command(FILE *out, const struct cli_command *command)
{
    static const struct cli_text_row usual[] = {
        {"0", "Success."},
        {"1", "It did not work; standard error says why."},
        {"2", "The command line is wrong, or a file could not be read."},
        {0},
    };
    fprintf(out, ".SH NAME\nperfkit\\-%s \\- ", command->name);
    put_line(out, command->summary);
    fprintf(out, ".SH SYNOPSIS\n\\fBperfkit %s\\fR [\\fIOPTION\\fR...] ", command->name);
    put_line(out, command->operands);
    fputs(".SH DESCRIPTION\n", out);
    put_paragraphs(out, command->text);
    put_options(out, command);
    put_rows(out, "EXIT STATUS", command->statuses ? command->statuses : usual);
    put_rows(out, "ENVIRONMENT", command->variables);
    put_examples(out, command->examples);
    fputs(".SH SEE ALSO\n\\fBperfkit\\fR(1)\n", out);
}

static void man_overview(FILE *out)
{
    fputs(".SH NAME\nperfkit \\- record and explain what a program does on a GPU\n"
          ".SH SYNOPSIS\n\\fBperfkit\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR...] "
          "[\\fIARGUMENT\\fR...]\n.SH DESCRIPTION\n",
          out);
    put_line(out, "perfkit records what a program does on a GPU (kernels, copies, allocations, API "
                  "calls, NVTX ranges), keeps it in one SQLite file and says what to fix. It reads "
                  "CUDA through CUPTI, OpenCL through a layer, and NVTX through its injection "
                  "interface; the program needs no change.");
    fputs(".SH COMMANDS\n", out);
    for (const struct cli_command *const *c = cli_commands(); *c; c++) {
        fprintf(out, ".TP\n\\fBperfkit\\-%s\\fR(1)\n", (*c)->name);
        put_line(out, (*c)->summary);
    }
    fputs(".SH ENVIRONMENT\n.TP\n\\fBNO_COLOR\\fR\nWhen set, nothing is printed in colour.\n"
          ".TP\n\\fBPERFKIT_COLLECTOR\\fR\nPath of the collector library to use instead of the "
          "installed one.\n.SH EXAMPLES\n.nf\nperfkit run \\-\\- ./program\nperfkit report\n.fi\n",
          out);
}

void generate_man(FILE *out, const struct cli_command *command)
{
    char title[64];
    snprintf(title, sizeof title, "PERFKIT%s%s", command ? "-" : "", command ? command->name : "");
    for (char *p = title; *p; p++)
        *p = (char)toupper((unsigned char)*p);
    fprintf(out,
            ".\\\" Made from the command tables; do not edit.\n"
            ".TH %s 1 \"\" \"perfkit %s\" \"perfkit\"\n",
            title, PERFKIT_VERSION);
    if (command)
        man_command(out, command);
    else
        man_overview(out);
}
