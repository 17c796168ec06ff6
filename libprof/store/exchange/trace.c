/* A Chrome trace as a file: read in pieces, unpacked on the way, parsed as a stream (a tree of it
 * would take six times its size). Errors name the byte. */
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "libprof/store/exchange/trace.h"

#if PERFKIT_HAVE_YAJL
#include <yajl/yajl_parse.h>

#define PIECE_BYTES (256u << 10)
#define LONGEST_VALUE (64u << 20) /* bytes of one string: the parser keeps it whole */

struct source {
    const char *path;
    gzFile file;
    yajl_handle parser;
    struct trace_reader reader;
    jmp_buf no_memory; /* yajl uses what an allocation returns without a look at it, so ... */
    bool parsing;      /* ... one that fails leaves the parser for good */
    uint64_t bytes;    /* read and parsed */
    uint64_t values, values_at; /* seen so far; where the newest was */
    const struct prof_exchange_options *options;
    struct prof_error *err;
};

static const char *unpacked(const struct source *s)
{
    return gzdirect(s->file) ? "" : " of the unpacked text";
}

static void *parser_realloc(void *context, void *old, size_t bytes)
{
    struct source *s = context;
    void *memory = realloc(old, bytes);
    if (!memory && s->parsing)
        longjmp(s->no_memory, 1);
    return memory;
}

static void *parser_malloc(void *context, size_t bytes)
{
    return parser_realloc(context, NULL, bytes);
}

static void parser_free(void *context, void *memory)
{
    (void)context;
    free(memory);
}

static bool make_parser(struct source *s)
{
    yajl_alloc_funcs memory = {parser_malloc, parser_realloc, parser_free, s};
    if (setjmp(s->no_memory)) {
        s->parsing = false;
        return false;
    }
    s->parsing = true;
    s->parser = yajl_alloc(trace_callbacks, &memory, &s->reader);
    s->parsing = false;
    return s->parser != NULL;
}

/* No piece: its end. */
static yajl_status parse(struct source *s, const unsigned char *piece, size_t length)
{
    if (setjmp(s->no_memory)) {
        s->parsing = false;
        s->reader.sink->no_memory = true;
        s->parser = NULL; /* in the middle of something: not to be used again, not even freed */
        return yajl_status_error;
    }
    s->parsing = true;
    yajl_status status =
        piece ? yajl_parse(s->parser, piece, length) : yajl_complete_parse(s->parser);
    s->parsing = false;
    return status;
}

/* The parser's words are "parse error: unallowed token at this point in JSON text" and a newline.
 */
static enum prof_status fail_parsing(struct source *s, struct trace_sink *sink,
                                     const unsigned char *piece, size_t length)
{
    if (!s->parser)
        return trace_sink_fail(sink, s->err);
    uint64_t at = s->bytes + yajl_get_bytes_consumed(s->parser);
    if (s->reader.wrong)
        return prof_fail(s->err, PROF_CORRUPT, "%s: byte %llu%s: %s", s->path,
                         (unsigned long long)at, unpacked(s), s->reader.wrong);
    unsigned char *text = yajl_get_error(s->parser, 0, piece, length);
    enum prof_status status;
    if (!text)
        status = prof_out_of_memory(s->err);
    else if (strstr((const char *)text, "client cancel"))
        status = trace_sink_fail(sink, s->err);
    else
        status = prof_fail(s->err, PROF_CORRUPT, "%s: byte %llu%s: %.*s", s->path,
                           (unsigned long long)at, unpacked(s),
                           (int)strcspn((const char *)text, "\n"), (const char *)text);
    if (text)
        yajl_free_error(s->parser, text);
    return status;
}

static enum prof_status fail_trace_reading(struct source *s)
{
    int code;
    const char *text = gzerror(s->file, &code);
    if (code == Z_ERRNO)
        return prof_fail_errno(s->err, PROF_IO, "cannot read %s", s->path);
    return prof_fail(s->err, PROF_CORRUPT,
                     "%s: byte %llu%s: the gzip file is damaged or cut short (%s)", s->path,
                     (unsigned long long)s->bytes, unpacked(s), text ? text : "");
}

static enum prof_status read_pieces(struct source *s, struct trace_sink *sink)
{
    static _Thread_local unsigned char piece[PIECE_BYTES];
    enum prof_status status = PROF_OK;
    int got;
    while (!status && (got = gzread(s->file, piece, sizeof piece)) > 0) {
        /* A mark of UTF-8 at the start is no JSON, but Windows writes it. */
        size_t skip = !s->bytes && got >= 3 && !memcmp(piece, "\xef\xbb\xbf", 3) ? 3 : 0;
        s->bytes += skip;
        if (parse(s, piece + skip, (size_t)got - skip) != yajl_status_ok)
            return fail_parsing(s, sink, piece + skip, (size_t)got - skip);
        s->bytes += (uint64_t)got - skip;
        if (s->reader.values != s->values) {
            s->values = s->reader.values;
            s->values_at = s->bytes;
        } else if (s->bytes - s->values_at > LONGEST_VALUE)
            return prof_fail(s->err, PROF_CORRUPT, "%s: byte %llu%s: a value of more than 64 MiB",
                             s->path, (unsigned long long)s->values_at, unpacked(s));
        if (s->options->progress &&
            !s->options->progress(s->options->user, trace_sink_events(sink)))
            status = prof_fail(s->err, PROF_INVALID, "interrupted: nothing was written");
    }
    int code = Z_OK;
    gzerror(s->file, &code);
    return !status && (got < 0 || code == Z_BUF_ERROR) ? fail_trace_reading(s) : status;
}

/* A trace that is an array may lack its end: programs that write one as they run leave it out. */
static enum prof_status finish_trace(struct source *s, struct trace_sink *sink)
{
    bool open_array = s->reader.top_array && s->reader.depth == 1;
    if (!open_array && parse(s, NULL, 0) != yajl_status_ok)
        return fail_parsing(s, sink, NULL, 0);
    if (s->reader.depth && !open_array)
        return prof_fail(s->err, PROF_CORRUPT, "%s: cut short at byte %llu%s", s->path,
                         (unsigned long long)s->bytes, unpacked(s));
    if (!s->reader.was_trace)
        return prof_fail(s->err, PROF_FORMAT, "%s is JSON, but no trace: it has no traceEvents",
                         s->path);
    return trace_sink_finish(sink, s->err);
}

enum prof_status trace_stage(const char *path, sqlite3 *stage,
                             const struct prof_exchange_options *options, struct prof_error *err)
{
    struct trace_sink *sink = NULL;
    struct source s = {
        .path = path, .options = options, .err = err, .reader = {.text = -1, .number = -1}};
    enum prof_status status = trace_sink_open(stage, path, &sink, err);
    if (status)
        return status;
    s.reader.sink = sink;
    s.file = gzopen(path, "rb");
    if (!s.file)
        status = prof_fail_errno(err, PROF_IO, "cannot read %s", path);
    else if (!make_parser(&s) || gzbuffer(s.file, PIECE_BYTES))
        status = prof_out_of_memory(err);
    if (!status) {
        yajl_config(s.parser, yajl_dont_validate_strings,
                    1); /* bytes of names are kept as they are */
        yajl_config(s.parser, yajl_allow_partial_values, 1);
        status = read_pieces(&s, sink);
    }
    status = status ?: finish_trace(&s, sink);
    if (s.parser)
        yajl_free(s.parser);
    if (s.file)
        gzclose(s.file);
    trace_reader_free(&s.reader);
    trace_sink_close(sink);
    return status;
}

#else

enum prof_status trace_stage(const char *path, sqlite3 *stage,
                             const struct prof_exchange_options *options, struct prof_error *err)
{
    (void)stage;
    (void)options;
    return prof_fail(
        err, PROF_UNSUPPORTED,
        "%s: this perfkit was built without yajl, which reads JSON: build it with libyajl-dev",
        path);
}

#endif
