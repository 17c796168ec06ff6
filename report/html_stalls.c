/* What rows of the table of stalls unfold: of the kernels with most samples their lines, with the
 * text of the source where its file is on this machine, and their sampled instructions. */
#include <stdlib.h>
#include <string.h>

#include "libprof/base/regular.h"
#include "libprof/base/utf8.h"
#include "report/html.h"
#include "report/writers.h"

#define KERNELS 10
#define LINES 200         /* of a kernel, those with most samples */
#define INSTRUCTIONS 1500 /* of a kernel, around the hottest */
#define CONTEXT 2         /* lines of the source above and below one with samples */
#define SOURCE_BYTES (8 << 20)
#define TEXT_CELLS 200

struct source_line {
    const char *file;
    int64_t line;
};

/* A capture may come from elsewhere and name any file: only what is a source is read. */
static bool is_source(const char *path)
{
    static const char *const endings[] = {".cu", ".cuh", ".c",   ".cc", ".cpp", ".cxx", ".h",
                                          ".hh", ".hpp", ".hxx", ".py", ".inl", ".ipp", ".cl"};
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; *path == '/' && dot && i < sizeof endings / sizeof endings[0]; i++)
        if (!strcmp(dot, endings[i]))
            return true;
    return false;
}

PROF_ORDER(by_file_and_line, struct source_line, strcmp(x->file, y->file), PROF_ASCENDING(line))

static void put_line_text(struct prof_json *json, int64_t number, char *text)
{
    text[strcspn(text, "\r\n")] = 0;
    PROF_FREED char *cut = prof_report_cut(text, TEXT_CELLS);
    prof_json_array(json, NULL);
    prof_json_int(json, NULL, number);
    prof_json_string(json, NULL, cut);
    prof_json_end(json);
}

/* [number, text] of the lines of a file that are near one with samples. */
static void put_file(struct prof_json *json, FILE *file, const struct source_line *lines,
                     size_t count)
{
    char text[4096];
    size_t next = 0, bytes = 0;
    bool begins = true; /* else the rest of a line that is longer */
    int64_t number = 0;
    while (next < count && bytes < SOURCE_BYTES && fgets(text, sizeof text, file)) {
        bytes += strlen(text);
        number += begins;
        while (next < count && lines[next].line + CONTEXT < number)
            next++;
        bool ends = strchr(text, '\n') != NULL;
        if (begins && next < count && number >= lines[next].line - CONTEXT)
            put_line_text(json, number, text);
        begins = ends;
    }
}

/* "stall_source": {file: [[number, text] ...]} */
static enum prof_status put_stall_source(struct prof_json *json, const struct prof_stalls *stalls,
                                         struct prof_error *err)
{
    PROF_FREED struct source_line *lines = malloc((stalls->line_count + 1) * sizeof *lines);
    size_t count = 0;
    if (!lines)
        return prof_out_of_memory(err);
    for (size_t i = 0; i < stalls->line_count; i++) {
        const struct prof_stall_row *row = &stalls->lines[i];
        if (row->kernel < KERNELS && row->file && row->line > 0 && is_source(row->file))
            lines[count++] = (struct source_line){row->file, row->line};
    }
    qsort(lines, count, sizeof *lines, by_file_and_line);
    prof_json_object(json, "stall_source");
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && !strcmp(lines[end].file, lines[i].file); end++)
            ;
        FILE *file = prof_read_regular(lines[i].file);
        if (!file)
            continue;
        prof_json_array(json, lines[i].file);
        put_file(json, file, lines + i, end - i);
        prof_json_end(json);
        fclose(file);
    }
    prof_json_end(json);
    return PROF_OK;
}

/* [where, file, line, samples, reason, its samples] of a line; of an instruction [address, text,
 * where, samples, reason, its samples]. */
static void put_stall_row(struct prof_json *json, const struct prof_stall_row *row, bool line)
{
    prof_json_array(json, NULL);
    prof_json_string(json, NULL, line ? row->where : row->address);
    prof_json_string(json, NULL, line ? row->file : row->sass);
    if (line)
        prof_json_known(json, NULL, row->line);
    else
        prof_json_string(json, NULL, row->where);
    prof_json_int(json, NULL, row->sums.samples);
    prof_json_int(json, NULL, row->sums.stalled > 0 ? (int64_t)row->sums.reason : -1);
    prof_json_int(json, NULL, row->sums.stalled > 0 ? row->sums.of[row->sums.reason] : 0);
    prof_json_end(json);
}

static void put_stall_lines(struct prof_json *json, const struct prof_stalls *stalls, size_t kernel)
{
    size_t put = 0;
    prof_json_array(json, "lines");
    for (size_t i = 0; i < stalls->line_count && put < LINES; i++) {
        if (stalls->lines[i].kernel != kernel)
            continue;
        put_stall_row(json, &stalls->lines[i], true);
        put++;
    }
    prof_json_end(json);
}

static void put_stall_code(struct prof_json *json, const struct prof_stalls *stalls, size_t kernel)
{
    const struct prof_stall_row *rows = stalls->instructions;
    size_t first = 0, end, hottest;
    while (first < stalls->instruction_count && rows[first].kernel != kernel)
        first++;
    for (end = hottest = first; end < stalls->instruction_count && rows[end].kernel == kernel;
         end++)
        hottest = rows[end].sums.samples > rows[hottest].sums.samples ? end : hottest;
    size_t all = end - first, most = all < INSTRUCTIONS ? all : INSTRUCTIONS;
    size_t from = hottest - first < most / 2 ? first : hottest - most / 2;
    from = from + most > end ? end - most : from;
    prof_json_uint(json, "left_out", all - most);
    prof_json_array(json, "code");
    for (size_t i = from; i < from + most; i++)
        put_stall_row(json, &rows[i], false);
    prof_json_end(json);
}

enum prof_status prof_html_put_stalls(struct prof_json *json, const struct prof_html_page *page,
                                      struct prof_error *err)
{
    const struct prof_stalls *stalls = &page->data->stalls;
    if (!stalls->count)
        return PROF_OK;
    prof_json_array(json, "stall_reasons");
    for (enum prof_stall_reason i = 0; i < PROF_STALL_REASONS; i++)
        prof_json_strings(json, NULL, (const char *const[]){prof_stall_name(i), prof_stall_text(i)},
                          2);
    prof_json_end(json);
    prof_json_array(json, "stall_kernels");
    for (size_t k = 0; k < stalls->count && k < KERNELS; k++) {
        prof_json_object(json, NULL);
        put_stall_lines(json, stalls, k);
        put_stall_code(json, stalls, k);
        prof_json_end(json);
    }
    prof_json_end(json);
    return put_stall_source(json, stalls, err);
}
