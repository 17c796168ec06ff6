/* See parquet.h: pages and row groups as their values come, the footer at the end. A column of a
 * row group is written in one piece, so its values are kept until the group is full. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libprof/store/exchange/parquet.h"

#define MAGIC "PAR1"

/* Numbers of parquet.thrift. */
enum { PAGE_DATA = 0, PAGE_DICTIONARY = 2 };
enum { ENCODING_PLAIN = 0, ENCODING_RLE = 3, ENCODING_RLE_DICTIONARY = 8 };
enum { REPETITION_REQUIRED = 0, REPETITION_OPTIONAL = 1 };
enum { CONVERTED_UTF8 = 0, CODEC_UNCOMPRESSED = 0, FORMAT_VERSION = 2 };

static const int32_t physical_types[] = {
    [PARQUET_INT64] = 2, [PARQUET_DOUBLE] = 5, [PARQUET_TEXT] = 6, [PARQUET_BYTES] = 6};

struct parquet_file {
    int fd;
    char *shown;
    uint64_t offset; /* of the next byte */
    size_t column_count;
    struct parquet_column *columns;
    struct parquet_chunk *chunks;
    uint32_t rows;        /* in the chunks */
    size_t buffered;      /* bytes in them when looked at last */
    uint64_t total_rows;  /* in the file, with those */
    struct thrift groups; /* row groups as the footer lists them */
    size_t group_count;
    struct thrift header;
    parquet_bytes page;
    int failed_errno; /* of a write; 0: none */
    bool no_memory;
};

static enum prof_status parquet_file_status(const struct parquet_file *file, struct prof_error *err)
{
    if (file->no_memory)
        return prof_out_of_memory(err);
    if (!file->failed_errno)
        return PROF_OK;
    errno = file->failed_errno;
    if (errno == ENOSPC || errno == EDQUOT)
        return prof_fail(err, PROF_FULL, "cannot write %s: the disk is full", file->shown);
    return prof_fail_errno(err, PROF_IO, "cannot write %s", file->shown);
}

static void write_bytes(struct parquet_file *file, const void *data, size_t length)
{
    const char *at = data;
    while (length && !file->failed_errno) {
        ssize_t written = write(file->fd, at, length);
        if (written < 0 && errno != EINTR)
            file->failed_errno = errno;
        if (written <= 0)
            continue;
        at += written;
        length -= (size_t)written;
        file->offset += (uint64_t)written;
    }
}

/* ---- pages ----------------------------------------------------------------------------------- */

static void write_page(struct parquet_file *file, const void *body, size_t length)
{
    file->no_memory |= file->header.failed;
    if (file->no_memory)
        return;
    write_bytes(file, file->header.data, file->header.count);
    write_bytes(file, body, length);
}

static void begin_header(struct parquet_file *file, int32_t type, size_t length)
{
    thrift_clear(&file->header);
    thrift_i32(&file->header, 1, type);
    thrift_i32(&file->header, 2, (int32_t)length);
    thrift_i32(&file->header, 3, (int32_t)length);
}

static void write_dictionary(struct parquet_file *file, const struct parquet_chunk *chunk)
{
    struct thrift *h = &file->header;
    begin_header(file, PAGE_DICTIONARY, chunk->dictionary.count);
    thrift_struct_begin(h, 7);
    thrift_i32(h, 1, (int32_t)chunk->entries);
    thrift_i32(h, 2, ENCODING_PLAIN);
    thrift_struct_end(h);
    thrift_stop(h);
    write_page(file, chunk->dictionary.data, chunk->dictionary.count);
}

static void write_data(struct parquet_file *file, struct parquet_chunk *chunk, bool required)
{
    struct thrift *h = &file->header;
    file->page.count = 0;
    if (!chunk_page(chunk, required, &file->page)) {
        file->no_memory = true;
        return;
    }
    begin_header(file, PAGE_DATA, file->page.count);
    thrift_struct_begin(h, 5);
    thrift_i32(h, 1, (int32_t)chunk->defined.count);
    thrift_i32(h, 2, chunk_has_dictionary(chunk) ? ENCODING_RLE_DICTIONARY : ENCODING_PLAIN);
    thrift_i32(h, 3, ENCODING_RLE);
    thrift_i32(h, 4, ENCODING_RLE);
    thrift_struct_end(h);
    thrift_stop(h);
    write_page(file, file->page.data, file->page.count);
}

/* ---- row groups ------------------------------------------------------------------------------ */

static void list_statistics(struct thrift *out, const struct parquet_chunk *chunk,
                            enum parquet_type type)
{
    const void *least, *most;
    size_t least_length, most_length;
    bool bounds = chunk_bounds(chunk, type, &least, &least_length, &most, &most_length);
    thrift_struct_begin(out, 12);
    thrift_i64(out, 3, (int64_t)(chunk->defined.count - chunk->values));
    if (bounds) {
        thrift_binary(out, 5, most, most_length);
        thrift_binary(out, 6, least, least_length);
        thrift_bool(out, 7, true);
        thrift_bool(out, 8, true);
    }
    thrift_struct_end(out);
}

/* Where a column of a row group stands in the file. */
struct place {
    uint64_t start, data, end;
};

static void list_column(struct thrift *out, const struct parquet_column *column,
                        const struct parquet_chunk *chunk, const struct place *place)
{
    bool dictionary = chunk_has_dictionary(chunk);
    int64_t bytes = (int64_t)(place->end - place->start);
    thrift_struct_begin(out, 0);
    thrift_i64(out, 2, (int64_t)place->start);
    thrift_struct_begin(out, 3);
    thrift_i32(out, 1, physical_types[column->type]);
    thrift_list(out, 2, THRIFT_I32, dictionary ? 3 : 2);
    thrift_list_i32(out, ENCODING_PLAIN);
    thrift_list_i32(out, ENCODING_RLE);
    if (dictionary)
        thrift_list_i32(out, ENCODING_RLE_DICTIONARY);
    thrift_list(out, 3, THRIFT_BINARY, 1);
    thrift_list_text(out, column->name);
    thrift_i32(out, 4, CODEC_UNCOMPRESSED);
    thrift_i64(out, 5, (int64_t)chunk->defined.count);
    thrift_i64(out, 6, bytes);
    thrift_i64(out, 7, bytes);
    thrift_i64(out, 9, (int64_t)place->data);
    if (dictionary)
        thrift_i64(out, 11, (int64_t)place->start);
    list_statistics(out, chunk, column->type);
    thrift_struct_end(out);
    thrift_struct_end(out);
}

static void write_column(struct parquet_file *file, size_t c)
{
    const struct parquet_column *column = &file->columns[c];
    struct parquet_chunk *chunk = &file->chunks[c];
    struct place place = {.start = file->offset};
    chunk_finish(chunk, column->keyed);
    if (chunk_has_dictionary(chunk))
        write_dictionary(file, chunk);
    place.data = file->offset;
    write_data(file, chunk, column->required);
    place.end = file->offset;
    list_column(&file->groups, column, chunk, &place);
    chunk_clear(chunk);
}

static void write_group(struct parquet_file *file)
{
    struct thrift *out = &file->groups;
    uint64_t start = file->offset;
    if (!file->rows)
        return;
    thrift_struct_begin(out, 0);
    thrift_list(out, 1, THRIFT_STRUCT, file->column_count);
    for (size_t c = 0; c < file->column_count; c++)
        write_column(file, c);
    thrift_i64(out, 2, (int64_t)(file->offset - start));
    thrift_i64(out, 3, file->rows);
    thrift_i64(out, 5, (int64_t)start);
    thrift_i64(out, 6, (int64_t)(file->offset - start));
    thrift_struct_end(out);
    file->no_memory |= out->failed;
    file->group_count++;
    file->rows = 0;
}

/* ---- the footer ------------------------------------------------------------------------------ */

static void list_schema(struct thrift *out, const struct parquet_file *file)
{
    thrift_list(out, 2, THRIFT_STRUCT, file->column_count + 1);
    thrift_struct_begin(out, 0);
    thrift_text(out, 4, "schema");
    thrift_i32(out, 5, (int32_t)file->column_count);
    thrift_struct_end(out);
    for (size_t c = 0; c < file->column_count; c++) {
        const struct parquet_column *column = &file->columns[c];
        thrift_struct_begin(out, 0);
        thrift_i32(out, 1, physical_types[column->type]);
        thrift_i32(out, 3, column->required ? REPETITION_REQUIRED : REPETITION_OPTIONAL);
        thrift_text(out, 4, column->name);
        if (column->type == PARQUET_TEXT) {
            thrift_i32(out, 6, CONVERTED_UTF8);
            thrift_struct_begin(out, 10); /* logical type STRING, which has no members */
            thrift_struct_begin(out, 1);
            thrift_struct_end(out);
            thrift_struct_end(out);
        }
        thrift_struct_end(out);
    }
}

/* Least and greatest are by the order of each type: without this, readers must not use them. */
static void list_orders(struct thrift *out, const struct parquet_file *file)
{
    thrift_list(out, 7, THRIFT_STRUCT, file->column_count);
    for (size_t c = 0; c < file->column_count; c++) {
        thrift_struct_begin(out, 0);
        thrift_struct_begin(out, 1);
        thrift_struct_end(out);
        thrift_struct_end(out);
    }
}

static void write_footer(struct parquet_file *file)
{
    struct thrift *out = &file->header;
    unsigned char length[4];
    uint64_t start = file->offset;
    thrift_clear(out);
    thrift_i32(out, 1, FORMAT_VERSION);
    list_schema(out, file);
    thrift_i64(out, 3, (int64_t)file->total_rows);
    thrift_list(out, 4, THRIFT_STRUCT, file->group_count);
    write_bytes(file, out->data, out->count);
    write_bytes(file, file->groups.data, file->groups.count);
    out->count = 0; /* what follows is in the same structure */
    thrift_text(out, 6, "perfkit version " PERFKIT_VERSION " (build 0)");
    list_orders(out, file);
    thrift_stop(out);
    write_bytes(file, out->data, out->count);
    file->no_memory |= out->failed;
    for (size_t i = 0; i < sizeof length; i++)
        length[i] = (unsigned char)((file->offset - start) >> 8 * i);
    write_bytes(file, length, sizeof length);
    write_bytes(file, MAGIC, strlen(MAGIC));
}

/* ---- the interface --------------------------------------------------------------------------- */

enum prof_status parquet_open(const char *path, const char *shown,
                              const struct parquet_column *columns, size_t count,
                              struct parquet_file **out, struct prof_error *err)
{
    struct parquet_file *file = calloc(1, sizeof *file);
    *out = NULL;
    if (!file)
        return prof_out_of_memory(err);
    file->fd = -1;
    file->shown = strdup(shown);
    file->columns = calloc(count, sizeof *columns);
    file->chunks = calloc(count, sizeof *file->chunks);
    if (!file->shown || !file->columns || !file->chunks) {
        parquet_abandon(file);
        return prof_out_of_memory(err);
    }
    memcpy(file->columns, columns, count * sizeof *columns);
    file->column_count = count;
    file->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file->fd < 0) {
        enum prof_status status = prof_fail_errno(err, PROF_IO, "cannot write %s", shown);
        parquet_abandon(file);
        return status;
    }
    write_bytes(file, MAGIC, strlen(MAGIC));
    *out = file;
    return PROF_OK;
}

void parquet_null(struct parquet_file *file, size_t column)
{
    chunk_null(&file->chunks[column]);
}

void parquet_int(struct parquet_file *file, size_t column, int64_t value)
{
    chunk_int(&file->chunks[column], value);
}

void parquet_double(struct parquet_file *file, size_t column, double value)
{
    chunk_double(&file->chunks[column], value);
}

void parquet_text(struct parquet_file *file, size_t column, const char *text, size_t length)
{
    file->buffered += length;
    chunk_text(&file->chunks[column], text, length);
}

bool parquet_by_key(struct parquet_file *file, size_t column, int64_t key)
{
    return chunk_by_key(&file->chunks[column], key);
}

enum prof_status parquet_row(struct parquet_file *file, struct prof_error *err)
{
    file->rows++;
    file->total_rows++;
    if (file->rows == PARQUET_GROUP_ROWS || file->buffered > PARQUET_GROUP_BYTES) {
        write_group(file);
        file->buffered = 0;
    }
    return file->failed_errno || file->no_memory ? parquet_file_status(file, err) : PROF_OK;
}

enum prof_status parquet_close(struct parquet_file *file, struct prof_error *err)
{
    if (!file)
        return PROF_OK;
    write_group(file);
    write_footer(file);
    if (!file->failed_errno && fsync(file->fd))
        file->failed_errno = errno;
    if (close(file->fd) && !file->failed_errno)
        file->failed_errno = errno;
    file->fd = -1;
    enum prof_status status = parquet_file_status(file, err);
    parquet_abandon(file);
    return status;
}

void parquet_abandon(struct parquet_file *file)
{
    if (!file)
        return;
    if (file->fd >= 0)
        close(file->fd);
    for (size_t c = 0; c < file->column_count; c++)
        chunk_free(&file->chunks[c]);
    free(file->chunks);
    free(file->columns);
    free(file->shown);
    thrift_free(&file->groups);
    thrift_free(&file->header);
    prof_array_free(&file->page);
    free(file);
}
