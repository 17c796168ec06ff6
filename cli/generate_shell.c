/* Shell completion from the command tables: bash, zsh, fish. Each shell's file is a fixed frame
 * with one row for each command and option. */
#include <stdio.h>
#include <string.h>

#include "cli/generate.h"
#include "libprof/include/prof_findings.h"

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

void generate_bash(FILE *out)
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

void generate_zsh(FILE *out)
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

void generate_fish(FILE *out)
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
