/* `perfkit --generate FOLDER`: writes the man pages and the shell completions, run by the build. It
 * is part of the command itself because the tables are, and so the pages cannot fall behind. */
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

/* ---- shell completions ----------------------------------------------------------------------- */

/* Each shell's file is a fixed frame with one row for each command and option. */

#define FOR_COMMANDS(c) for (const struct cli_command *const *c = cli_commands(); *c; c++)
#define FOR_OPTIONS(o, command) for (const struct cli_option *o = (command)->options; o->name; o++)

static void put_words(FILE *out, const char *const *words, const char *between)
{
    for (size_t i = 0; words[i]; i++)
        fprintf(out, "%s%s", i ? between : "", words[i]);
}

static bool is_explain(const struct cli_command *command)
{
    return strcmp(command->name, "explain") == 0;
}

static void put_rules(FILE *out)
{
    const struct prof_rule_page *page;
    for (size_t i = 0; (page = prof_rule_page(i)); i++)
        fprintf(out, "%s%s", i ? " " : "", page->id);
}

/* Text inside single quotes, for zsh also with its own special characters escaped. */
static void put_shell_quoted(FILE *out, const char *text, const char *special)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", out);
        else if (strchr(special, *text))
            fprintf(out, "\\%c", *text);
        else
            fputc(*text, out);
    }
}

#define FIRST_WORDS " | cut -d\" \" -f1"

static const char *bash_values(const struct cli_option *option)
{
    if (option->type == CLI_FILE)
        return "COMPREPLY=($(compgen -f -- \"$cur\"))";
    return option->type == CLI_FOLDER ? "COMPREPLY=($(compgen -d -- \"$cur\"))" : "COMPREPLY=()";
}

static void bash_option_values(FILE *out, const struct cli_command *command)
{
    FOR_OPTIONS(o, command)
    {
        if (o->type == CLI_FLAG || o->implied)
            continue;
        fprintf(out, "    %s:--%s", command->name, o->name);
        if (o->letter)
            fprintf(out, "|%s:-%c", command->name, o->letter);
        fputs(") ", out);
        if (o->words) {
            fputs("COMPREPLY=($(compgen -W '", out);
            put_words(out, o->words, " ");
            fputs("' -- \"$cur\")); return ;;\n", out);
        } else if (o->offers) {
            fprintf(out,
                    "COMPREPLY=($(compgen -W \"$(%s" FIRST_WORDS ")\" -- \"$cur\")); return ;;\n",
                    o->offers);
        } else {
            fprintf(out, "%s; return ;;\n", bash_values(o));
        }
    }
}

/* From its first operand on, the line is another command's. */
static void bash_verbatim(FILE *out, const struct cli_command *command)
{
    fprintf(out, "  if [ \"$command\" = %s ]; then\n", command->name);
    fputs("    for ((i = 2; i < COMP_CWORD; i++)); do\n"
          "      case ${COMP_WORDS[i]} in\n"
          "        --) i=$((i + 1)); break ;;\n"
          "        ",
          out);
    const char *between = "";
    FOR_OPTIONS(o, command)
    {
        if (o->type == CLI_FLAG || o->implied)
            continue;
        fprintf(out, "%s--%s", between, o->name);
        between = "|";
        if (o->letter)
            fprintf(out, "|-%c", o->letter);
    }
    fputs(") i=$((i + 1)); if [ \"${COMP_WORDS[i]}\" = '=' ]; then i=$((i + 1)); fi ;;\n"
          "        -*) if [ \"${COMP_WORDS[i+1]}\" = '=' ]; then i=$((i + 2)); fi ;;\n"
          "        *) break ;;\n"
          "      esac\n"
          "    done\n"
          "    if [ \"$i\" -lt \"$COMP_CWORD\" ] || [ \"${COMP_WORDS[i-1]}\" = -- ]; then\n"
          "      if declare -F _command_offset >/dev/null; then _command_offset \"$i\"\n"
          "      elif [ \"$i\" -lt \"$COMP_CWORD\" ]; then COMPREPLY=($(compgen -f -- \"$cur\"))\n"
          "      else COMPREPLY=($(compgen -c -f -- \"$cur\")); fi\n"
          "      return\n"
          "    fi\n"
          "  fi\n",
          out);
}

static void generate_bash(FILE *out)
{
    fputs("# bash completion for perfkit; made from the command tables\n"
          "_perfkit() {\n"
          "  local cur prev command i\n"
          "  cur=${COMP_WORDS[COMP_CWORD]}\n"
          "  prev=${COMP_WORDS[COMP_CWORD-1]}\n"
          "  if [ \"$prev\" = '=' ]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
          "  if [ \"$cur\" = '=' ]; then cur=; fi\n"
          "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
          "    COMPREPLY=($(compgen -W '",
          out);
    FOR_COMMANDS(c)
    fprintf(out, "%s ", (*c)->name);
    fputs("' -- \"$cur\"))\n    return\n  fi\n  command=${COMP_WORDS[1]}\n", out);
    FOR_COMMANDS(c)
    {
        if (!(*c)->verbatim)
            continue;
        bash_verbatim(out, *c);
    }
    fputs("  case $command:$prev in\n", out);
    FOR_COMMANDS(c)
    bash_option_values(out, *c);
    fputs("  esac\n  case $command in\n", out);
    FOR_COMMANDS(c)
    {
        fprintf(out, "    %s) if [[ $cur == -* ]]; then COMPREPLY=($(compgen -W '", (*c)->name);
        FOR_OPTIONS(o, *c)
        fprintf(out, "--%s ", o->name);
        fputs("--help' -- \"$cur\"))", out);
        if (strcmp((*c)->name, "help") == 0) {
            fputs("; else COMPREPLY=($(compgen -W '", out);
            FOR_COMMANDS(other)
            fprintf(out, "%s ", (*other)->name);
            fputs("' -- \"$cur\"))", out);
        } else if (is_explain(*c)) {
            fputs("; else COMPREPLY=($(compgen -W '", out);
            put_rules(out);
            fputs("' -- \"$cur\"))", out);
        } else if ((*c)->operand != CLI_FLAG) {
            if ((*c)->verbs) {
                fputs("; elif [ \"$COMP_CWORD\" -eq 2 ]; then COMPREPLY=($(compgen -W '", out);
                put_words(out, (*c)->verbs, " ");
                fputs("' -- \"$cur\"))", out);
            }
            fprintf(out, "; else COMPREPLY=($(compgen -%s -- \"$cur\"))",
                    (*c)->operand == CLI_FOLDER ? "d"
                    : (*c)->operand == CLI_TEXT ? "c -f"
                                                : "f");
        }
        fputs("; fi ;;\n", out);
    }
    fputs("  esac\n}\ncomplete -o filenames -o bashdefault -F _perfkit perfkit\n", out);
}

static void zsh_option(FILE *out, const struct cli_option *option)
{
    fputs("        ", out);
    if (option->letter)
        fprintf(out, "'(-%c --%s)'{-%c,--%s}'[", option->letter, option->name, option->letter,
                option->name);
    else
        fprintf(out, "'--%s%s[", option->name,
                option->implied    ? "=-"
                : option->argument ? "="
                                   : "");
    put_shell_quoted(out, option->text, "[]:\\");
    fputc(']', out);
    if (option->argument) {
        fputs(option->implied ? "::" : ":", out);
        put_shell_quoted(out, option->argument, "[]:\\");
        fputc(':', out);
        if (option->words && option->type == CLI_WORDS)
            fputs("_values -s , word ", out), put_words(out, option->words, " ");
        else if (option->words)
            fputc('(', out), put_words(out, option->words, " "), fputc(')', out);
        else if (option->offers)
            fprintf(out, "{compadd -- $(%s" FIRST_WORDS ")}", option->offers);
        else if (option->type == CLI_FILE)
            fputs("_files", out);
        else if (option->type == CLI_FOLDER)
            fputs("_files -/", out);
    }
    fputs("' \\\n", out);
}

static void generate_zsh(FILE *out)
{
    fputs("#compdef perfkit\n# made from the command tables\n"
          "_perfkit() {\n  local -a commands\n  commands=(\n",
          out);
    FOR_COMMANDS(c)
    {
        fprintf(out, "    '%s:", (*c)->name);
        put_shell_quoted(out, (*c)->summary, ":\\");
        fputs("'\n", out);
    }
    fputs("  )\n"
          "  if (( CURRENT == 2 )); then\n"
          "    _describe command commands\n    return\n  fi\n"
          "  local command=$words[2]\n"
          "  shift words\n  (( CURRENT-- ))\n"
          "  case $command in\n",
          out);
    FOR_COMMANDS(c)
    {
        fprintf(out, "    %s)\n      _arguments -s %s\\\n", (*c)->name,
                (*c)->verbatim ? "-A '-*' " : "");
        FOR_OPTIONS(o, *c)
        zsh_option(out, o);
        zsh_option(out, &cli_help_option);
        fputs("        ", out);
        if (strcmp((*c)->name, "help") == 0)
            fputs("'1:command:{_describe command commands}' ", out);
        else if (is_explain(*c)) {
            fputs("'1:rule:(", out);
            put_rules(out);
            fputs(")' ", out);
        } else if ((*c)->verbs) {
            fputs("'1:what to do:(", out);
            put_words(out, (*c)->verbs, " ");
            fputs(")' '*:file:_files' ", out);
        } else if ((*c)->operand == CLI_TEXT)
            fputs("'(-)1:command:_command_names -e' '*::arguments:_normal' ", out);
        else if ((*c)->operand == CLI_FOLDER)
            fputs("'*:folder:_files -/' ", out);
        else if ((*c)->operand == CLI_FILE)
            fputs("'*:file:_files' ", out);
        fputs("&& return\n      ;;\n", out);
    }
    fputs("  esac\n}\n_perfkit \"$@\"\n", out);
}

static void fish_option(FILE *out, const char *command, const struct cli_option *option)
{
    fprintf(out, "complete -c perfkit -n '__fish_seen_subcommand_from %s' -l %s", command,
            option->name);
    if (option->letter)
        fprintf(out, " -s %c", option->letter);
    if (option->words) {
        fputs(" -x -a '", out);
        put_words(out, option->words, " ");
        fputc('\'', out);
    } else if (option->offers) {
        fprintf(out, " -x -a '(%s" FIRST_WORDS ")'", option->offers);
    } else if (option->argument && !option->implied) {
        fputs(option->type == CLI_FILE     ? " -r -F"
              : option->type == CLI_FOLDER ? " -x -a '(__fish_complete_directories)'"
                                           : " -x",
              out);
    }
    fputs(" -d '", out);
    put_shell_quoted(out, option->text, "");
    fputs("'\n", out);
}

static void generate_fish(FILE *out)
{
    fputs("# fish completion for perfkit; made from the command tables\n", out);
    FOR_COMMANDS(c)
    {
        fprintf(out, "complete -c perfkit -n __fish_use_subcommand -f -a %s -d '", (*c)->name);
        put_shell_quoted(out, (*c)->summary, "");
        fputs("'\n", out);
        FOR_OPTIONS(o, *c)
        fish_option(out, (*c)->name, o);
        if ((*c)->verbs || is_explain(*c)) {
            fprintf(out, "complete -c perfkit -n '__fish_seen_subcommand_from %s' -a '",
                    (*c)->name);
            if ((*c)->verbs)
                put_words(out, (*c)->verbs, " ");
            else
                put_rules(out);
            fputs("'\n", out);
        }
        if ((*c)->operand == CLI_TEXT)
            fprintf(out,
                    "complete -c perfkit -n '__fish_seen_subcommand_from %s' -x -a "
                    "'(__fish_complete_subcommand --fcs-skip=2)'\n",
                    (*c)->name);
    }
}

/* ---- the files ------------------------------------------------------------------------------- */

static FILE *open_in(const char *folder, const char *below, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, below);
    if (mkdir(path, 0777) < 0 && errno != EEXIST)
        goto failed;
    snprintf(path, sizeof path, "%s/%s/%s", folder, below, name);
    FILE *out = fopen(path, "we");
    if (out)
        return out;
failed:
    cli_say("--generate", "cannot write %s: %m", path);
    return NULL;
}

static bool write_man(const char *folder, const struct cli_command *command)
{
    char name[64];
    snprintf(name, sizeof name, "perfkit%s%s.1", command ? "-" : "", command ? command->name : "");
    FILE *out = open_in(folder, "man1", name);
    if (!out)
        return false;
    generate_man(out, command);
    return fclose(out) == 0;
}

int cli_generate(const char *folder)
{
    static const struct {
        const char *below, *name;
        void (*write)(FILE *out);
    } shells[] = {
        {"bash", "perfkit", generate_bash},
        {"zsh", "_perfkit", generate_zsh},
        {"fish", "perfkit.fish", generate_fish},
    };
    if (mkdir(folder, 0777) < 0 && errno != EEXIST)
        return cli_fail(CLI_FAILED, "--generate", "cannot make %s: %m", folder);
    bool ok = write_man(folder, NULL);
    for (const struct cli_command *const *c = cli_commands(); *c && ok; c++)
        ok = write_man(folder, *c);
    for (size_t i = 0; i < sizeof shells / sizeof shells[0] && ok; i++) {
        FILE *out = open_in(folder, shells[i].below, shells[i].name);
        if (!out)
            return CLI_FAILED;
        shells[i].write(out);
        ok = fclose(out) == 0;
    }
    return ok ? CLI_OK : CLI_FAILED;
}
