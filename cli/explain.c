/* perfkit explain: what a rule of the findings means. Text for people, JSON for programs, and
 * markdown, from which docs/reference/rules.md is made (scripts/rules_doc.sh). */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "libprof/base/json.h"
#include "libprof/include/prof.h"

struct explain_options {
    unsigned format;
    bool json;
};

enum { TEXT, MARKDOWN, JSON };
static const char *const format_words[] = {"text", "markdown", "json", NULL};

static const struct cli_option explain_options[] = {
    CLI_OPTION(explain_options, format, "format", 0, CHOICE, "NAME", "text, markdown or json",
               .fallback = "text", .words = format_words),
    CLI_JSON_ROW(explain_options, json, "the same as --format json"),
    {0},
};

static const struct cli_text_row explain_examples[] = {
    {"perfkit explain", "List the rules."},
    {"perfkit explain launch-bound", "What it looks at, why that is slow, what to change, and how "
                                     "the bound of the gain is computed."},
    {0},
};

/* The parts of a page in their order: heading, JSON key, text. */
struct part {
    const char *heading, *key, *text;
};
#define PARTS 10

static void page_parts(const struct prof_rule_page *page, struct part parts[PARTS])
{
    const struct part all[PARTS] = {
        {"Fires", "fires", page->fires},    {"Why", "why", page->why},
        {"Fix", "fix", page->fix},          {"CUDA", "cuda", page->cuda},
        {"OpenCL", "opencl", page->opencl}, {"PyTorch", "pytorch", page->pytorch},
        {"JAX", "jax", page->jax},          {"Bound", "bound", page->bound},
        {"Limits", "limits", page->limits}, {"Needs", "needs", page->needs},
    };
    memcpy(parts, all, sizeof all);
}

/* ---- text ------------------------------------------------------------------------------------ */

#define INDENT 10

static void print_page_text(const struct prof_rule_page *page)
{
    struct part parts[PARTS];
    size_t width = terminal_width(stdout);
    page_parts(page, parts);
    printf("%s: %s\n\n", page->id, page->title);
    for (size_t i = 0; i < PARTS; i++) {
        if (!parts[i].text)
            continue;
        printf("%-*s", INDENT, parts[i].heading);
        cli_print_wrapped(stdout, parts[i].text, INDENT, INDENT, width);
    }
}

/* ---- markdown -------------------------------------------------------------------------------- */

/* Our own texts: of what markdown would read, only these occur in them. */
static void put_markdown(const char *text)
{
    bool code = false;
    for (; *text; text++) {
        if (*text == '`')
            code = !code;
        else if (!code && strchr("*_<>", *text))
            putchar('\\');
        putchar(*text);
    }
}

static void print_markdown(const struct prof_rule_page *page, const char *before)
{
    struct part parts[PARTS];
    page_parts(page, parts);
    printf("%s## %s\n\n%s.\n\n", before, page->id, page->title);
    for (size_t i = 0; i < PARTS; i++) {
        if (!parts[i].text)
            continue;
        printf("- **%s**: ", parts[i].heading);
        put_markdown(parts[i].text);
        putchar('\n');
    }
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_json(struct prof_json *json, const struct prof_rule_page *page)
{
    struct part parts[PARTS];
    page_parts(page, parts);
    prof_json_object(json, NULL);
    prof_json_string(json, "rule", page->id);
    prof_json_string(json, "title", page->title);
    for (size_t i = 0; i < PARTS; i++)
        prof_json_string(json, parts[i].key, parts[i].text);
    prof_json_end(json);
}

/* ---- command --------------------------------------------------------------------------------- */

/* A page, or all of them, which as text are a list. */
static int print_rules(const struct prof_rule_page *only, unsigned format)
{
    const struct prof_rule_page *page;
    struct prof_json json;
    if (format == JSON)
        prof_json_to_file(&json, stdout, 2);
    if (format == JSON && !only)
        prof_json_array(&json, NULL);
    for (size_t i = 0; (page = !only ? prof_rule_page(i) : i ? NULL : only); i++) {
        if (format == JSON)
            put_json(&json, page);
        else if (format == TEXT && only)
            print_page_text(page);
        else if (format == TEXT)
            printf("%-20s %s\n", page->id, page->title);
        else
            print_markdown(page, i ? "\n" : "");
    }
    if (format == JSON && !only)
        prof_json_end(&json);
    return format == JSON ? cli_finish_json("explain", &json) : CLI_OK;
}

/* The nearest one; else the first that holds the word: leak, memory-leak. */
static const char *near_rule(const char *word)
{
    struct cli_nearest near = {.word = word};
    const struct prof_rule_page *page;
    const char *holds = NULL;
    for (size_t i = 0; (page = prof_rule_page(i)); i++) {
        cli_consider(&near, page->id);
        if (!holds && *word && strstr(page->id, word))
            holds = page->id;
    }
    return near.best ? near.best : holds;
}

static int explain_run(const struct cli_command *command, void *given,
                       const struct cli_operands *operands, struct prof_error *err)
{
    const struct explain_options *options = given;
    (void)err;
    unsigned format = options->json ? JSON : options->format;
    if (!operands->count)
        return print_rules(NULL, format);
    const struct prof_rule_page *page = prof_rule_find(operands->values[0]);
    if (page)
        return print_rules(page, format);
    const char *near = near_rule(operands->values[0]);
    if (near)
        return cli_fail(CLI_USAGE, command->name, "there is no rule '%s': did you mean '%s'?",
                        operands->values[0], near);
    return cli_fail(CLI_USAGE, command->name, "there is no rule '%s': perfkit explain lists them",
                    operands->values[0]);
}

const struct cli_command explain_command = {
    .name = "explain",
    .summary = "say what a finding means and how its saving is computed",
    .operands = "[RULE]",
    .text = "Prints the page of a rule: when it fires, why that is slow, what to change and with "
            "which calls, how the upper bound of the gain is computed, and what the rule cannot "
            "see. The line `bound` of a report is that sum with the capture's figures. Without a "
            "rule: the list of rules.",
    .options = explain_options,
    CLI_OPTIONS_ARE(explain_options, 0),
    .examples = explain_examples,
    .most = 1,
    .run = explain_run,
};
