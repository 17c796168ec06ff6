/* The one parser of command lines. It knows nothing of any command: types, defaults and words come
 * from the option tables. Values are checked here, so that commands see only good ones, and a
 * message says what is wrong and how to fix it. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/command.h"
#include "libprof/base/format.h"
#include "libprof/base/json.h"

const char *const cli_table_formats[] = {"text", "json", "csv", "markdown", NULL};

const struct cli_option cli_help_option = {
    .name = "help", .letter = 'h', .type = CLI_FLAG, .text = "show this help and exit"};

enum cli_status cli_exit_status(enum prof_status status)
{
    bool blamed = status == PROF_NOTFOUND || status == PROF_ACCESS || status == PROF_FORMAT ||
                  status == PROF_VERSION || status == PROF_CORRUPT || status == PROF_EXISTS ||
                  status == PROF_INVALID;
    return !status ? CLI_OK : blamed ? CLI_USAGE : CLI_FAILED;
}

int cli_finish_json(const char *command, struct prof_json *json)
{
    struct prof_error err = {0};
    if (prof_json_finish(json, &err) == PROF_OK)
        return CLI_OK;
    return cli_fail(CLI_FAILED, command, "%s", err.message);
}

const struct cli_command *cli_find(const char *name)
{
    for (const struct cli_command *const *c = cli_commands(); *c; c++)
        if (strcmp((*c)->name, name) == 0)
            return *c;
    return NULL;
}

/* Levenshtein distance, one row at a time; long words are never near. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t row[64];
    size_t width = strlen(b);
    if (width >= sizeof row / sizeof row[0])
        return SIZE_MAX;
    for (size_t j = 0; j <= width; j++)
        row[j] = j;
    for (size_t i = 0; a[i]; i++) {
        size_t corner = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < width; j++) {
            size_t best = corner + (a[i] != b[j]);
            if (row[j + 1] + 1 < best)
                best = row[j + 1] + 1;
            if (row[j] + 1 < best)
                best = row[j] + 1;
            corner = row[j + 1];
            row[j + 1] = best;
        }
    }
    return row[width];
}

void cli_consider(struct cli_nearest *nearest, const char *candidate)
{
    size_t most = strlen(nearest->word) / 3 + 1, distance = edit_distance(nearest->word, candidate);
    if (distance > most || distance >= strlen(candidate) ||
        (nearest->best && distance >= nearest->distance))
        return;
    nearest->best = candidate;
    nearest->distance = distance;
}

static bool is_option(const struct cli_option *o, const char *word)
{
    size_t length = strcspn(word, "=");
    if (strncmp(word, "--", 2) != 0)
        return word[0] == '-' && word[1] && o->letter == word[1];
    return strlen(o->name) == length - 2 && strncmp(o->name, word + 2, length - 2) == 0;
}

const struct cli_option *cli_option_named(const struct cli_option *options, const char *word)
{
    for (const struct cli_option *o = options; o->name; o++)
        if (is_option(o, word))
            return o;
    return NULL;
}

static const struct cli_option *find_option(const struct cli_command *command, const char *word)
{
    const struct cli_option *own = cli_option_named(command->options, word);
    return own || !is_option(&cli_help_option, word) ? own : &cli_help_option;
}

/* What is too large for 64 bits is read as the largest number. */
static bool read_digits(const char **text, uint64_t *out)
{
    const char *at = *text;
    *out = 0;
    for (; *at >= '0' && *at <= '9'; at++) {
        uint64_t digit = (uint64_t)(*at - '0');
        *out = *out > (UINT64_MAX - digit) / 10 ? UINT64_MAX : *out * 10 + digit;
    }
    bool any = at > *text;
    *text = at;
    return any;
}

static bool parse_size(const char *text, uint64_t *out)
{
    static const char units[] = "kmgt";
    uint64_t number;
    unsigned shift = 0;
    if (!read_digits(&text, &number))
        return false;
    if (*text) {
        const char *unit = strchr(units, *text | 0x20);
        if (!unit)
            return false;
        shift = 10 * (unsigned)(unit - units + 1);
        text++;
        if (*text && strcasecmp(text, "b") != 0 && strcasecmp(text, "ib") != 0)
            return false;
    }
    *out = number > UINT64_MAX >> shift ? UINT64_MAX : number << shift;
    return true;
}

bool cli_parse_time(const char *text, uint64_t *out)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } units[] = {{"", 1000000000}, {"s", 1000000000},          {"ms", 1000000},
                 {"us", 1000},     {"m", 60ull * 1000000000u}, {"h", 3600ull * 1000000000u}};
    uint64_t whole, part = 0, scale = 1;
    if (!read_digits(&text, &whole))
        return false;
    if (*text == '.') {
        for (text++; *text >= '0' && *text <= '9'; text++) {
            if (scale < 1000000000) { /* what is finer than a nanosecond is cut */
                part = part * 10 + (uint64_t)(*text - '0');
                scale *= 10;
            }
        }
        if (text[-1] == '.')
            return false;
    }
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(text, units[i].name) == 0) {
            *out = whole > UINT64_MAX / 2 / units[i].ns
                       ? UINT64_MAX
                       : whole * units[i].ns +
                             (uint64_t)((double)part / (double)scale * (double)units[i].ns + 0.5);
            return true;
        }
    return false;
}

static bool parse_count(const char *text, uint64_t *out)
{
    return read_digits(&text, out) && !*text && *out > 0;
}

static void list_words(const char *const *words, char *buffer, size_t size)
{
    buffer[0] = '\0';
    for (size_t i = 0; words[i]; i++)
        prof_append(buffer, size, "%s%s", i ? ", " : "", words[i]);
}

static bool find_word(const char *const *words, const char *text, size_t length, unsigned *index)
{
    for (unsigned i = 0; words[i]; i++)
        if (strlen(words[i]) == length && strncmp(words[i], text, length) == 0) {
            *index = i;
            return true;
        }
    return false;
}

static bool bad_word(const struct cli_command *command, const struct cli_option *option,
                     const char *text, size_t length)
{
    char all[256], word[64];
    list_words(option->words, all, sizeof all);
    snprintf(word, sizeof word, "%.*s", (int)(length < 60 ? length : 60), text);
    struct cli_nearest near = {.word = word};
    for (size_t i = 0; option->words[i]; i++)
        cli_consider(&near, option->words[i]);
    return cli_refuse(command->name, "--%s does not know '%s': %s%s%suse one of %s", option->name,
                      word, CLI_DID_YOU_MEAN(near), all);
}

#define LONGEST_NS (100000000ull * 1000000000u) /* three years */

/* How numbers are read, what they may be at most, and the message for what is no such number. */
static const struct {
    bool (*parse)(const char *text, uint64_t *out);
    uint64_t most;
    struct prof_text (*show)(int64_t value);
    const char *refusal;
} numbers[] = {
    [CLI_SIZE] = {parse_size, INT64_MAX, prof_bytes_of,
                  "size: give bytes, or a number with k, M, G or T (as in 512M)"},
    [CLI_TIME] = {cli_parse_time, LONGEST_NS, prof_duration_ns,
                  "time: give seconds, or a number with us, ms, s, m or h (as in 1.5s or 500ms)"},
    [CLI_COUNT] = {parse_count, UINT_MAX, prof_count, "count: give a whole number from 1 up"},
};

static bool store_number(const struct cli_command *command, const struct cli_option *option,
                         const char *text, void *place)
{
    uint64_t value, most = option->most ? option->most : numbers[option->type].most;
    bool nothing = option->zero && !strcmp(text, "0");
    if (nothing)
        value = 0;
    else if (!numbers[option->type].parse(text, &value))
        return cli_refuse(command->name, "--%s: '%s' is not a %s", option->name, text,
                          numbers[option->type].refusal);
    if (value > most)
        return cli_refuse(command->name, "--%s: '%s' is too much: give at most %s", option->name,
                          text, numbers[option->type].show((int64_t)most).text);
    if (option->type == CLI_COUNT)
        *(unsigned *)place = (unsigned)value;
    else
        *(uint64_t *)place = value;
    return true;
}

static bool add_option_text(const struct cli_command *command, const struct cli_option *option,
                            const char *text, struct cli_texts *texts)
{
    if (texts->count == CLI_MOST_TEXTS)
        return cli_refuse(command->name, "--%s: more than %d are too many", option->name,
                          CLI_MOST_TEXTS);
    texts->values[texts->count++] = text;
    return true;
}

static bool store(const struct cli_command *command, const struct cli_option *option,
                  const char *text, void *values)
{
    void *place = (char *)values + option->offset;
    unsigned index;
    switch (option->type) {
    case CLI_FLAG:
        *(bool *)place = true;
        return true;
    case CLI_TEXT:
    case CLI_FILE:
    case CLI_FOLDER:
    case CLI_TEXTS:
        if (!*text)
            return cli_refuse(command->name, "--%s %s: the value is empty: give one", option->name,
                              option->argument);
        if (option->type == CLI_TEXTS)
            return add_option_text(command, option, text, place);
        *(const char **)place = text;
        return true;
    case CLI_SIZE:
    case CLI_TIME:
    case CLI_COUNT:
        return store_number(command, option, text, place);
    case CLI_CHOICE:
        if (!find_word(option->words, text, strlen(text), place))
            return bad_word(command, option, text, strlen(text));
        return true;
    case CLI_WORDS:
        for (const char *p = text;;) {
            size_t length = strcspn(p, ",");
            if (!find_word(option->words, p, length, &index))
                return bad_word(command, option, p, length);
            if (!p[length])
                break;
            p += length + 1;
        }
        *(const char **)place = text;
        return true;
    }
    return false;
}

static bool unknown_option(const struct cli_command *command, const char *text)
{
    char name[64];
    struct cli_nearest near = {.word = name};
    snprintf(name, sizeof name, "%.*s", (int)strcspn(text, "="), text);
    near.word += strspn(name, "-");
    for (const struct cli_option *o = command->options; o->name && !strncmp(text, "--", 2); o++)
        cli_consider(&near, o->name);
    if (near.best)
        return cli_refuse(command->name, "unknown option '%s': did you mean '--%s'?", text,
                          near.best);
    return cli_refuse(command->name, "unknown option '%s': see perfkit help %s", text,
                      command->name);
}

struct reader {
    const struct cli_command *command;
    int argc, at; /* the argument being read */
    char **argv;
    void *values;
    struct cli_operands *operands;
    bool help;
};

/* The value of an option that needs one: the rest of this argument, or the next one. */
static bool read_option_value(struct reader *r, const struct cli_option *option, const char *rest,
                              const char **value)
{
    if (rest) {
        *value = rest;
        return true;
    }
    if (r->at + 1 >= r->argc)
        return cli_refuse(r->command->name, "--%s needs a value: give it as --%s %s", option->name,
                          option->name, option->argument);
    *value = r->argv[++r->at];
    return true;
}

static bool read_long(struct reader *r)
{
    const char *argument = r->argv[r->at];
    const char *name = argument + 2;
    size_t length = strcspn(name, "=");
    const char *rest = name[length] ? name + length + 1 : NULL;
    const struct cli_option *option = find_option(r->command, argument);
    if (!option)
        return unknown_option(r->command, argument);
    if (option->type == CLI_FLAG) {
        if (rest)
            return cli_refuse(r->command->name, "--%s takes no value: leave out '=%s'",
                              option->name, rest);
        if (option == &cli_help_option)
            r->help = true;
        else
            store(r->command, option, NULL, r->values);
        return true;
    }
    const char *value = option->implied;
    return ((value && !rest) || read_option_value(r, option, rest, &value)) &&
           store(r->command, option, value, r->values);
}

static bool read_short(struct reader *r)
{
    for (const char *p = r->argv[r->at] + 1; *p; p++) {
        const char text[] = {'-', *p, '\0'};
        const struct cli_option *option = find_option(r->command, text);
        if (!option)
            return unknown_option(r->command, text);
        if (option == &cli_help_option) {
            r->help = true;
        } else if (option->type == CLI_FLAG) {
            store(r->command, option, NULL, r->values);
        } else {
            const char *value;
            return read_option_value(r, option, p[1] ? p + 1 : NULL, &value) &&
                   store(r->command, option, value, r->values);
        }
    }
    return true;
}

/* The words of an option of the command that this one starts; false: it is none. */
static bool read_other(struct reader *r)
{
    char *word = r->argv[r->at];
    struct cli_operands *to = r->operands;
    const struct cli_option *option = to->program && !find_option(r->command, word)
                                          ? cli_option_named(r->command->starts->options, word)
                                          : NULL;
    if (!option)
        return false;
    to->others[to->other_count++] = word;
    bool has_value = word[1] == '-' ? strchr(word, '=') != NULL : word[2] != '\0';
    if (option->type != CLI_FLAG && !option->implied && !has_value && r->at + 1 < r->argc)
        to->others[to->other_count++] = r->argv[++r->at];
    return true;
}

static bool check_operand_count(const struct cli_command *command,
                                const struct cli_operands *operands)
{
    unsigned count = (unsigned)operands->count;
    if (count < command->least)
        return cli_refuse(command->name, "too few arguments: give %s (see perfkit help %s)",
                          command->operands, command->name);
    if (count && !command->most)
        return cli_refuse(command->name,
                          "'%s': this command takes no arguments (see perfkit help %s)",
                          operands->values[0], command->name);
    if (count > command->most)
        return cli_refuse(command->name,
                          "'%s' is one argument too many: at most %u (see perfkit help %s)",
                          operands->values[command->most], command->most, command->name);
    for (unsigned i = 0; command->operand == CLI_FILE && i < count; i++)
        if (!*operands->values[i])
            return cli_refuse(command->name, "an argument is empty: give %s (see perfkit help %s)",
                              command->operands, command->name);
    return true;
}

/* False: what is wrong was said, or help is wanted. */
static bool read_command_line(struct reader *r)
{
    char **argv = r->argv;
    int kept = 1; /* operands gather at argv[1..kept) */
    for (; r->at < r->argc; r->at++) {
        char *argument = argv[r->at];
        if (strcmp(argument, "--") == 0) {
            r->at++;
            break;
        }
        if (argument[0] != '-' || !argument[1]) {
            if (r->command->verbatim)
                break;
            argv[kept++] = argument;
        } else if (!read_other(r) && !(argument[1] == '-' ? read_long(r) : read_short(r))) {
            return false;
        }
        if (r->help)
            return false;
    }
    for (; r->at < r->argc; r->at++)
        argv[kept++] = argv[r->at];
    argv[kept] = NULL;
    r->operands->count = kept - 1;
    r->operands->values = argv + 1;
    return check_operand_count(r->command, r->operands);
}

int cli_run(const struct cli_command *command, int argc, char **argv)
{
    struct cli_operands operands = {0};
    struct prof_error err = {0};
    struct reader r = {
        .command = command, .argc = argc, .at = 1, .argv = argv, .operands = &operands};
    int status = command->usage_status ? (int)command->usage_status : CLI_USAGE;
    for (int i = 1; command->starts && i < argc && !operands.program; i++)
        if (!strcmp(argv[i], "--")) {
            operands.program = argv + i + 1;
            r.argc = i;
        }
    r.values = calloc(1, command->options_bytes + 1);
    operands.others = calloc((size_t)argc + 3, sizeof *operands.others); /* and two of its own */
    if (!r.values || !operands.others)
        return cli_fail(status, command->name, "out of memory");
    if (command->defaults)
        memcpy(r.values, command->defaults, command->options_bytes);
    bool good = read_command_line(&r);
    if (good)
        status = command->run(command, r.values, &operands, &err);
    if (good && status && err.message[0])
        cli_say(command->name, "%s", err.message);
    if (r.help) {
        cli_print_help(command);
        status = CLI_OK;
    }
    free(operands.others);
    free(r.values);
    return status;
}

/* ---- help ------------------------------------------------------------------------------------ */

/* --help and the overview, made from the tables and wrapped to the terminal's width, so that help
 * cannot say other than what the parser does. */

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

bool cli_next_paragraph(const char **text, char paragraph[CLI_PARAGRAPH])
{
    const char *end = strstr(*text, "\n\n");
    size_t length = end ? (size_t)(end - *text) : strlen(*text);
    snprintf(paragraph, CLI_PARAGRAPH, "%.*s", (int)length, *text);
    *text += length;
    *text += strspn(*text, "\n");
    return length > 0;
}

static void print_paragraphs(FILE *out, const char *text, size_t width)
{
    for (char paragraph[CLI_PARAGRAPH]; cli_next_paragraph(&text, paragraph);) {
        cli_print_wrapped(out, paragraph, 0, 0, width);
        fputc('\n', out);
    }
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
        for (const struct cli_text_row *e = command->examples; e->left; e++) {
            fprintf(out, "  %s\n      ", e->left); /* to be copied whole */
            cli_print_wrapped(out, e->text, 6, 6, width);
        }
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
