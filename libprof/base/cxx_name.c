/* Names of instantiated templates are the longest that reports meet (PyTorch's reach kilobytes),
 * and what distinguishes one from the next is a word in their middle: the functor. A cut in the
 * middle takes that word first, so a table of ten kernels is ten times the same line. Here a name
 * is read as what it is, paths with arguments in brackets, and written again with less and less of
 * it. */
#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/cxx_name.h"
#include "libprof/base/utf8.h"

#define LONGEST 16384 /* bytes of a name that is looked into */
#define DEEPEST 32    /* brackets within brackets */
#define LEAST_HEAD 4  /* bytes of a function's own name where its arguments alone are too long */
#define LEAST_NAME 12 /* bytes of a function's own name in front of dots, before numbers */
#define PARTS 16      /* of a path that are kept apart */

/* How much of a name is written. */
struct form {
    bool plain;   /* arguments that say a type or a number, where others stand beside them */
    bool lists;   /* lists of nothing but such arguments, within arguments */
    int unpacked; /* F<G> becomes G so many times where G alone of F's arguments says something */
    int depth;    /* of brackets that are written */
    size_t head;  /* bytes that dots leave of the function's own name at least */
};

struct span {
    const char *begin, *end;
};

struct writer {
    const struct form *form;
    char *text;
    size_t length, room;
    bool full;
};

static void append_writer_text(struct writer *w, const char *text, size_t length)
{
    if (w->full || length > w->room - w->length) {
        w->full = true;
        return;
    }
    memcpy(w->text + w->length, text, length);
    w->length += length;
}

static bool starts(struct span s, const char *word)
{
    size_t length = strlen(word);
    return (size_t)(s.end - s.begin) >= length && !memcmp(s.begin, word, length);
}

static char opening(char close)
{
    return close == '>' ? '<' : close == ')' ? '(' : close == '}' ? '{' : close == ']' ? '[' : 0;
}

/* Brackets match, and nothing outside of them reads as more than one word. */
static bool well_formed(const char *name)
{
    char stack[DEEPEST];
    size_t depth = 0;
    bool path = false;
    for (const char *p = name; *p; p++) {
        if (p - name >= LONGEST)
            return false;
        path |= *p == '<' || (*p == ':' && p[1] == ':');
        if (!strncmp(p, "operator", 8) && strchr("<>-", p[8]))
            return false; /* the end of the text too */
        if (strchr("<({[", *p)) {
            if (depth == DEEPEST)
                return false;
            stack[depth++] = *p;
        } else if (opening(*p) && (!depth || stack[--depth] != opening(*p))) {
            return false;
        } else if (!depth && *p == ' ' && strncmp(p, " const", 6) != 0) {
            return false;
        }
    }
    return path && !depth;
}

/* First byte in [p, end) that is `mark` outside of brackets; end where there is none. */
static const char *find_mark(const char *p, const char *end, char mark)
{
    int depth = 0;
    for (; p < end; p++) {
        if (!depth && *p == mark && (mark != ':' || p[1] == ':'))
            break;
        depth += strchr("<({[", *p) ? 1 : opening(*p) ? -1 : 0;
    }
    return p;
}

static struct span trim(struct span s)
{
    while (s.begin < s.end && *s.begin == ' ')
        s.begin++;
    while (s.begin < s.end && s.end[-1] == ' ')
        s.end--;
    return s;
}

/* The next one of a list, `mark` between them; false at the end of it. */
static bool next_list_item(struct span *rest, char mark, struct span *item)
{
    if (rest->begin >= rest->end)
        return false;
    const char *to = find_mark(rest->begin, rest->end, mark);
    *item = trim((struct span){rest->begin, to});
    rest->begin = to < rest->end ? to + (mark == ':' ? 2 : 1) : rest->end;
    return true;
}

/* ---- what says little ------------------------------------------------------------------------ */

static bool plain_word(const char *word, size_t length)
{
    /* clang-format off */
    static const char *const words[] = {
        "bool", "char", "signed", "unsigned", "short", "int", "long", "float", "double", "void",
        "const", "true", "false", "half", "half2", "half_t", "__half", "__half2", "float2",
        "float4", "int2", "int4", "double2", "size_t", "int8_t", "int16_t", "int32_t", "int64_t",
        "uint8_t", "uint16_t", "uint32_t", "uint64_t", "bfloat16", "bfloat16_t", "__nv_bfloat16",
        "__nv_bfloat162", "tfloat32_t", "float_e4m3_t", "float_e5m2_t", "__nv_fp8_e4m3",
        "__nv_fp8_e5m2", "Half", "BFloat16", "c10", "cutlass", "cute", "std", "cuda", "array",
        "tuple", "C", "complex", "integral_constant", "__1",
    };
    /* clang-format on */
    if (isdigit((unsigned char)*word))
        return true;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == length && !memcmp(words[i], word, length))
            return true;
    return false;
}

/* A number, a value of an enumeration, "(Layout)1", or a type of the language or made of such. */
static bool is_plain_argument(struct span s)
{
    if (starts(s, "(") && !starts(s, "(anonymous"))
        return true;
    for (const char *p = s.begin; p < s.end;) {
        size_t length = 0;
        while (p + length < s.end && (isalnum((unsigned char)p[length]) || p[length] == '_'))
            length++;
        if (length ? !plain_word(p, length) : !strchr("<>,:*&- .", *p))
            return false;
        p += length ? length : 1;
    }
    return true;
}

/* A part of a path that names something: not "{lambda(int)#1}", "operator()() const", and no
 * namespace without a name. */
static bool names_something(struct span part)
{
    return part.begin < part.end && !strchr("{(", *part.begin) && !starts(part, "operator");
}

/* The parts of a path that name something, as many of the last as fit `parts`. */
static size_t named_path_parts(struct span path, struct span parts[PARTS])
{
    size_t count = 0;
    struct span part;
    while (next_list_item(&path, ':', &part)) {
        if (!names_something(part))
            continue;
        if (count == PARTS)
            memmove(parts, parts + 1, --count * sizeof *parts);
        parts[count++] = part;
    }
    return count;
}

/* Of "name<list>(int) const": the name, and what is between the brackets. */
static struct span split_arguments(struct span part, struct span *list)
{
    const char *open = part.begin;
    while (open < part.end && !strchr("<(", *open))
        open++;
    *list = (struct span){part.end, part.end};
    if (open < part.end && *open == '<') {
        list->begin = open + 1;
        list->end = find_mark(open + 1, part.end, '>');
    }
    return trim((struct span){part.begin, open});
}

/* How many of a list carry information; *informative is the last of them. */
static size_t count_naming_arguments(struct span list, struct span *informative)
{
    size_t count = 0;
    struct span item;
    while (next_list_item(&list, ',', &item)) {
        if (is_plain_argument(item))
            continue;
        *informative = item;
        count++;
    }
    return count;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void append_argument(struct writer *w, struct span argument, int depth);

static void append_list(struct writer *w, struct span list, int depth)
{
    struct span item, informative;
    bool none = !count_naming_arguments(list, &informative), any = false;
    if (list.begin >= list.end || depth >= w->form->depth || (none && depth && !w->form->lists))
        return;
    append_writer_text(w, "<", 1);
    while (next_list_item(&list, ',', &item)) {
        bool plain = is_plain_argument(item);
        if (plain && !none && !w->form->plain)
            continue;
        if (any)
            append_writer_text(w, ", ", 2);
        any = true;
        if (plain)
            append_writer_text(w, item.begin, (size_t)(item.end - item.begin));
        else
            append_argument(w, item, depth + 1);
    }
    append_writer_text(w, ">", 1);
}

static void append_part(struct writer *w, struct span part, int depth)
{
    struct span list, name = split_arguments(part, &list);
    append_writer_text(w, name.begin, (size_t)(name.end - name.begin));
    append_list(w, list, depth);
}

static void append_argument(struct writer *w, struct span argument, int depth)
{
    struct span parts[PARTS];
    size_t count = named_path_parts(argument, parts);
    for (int i = 0; count && i < w->form->unpacked; i++) {
        struct span list, only;
        split_arguments(parts[count - 1], &list);
        if (count_naming_arguments(list, &only) != 1)
            break;
        argument = only;
        count = named_path_parts(argument, parts);
    }
    if (count)
        append_part(w, parts[count - 1], depth);
    else
        append_writer_text(w, argument.begin, (size_t)(argument.end - argument.begin));
}

/* The last `kept` parts of a function's path. */
static bool write_name(struct writer *w, const struct span *parts, size_t count, size_t kept)
{
    w->length = 0;
    w->full = false;
    for (size_t i = count - kept; i < count; i++) {
        if (i > count - kept)
            append_writer_text(w, "::", 2);
        append_part(w, parts[i], 0);
    }
    append_writer_text(w, "", 1);
    return !w->full;
}

/* The function's own name ends after so many bytes, with dots. */
static bool keep_of_head(struct writer *w, size_t head, size_t keep)
{
    if (keep + 3 >= head)
        return false;
    keep = (size_t)prof_report_head(w->text, keep);
    memmove(w->text + keep + 3, w->text + head, strlen(w->text + head) + 1);
    memcpy(w->text + keep, "...", 3);
    return true;
}

/* The middle of the function's own name gives way to dots, `least` bytes of it stay at least. */
static bool shorten_head(struct writer *w, size_t cells, size_t least)
{
    size_t head = strcspn(w->text, "<"), inner = prof_report_cells(w->text + head);
    return inner + 3 + least <= cells && keep_of_head(w, head, cells - inner - 3);
}

/* A class distinguishes functions, a namespace does not. */
static bool is_class(struct span part)
{
    return isupper((unsigned char)*part.begin) ||
           memchr(part.begin, '<', (size_t)(part.end - part.begin));
}

/* As much of the path as there is room for: all of it, or the classes that the function is of. */
static bool write_in(struct writer *w, const struct span *parts, size_t count, size_t cells)
{
    if (!write_name(w, parts, count, 1))
        return false;
    if (prof_report_cells(w->text) > cells) {
        struct span list, informative;
        split_arguments(parts[count - 1], &list);
        bool none = !count_naming_arguments(
            list, &informative); /* then the name says more than its arguments */
        return list.begin < list.end && shorten_head(w, cells, none ? LEAST_NAME : w->form->head);
    }
    if (w->form->plain && write_name(w, parts, count, count) && prof_report_cells(w->text) <= cells)
        return true;
    size_t kept = 1;
    while (kept < count && is_class(parts[count - kept - 1]) &&
           write_name(w, parts, count, kept + 1) && prof_report_cells(w->text) <= cells)
        kept++;
    return write_name(w, parts, count, kept);
}

char *prof_name_reduced(const char *name, size_t cells)
{
    static const struct form forms[] = {
        {.plain = true, .lists = true, .depth = DEEPEST, .head = 24},
        {.lists = true, .depth = DEEPEST, .head = 12},
        {.depth = DEEPEST, .head = 8},
        {.unpacked = 1, .depth = DEEPEST, .head = 8},
        {.unpacked = DEEPEST, .depth = DEEPEST, .head = 8},
        {.depth = 2, .head = 8},
        {.unpacked = DEEPEST, .depth = 1, .head = LEAST_HEAD},
    };
    struct span parts[PARTS];
    if (!well_formed(name))
        return NULL;
    size_t length = strlen(name),
           count = named_path_parts((struct span){name, name + length}, parts);
    if (count && *parts[count - 1].begin == '<')
        return NULL;                            /* markup: nothing is in front of the bracket */
    struct writer w = {.room = length * 2 + 1}; /* ", " where the name had "," */
    w.text = count ? malloc(w.room) : NULL;
    if (!w.text)
        return NULL;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        w.form = &forms[i];
        if (write_in(&w, parts, count, cells))
            return w.text;
    }
    struct span list, informative;
    split_arguments(parts[count - 1], &list);
    if (count_naming_arguments(list,
                               &informative)) /* what the caller cuts then is not that alone */
        keep_of_head(&w, strcspn(w.text, "<"), LEAST_HEAD);
    return w.text;
}

const char *prof_name_without_type(const char *name)
{
    static const char *const types[] = {"void ", "__global__ ", "static "};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        size_t length = strlen(types[i]);
        if (!strncmp(name, types[i], length) && name[length])
            name += length;
    }
    return name;
}

size_t prof_name_without_arguments(const char *name)
{
    size_t length = strlen(name);
    /* Qualifiers such as " const" or " [clone .x]" stay with the list. */
    const char *close = strrchr(name, ')');
    if (!close || name[length - 1] == ' ' || strchr(close, '>') || strchr(close, ':'))
        return length;
    int depth = 0;
    for (const char *p = close; p > name; p--) {
        depth += (*p == ')') - (*p == '(');
        if (!depth)
            return p[-1] != ' ' ? (size_t)(p - name) : length;
    }
    return length;
}
