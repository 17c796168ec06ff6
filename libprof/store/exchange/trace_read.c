/* The words of a Chrome trace: which of its JSON values mean something, and which part of an event
 * they are. Values come one by one from the parser, and one event is kept at a time, whatever the
 * size of the file. Numbers come as their text: a double could not hold nanoseconds of today, nor
 * addresses. */
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>
#include <zlib.h>

#include "libprof/store/exchange/feed.h"
#include "libprof/store/exchange/trace.h"

enum place { TOP, EVENTS, EVENT, ARGS, VECTOR, RAW, DEVICES, DEVICE, DISTRIBUTED, SKIPPED };

static const struct {
    const char *key;
    char place, how;
} numbers[] = {
#define X(name, key, place, how) {key, place, how},
    TRACE_NUMBER_MAP(X)
#undef X
};

static const struct {
    const char *key;
    char place;
} texts[] = {
#define X(name, key, place) {key, place},
    TRACE_TEXT_MAP(X)
#undef X
};

/* ---- numbers --------------------------------------------------------------------------------- */

/* Digits up to 2^64-1; false for more. */
static bool add_digit(uint64_t *value, unsigned digit)
{
    if (*value > (UINT64_MAX - digit) / 10)
        return false;
    *value = *value * 10 + digit;
    return true;
}

/* Numbers in scientific notation are rare in traces: exactness is not to be had for them. */
static bool by_double(const char *text, size_t length, int64_t scale, int64_t *out)
{
    char copy[64], *end;
    if (length >= sizeof copy)
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    double value = strtod(copy, &end) * (double)scale;
    if (*end || end == copy ||
        !(value > -(double)FEED_FARTHEST_NS && value < (double)FEED_FARTHEST_NS))
        return false;
    *out = (int64_t)(value < 0 ? value - 0.5 : value + 0.5);
    return true;
}

bool trace_decimal(const char *text, size_t length, int64_t scale, int64_t *out)
{
    bool negative = length && *text == '-', fraction = false;
    uint64_t value = 0;
    int64_t left = scale; /* what a further digit of the fraction is worth, times ten */
    unsigned rounding = 0;
    size_t i = negative, digits = 0;
    for (; i < length; i++) {
        unsigned digit = (unsigned)(text[i] - '0');
        if (text[i] == '.' && !fraction)
            fraction = true;
        else if (text[i] == 'e' || text[i] == 'E')
            return by_double(text, length, scale, out);
        else if (digit > 9)
            return false;
        else if (!fraction || left > 1) {
            if (!add_digit(&value, digit))
                return false;
            left /= fraction ? 10 : 1;
            digits++;
        } else if (left == 1) { /* the first digit that is cut */
            rounding = digit >= 5;
            left = 0;
        }
    }
    if (!digits)
        return false;
    for (; left > 1; left /= 10)
        if (!add_digit(&value, 0))
            return false;
    value += rounding;
    if (scale != 1 && value > (uint64_t)FEED_FARTHEST_NS)
        return false;
    if (negative && value > (uint64_t)INT64_MAX)
        return false;
    *out = negative ? -(int64_t)value : (int64_t)value;
    return true;
}

/* ---- texts ----------------------------------------------------------------------------------- */

static bool set_text(struct trace_reader *reader, int which, const unsigned char *text,
                     size_t length)
{
    struct trace_bytes *bytes = &reader->event.texts[which];
    bytes->count = 0;
    if (!trace_memory(reader->sink, prof_array_reserve(bytes, length + 1)))
        return false;
    for (size_t i = 0; i < length; i++) /* names end at a NUL everywhere else */
        bytes->data[i] = text[i] ? (char)text[i] : ' ';
    bytes->data[length] = '\0';
    bytes->count = length;
    return true;
}

/* More of an array that is kept as JSON. */
static bool add_raw(struct trace_reader *reader, const char *text, size_t length)
{
    struct trace_bytes *bytes = &reader->event.texts[reader->raw];
    if (bytes->count > TRACE_RAW_BYTES)
        return true;
    if (!trace_memory(reader->sink, prof_array_reserve(bytes, length + 2)))
        return false;
    if (bytes->count && bytes->data[bytes->count - 1] != '[' && *text != ']')
        bytes->data[bytes->count++] = ',';
    memcpy(bytes->data + bytes->count, text, length);
    bytes->count += length;
    bytes->data[bytes->count] = '\0';
    return true;
}

/* Names of types and plain arguments need no escape; another text becomes null. */
static bool add_raw_text(struct trace_reader *reader, const char *text, size_t length)
{
    char quoted[128];
    bool plain = length < sizeof quoted - 2;
    for (size_t i = 0; plain && i < length; i++)
        plain = text[i] >= ' ' && text[i] < 127 && text[i] != '"' && text[i] != '\\';
    if (!plain)
        return add_raw(reader, "null", 4);
    quoted[0] = quoted[length + 1] = '"';
    memcpy(quoted + 1, text, length);
    return add_raw(reader, quoted, length + 2);
}

static void clear_event(struct trace_event *event)
{
    event->has = 0;
    for (int i = 0; i < TRACE_TEXTS; i++)
        event->texts[i].count = 0;
}

static void trace_reader_free(struct trace_reader *reader)
{
    for (int i = 0; i < TRACE_TEXTS; i++)
        prof_array_free(&reader->event.texts[i]);
}

/* ---- values ---------------------------------------------------------------------------------- */

static enum place here(const struct trace_reader *reader)
{
    return reader->depth ? (enum place)reader->places[reader->depth - 1] : SKIPPED;
}

static void expect_nothing(struct trace_reader *reader)
{
    if (here(reader) == VECTOR)
        reader->vector++;
    else
        reader->text = reader->number = -1;
    reader->base = false;
    reader->values++;
}

static void set_number(struct trace_reader *reader, int which, int64_t value)
{
    reader->event.numbers[which] = value;
    reader->event.has |= (uint64_t)1 << which;
}

static int on_other(void *context)
{
    expect_nothing(context);
    return here(context) != RAW || add_raw(context, "null", 4);
}

static int on_number(void *context, const char *text, size_t length)
{
    struct trace_reader *reader = context;
    int64_t value;
    bool ok = true;
    if (here(reader) == RAW) {
        reader->values++;
        return add_raw(reader, text, length);
    }
    if (here(reader) == VECTOR) {
        if (reader->vector < 3 && trace_decimal(text, length, 1, &value))
            set_number(reader, reader->vector_first + reader->vector, value);
        return on_other(reader);
    }
    if (reader->base && trace_decimal(text, length, 1, &value))
        trace_sink_base(reader->sink, value);
    else if (reader->number >= 0 && reader->how != 'v' &&
             trace_decimal(text, length, reader->how == 't' ? 1000 : 1, &value))
        set_number(reader, reader->number, value);
    else if (reader->text == TRACE_TEXT_PID || reader->text == TRACE_TEXT_TID)
        ok = set_text(reader, reader->text, (const unsigned char *)text, length);
    expect_nothing(reader);
    return ok;
}

static int on_string(void *context, const unsigned char *text, size_t length)
{
    struct trace_reader *reader = context;
    int64_t value;
    bool ok = true;
    if (here(reader) == RAW) {
        reader->values++;
        return add_raw_text(reader, (const char *)text, length);
    }
    if (reader->number >= 0 && reader->how == 't' &&
        trace_decimal((const char *)text, length, 1000, &value))
        set_number(reader, reader->number, value);
    else if (reader->text >= 0)
        ok = set_text(reader, reader->text, text, length);
    expect_nothing(reader);
    return ok;
}

static int on_boolean(void *context, int value)
{
    (void)value;
    return on_other(context);
}

static bool is_key(const char *key, const unsigned char *text, size_t length)
{
    return strlen(key) == length && !memcmp(key, text, length);
}

static int on_key(void *context, const unsigned char *text, size_t length)
{
    struct trace_reader *reader = context;
    int place = here(reader) == EVENT         ? 0
                : here(reader) == ARGS        ? 1
                : here(reader) == DEVICE      ? 2
                : here(reader) == DISTRIBUTED ? 3
                                              : -1;
    expect_nothing(reader);
    if (here(reader) == TOP) {
        reader->base = is_key("baseTimeNanoseconds", text, length);
        reader->number = is_key("traceEvents", text, length)        ? -2
                         : is_key("deviceProperties", text, length) ? -3
                         : is_key("distributedInfo", text, length)  ? -5
                                                                    : -1;
        return 1;
    }
    if (place < 0)
        return 1;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (numbers[i].place == place && is_key(numbers[i].key, text, length) && length) {
            reader->number = (int)i;
            reader->how = numbers[i].how;
        }
    }
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].place == place && is_key(texts[i].key, text, length))
            reader->text = (int)i;
    if (place == 0 && is_key("args", text, length))
        reader->number = -4;
    return 1;
}

/* ---- containers ------------------------------------------------------------------------------ */

static int enter(struct trace_reader *reader, enum place place)
{
    if (reader->depth == TRACE_DEEPEST) {
        reader->wrong = "values are nested too deeply";
        return 0;
    }
    expect_nothing(reader);
    reader->places[reader->depth++] = (unsigned char)place;
    return 1;
}

static int on_map(void *context)
{
    struct trace_reader *reader = context;
    enum place around = here(reader), place = SKIPPED;
    if (around == RAW && !add_raw(reader, "null", 4))
        return 0;
    if (!reader->depth)
        place = TOP;
    else if (around == EVENTS || around == DEVICES)
        place = around == EVENTS ? EVENT : DEVICE;
    else if (around == EVENT && reader->number == -4)
        place = ARGS;
    else if (around == TOP && reader->number == -5)
        place = DISTRIBUTED;
    if (place == EVENT || place == DEVICE || place == DISTRIBUTED)
        clear_event(&reader->event);
    return enter(reader, place);
}

static int on_array(void *context)
{
    struct trace_reader *reader = context;
    enum place around = here(reader), place = SKIPPED;
    if (!reader->depth) {
        reader->top_array = reader->was_trace = true;
        place = EVENTS;
    } else if (around == TOP && reader->number == -2) {
        reader->was_trace = true;
        place = EVENTS;
    } else if (around == TOP && reader->number == -3) {
        place = DEVICES;
    } else if (around == ARGS && reader->number >= 0 && reader->how == 'v') {
        place = VECTOR;
        reader->vector_first = reader->number;
        reader->vector = 0;
    } else if (around == RAW) {
        place = RAW;
    } else if (around == ARGS &&
               (reader->text == TRACE_TEXT_SIZES || reader->text == TRACE_TEXT_TYPES ||
                reader->text == TRACE_TEXT_ARGUMENTS)) {
        place = RAW;
        reader->raw = reader->text;
        reader->event.texts[reader->raw].count = 0; /* the key may come twice */
    }
    return (place != RAW || add_raw(reader, "[", 1)) && enter(reader, place);
}

static int on_container_end(void *context)
{
    struct trace_reader *reader = context;
    enum place place = here(reader);
    reader->depth -= reader->depth > 0;
    reader->values++;
    reader->text = reader->number = -1;
    if (place == RAW)
        return add_raw(reader, "]", 1);
    if (place == EVENT)
        return trace_sink_event(reader->sink, &reader->event);
    if (place == DEVICE)
        return trace_sink_device(reader->sink, &reader->event);
    if (place == DISTRIBUTED)
        return trace_sink_rank(reader->sink, &reader->event);
    return 1;
}

static const yajl_callbacks callbacks = {
    .yajl_null = on_other,
    .yajl_boolean = on_boolean,
    .yajl_number = on_number,
    .yajl_string = on_string,
    .yajl_start_map = on_map,
    .yajl_map_key = on_key,
    .yajl_end_map = on_container_end,
    .yajl_start_array = on_array,
    .yajl_end_array = on_container_end,
};
const void *const trace_callbacks = &callbacks;

/* ---- the file -------------------------------------------------------------------------------- */

/* A Chrome trace as a file: read in pieces, unpacked on the way, parsed as a stream (a tree of it
 * would take six times its size). Errors name the byte. */

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
