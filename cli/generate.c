/* What is made from the tables of commands beside help: man pages (`perfkit --generate FOLDER`, run
 * by the build) and completion (`perfkit --complete WORD...`, run by shells). They are part of the
 * command itself because the tables are, and so cannot fall behind. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/command.h"
#include "libprof/include/prof_findings.h"

/* ---- man pages ------------------------------------------------------------------------------- */

/* Plain man(7) macros, so that every man program reads them. */

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
    for (char paragraph[CLI_PARAGRAPH]; cli_next_paragraph(&text, paragraph);) {
        put_line(out, paragraph);
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
    put_line(out, "perfkit records what a program does on a GPU (kernels, memcpys, memsets, "
                  "allocations, API calls, NVTX ranges), keeps it in one SQLite file and says what "
                  "to fix. It reads CUDA through CUPTI, OpenCL through a layer, and NVTX through "
                  "its injection interface; the program needs no change.");
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

/* NULL: perfkit(1). */
static void generate_man(FILE *out, const struct cli_command *command)
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

static bool write_man(const char *folder, const struct cli_command *command)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/perfkit%s%s.1", folder, command ? "-" : "",
             command ? command->name : "");
    FILE *out = fopen(path, "we");
    if (!out)
        return cli_refuse("--generate", "cannot write %s: %m", path);
    generate_man(out, command);
    return fclose(out) == 0;
}

int cli_generate(const char *folder)
{
    if (mkdir(folder, 0777) < 0 && errno != EEXIST)
        return cli_fail(CLI_FAILED, "--generate", "cannot make %s: %m", folder);
    bool ok = write_man(folder, NULL);
    for (const struct cli_command *const *c = cli_commands(); *c && ok; c++)
        ok = write_man(folder, *c);
    return ok ? CLI_OK : CLI_FAILED;
}

/* ---- completion ------------------------------------------------------------------------------ */

/* A shell queries what may come next in a command line, by `perfkit --complete WORD...`: the words
 * behind "perfkit", the last one as far as it was typed. Each line of the answer is a value and,
 * behind a tab, what it means; or ":file", ":folder", or ":command" and the number of the word (0 =
 * perfkit) with which another command's line begins. The shells' own scripts are in
 * packaging/completion. */

struct completion {
    char **words;
    int count;
    const char *begun; /* the last word, without "--NAME=" */
    char inside[64];   /* "--NAME=" of the last word, "" = none */
};

static void offer(const struct completion *c, const char *value, const char *text)
{
    if (strncmp(value, c->begun, strlen(c->begun)) == 0)
        printf("%s%s\t%s\n", c->inside, value, text);
}

static void offer_words(const struct completion *c, const char *const *words)
{
    for (; *words; words++)
        offer(c, *words, "");
}

static void offer_commands(const struct completion *c)
{
    for (const struct cli_command *const *command = cli_commands(); *command; command++)
        offer(c, (*command)->name, (*command)->summary);
}

/* The first word of each line that the shell command prints. */
static void offer_printed(const struct completion *c, const char *shell_command)
{
    char line[512];
    FILE *in = popen(shell_command, "re");
    while (in && fgets(line, sizeof line, in)) {
        line[strcspn(line, " \n")] = '\0';
        offer(c, line, "");
    }
    if (in)
        pclose(in);
}

static void offer_values(const struct completion *c, const struct cli_option *option)
{
    if (option->words)
        offer_words(c, option->words);
    else if (option->offers)
        offer_printed(c, option->offers);
    else if (option->type == CLI_FILE || option->type == CLI_FOLDER)
        puts(option->type == CLI_FILE ? ":file" : ":folder");
}

static void offer_options(const struct completion *c, const struct cli_command *command)
{
    char name[64];
    for (const struct cli_option *o = command->options; o->name; o++) {
        snprintf(name, sizeof name, "--%s", o->name);
        offer(c, name, o->text);
    }
    offer(c, "--help", cli_help_option.text);
}

/* One that the word names whole, and whose value is in the next word. */
static const struct cli_option *awaits_value(const struct cli_command *command, const char *word)
{
    const struct cli_option *o = cli_option_named(command->options, word);
    bool whole = o && (word[1] == '-' ? !strchr(word, '=') : !word[2]);
    return whole && o->type != CLI_FLAG && !o->implied ? o : NULL;
}

/* Where the line of the program begins that the command runs; 0 = not yet. A shell may give the =
 * between an option and its value as a word. */
static int program_begins(const struct completion *c, const struct cli_command *command)
{
    int i = 1;
    for (; i < c->count - 1 && c->words[i][0] == '-'; i++) {
        if (!strcmp(c->words[i], "--")) {
            i++;
            break;
        }
        bool equals = !strcmp(c->words[i + 1], "=");
        if (awaits_value(command, c->words[i]))
            i += 1 + equals;
        else if (equals)
            i += 2;
    }
    return i < c->count - 1 || !strcmp(c->words[i - 1], "--") ? i : 0;
}

/* Neither an option nor its value. */
static void offer_operands(const struct completion *c, const struct cli_command *command)
{
    const struct prof_rule_page *page;
    if (!strcmp(command->name, "help"))
        offer_commands(c);
    for (size_t i = 0; !strcmp(command->name, "explain") && (page = prof_rule_page(i)); i++)
        offer(c, page->id, page->title);
    if (command->verbs && c->count == 2)
        offer_words(c, command->verbs);
    else if (command->operand == CLI_TEXT)
        printf(":command\t%d\n", c->count);
    else if (command->operand != CLI_FLAG)
        puts(command->operand == CLI_FOLDER ? ":folder" : ":file");
}

/* The option whose value is the last word; NULL = it is none. */
static const struct cli_option *option_of_value(struct completion *c,
                                                const struct cli_command *command)
{
    char *last = c->words[c->count - 1], *equals = strchr(last, '=');
    if (!strcmp(last, "="))
        c->begun = "";
    if (last[0] == '-' && last[1] == '-' && equals) {
        c->begun = equals + 1;
        snprintf(c->inside, sizeof c->inside, "%.*s", (int)(equals + 1 - last), last);
        return cli_option_named(command->options, last);
    }
    int before = c->count - 2;
    before -= before > 1 && !strcmp(c->words[before], "=");
    return before > 0 ? awaits_value(command, c->words[before]) : NULL;
}

int cli_complete(char **words, int count)
{
    struct completion c = {.words = words, .count = count};
    if (!count)
        return CLI_OK;
    c.begun = words[count - 1];
    const struct cli_command *command = count > 1 ? cli_find(words[0]) : NULL;
    int program = command && command->verbatim ? program_begins(&c, command) : 0;
    if (count == 1)
        offer_commands(&c);
    if (program)
        printf(":command\t%d\n", program + 1);
    if (!command || program)
        return CLI_OK;
    const struct cli_option *option = option_of_value(&c, command);
    if (option)
        offer_values(&c, option);
    else if (c.begun[0] == '-')
        offer_options(&c, command);
    else
        offer_operands(&c, command);
    return CLI_OK;
}

/* ---- the files ------------------------------------------------------------------------------- */
