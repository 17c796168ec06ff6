/* A cubin is an ELF file with a section of code for each function and DWARF 2 line programs whose
 * addresses are relocated to these sections (`nvcc -lineinfo`, Triton, NVRTC with the same option).
 * libdw knows neither the machine nor its relocations, and there is no other debug information than
 * the lines, so they are read here: the rows of the line programs, with the function that the last
 * relocated address belongs to. An extended operation of NVIDIA's names the row at whose line the
 * code was inlined; lines are given in the function itself, where a reader looks for them.
 *
 * The file was written by a foreign process: every offset is checked. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/array.h"
#include "libprof/base/elf_image.h"
#include "libprof/base/regular.h"
#include "libprof/store/cubin.h"
#include "libprof/wire/sampler.h"

/* More of them is not read: a few bytes of a file can make many. */
#define MOST_ROWS 4000000u
#define MOST_FILES 1000000u
#define MOST_RELOCATIONS 4000000u
#define MOST_INLINED 64 /* levels */
#define MOST_NAME 4096
#define OP_INLINED                                                                                 \
    0x90 /* extended operation: number of the row of the call, name; for all rows on */

struct line_row {
    uint64_t offset;
    uint32_t function; /* index of its section, 0 = none */
    uint32_t line;
    uint32_t file;     /* index of files from 1, 0 = none */
    uint32_t sequence; /* index of its first row */
    uint32_t caller;   /* number of a row of the same sequence, from 1; 0 = not inlined */
    bool end;          /* of the code that the rows before it describe */
};

/* The code of a row that has any, which ends where the next row begins. */
struct line_range {
    uint64_t offset;
    uint32_t function, row;
};

struct line_file {
    const char *folder, *name;
};

/* Of the 8 bytes at `at` of .debug_line. */
struct relocation {
    uint64_t at, addend;
    uint32_t section;
};

struct prof_cubin {
    uint8_t *data;
    struct elf_image image;
    PROF_ARRAY(struct line_row) rows;
    PROF_ARRAY(struct line_range) ranges; /* in order */
    PROF_ARRAY(struct line_file) files;
    PROF_ARRAY(const char *) folders;          /* of the program that is being read */
    PROF_ARRAY(struct relocation) relocations; /* in order */
    char *function;                            /* the last one: name of its section */
    uint32_t section;                          /* and the number, 0 = none */
    char path[MOST_NAME];
};

/* ---- relocations */

PROF_ORDER(by_relocated, struct relocation, PROF_ASCENDING(at))

static bool read_relocations(struct prof_cubin *cubin, uint32_t of)
{
    Elf64_Shdr section, symbols;
    for (uint32_t i = 1; elf_image_section(&cubin->image, i, &section); i++) {
        bool rela = section.sh_type == SHT_RELA;
        size_t size = rela ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel);
        const uint8_t *data = elf_image_bytes(&cubin->image, &section), *symbol_data;
        if ((!rela && section.sh_type != SHT_REL) || section.sh_info != of || !data ||
            !elf_image_section(&cubin->image, section.sh_link, &symbols) ||
            !(symbol_data = elf_image_bytes(&cubin->image, &symbols)))
            continue;
        for (uint64_t n = 0; n < section.sh_size / size; n++) {
            Elf64_Rela entry = {0};
            Elf64_Sym symbol;
            memcpy(&entry, data + n * size, size);
            if (cubin->relocations.count == MOST_RELOCATIONS)
                return false;
            if (ELF64_R_SYM(entry.r_info) >= symbols.sh_size / sizeof symbol)
                continue;
            memcpy(&symbol, symbol_data + ELF64_R_SYM(entry.r_info) * sizeof symbol, sizeof symbol);
            if (!prof_array_push(&cubin->relocations,
                                 (struct relocation){
                                     entry.r_offset,
                                     symbol.st_value + (uint64_t)entry.r_addend,
                                     symbol.st_shndx,
                                 }))
                return false;
        }
    }
    prof_array_sort(&cubin->relocations, by_relocated);
    return true;
}

/* ---- line programs */

struct bytes {
    const uint8_t *at, *end;
    bool bad; /* it ended too early */
};

static uint64_t take(struct bytes *in, size_t count)
{
    uint64_t value = 0;
    if ((size_t)(in->end - in->at) < count) {
        in->bad = true;
        in->at = in->end;
        return 0;
    }
    memcpy(&value, in->at, count);
    in->at += count;
    return value;
}

static uint64_t take_leb(struct bytes *in, bool is_signed)
{
    uint64_t value = 0;
    unsigned shift = 0;
    for (;;) {
        uint8_t byte = (uint8_t)take(in, 1);
        if (shift < 64)
            value |= (uint64_t)(byte & 127u) << shift;
        shift += 7;
        if (byte & 128u)
            continue;
        if (is_signed && shift < 64 && byte & 64u)
            value |= ~0ull << shift;
        return value;
    }
}

static const char *take_line_text(struct bytes *in)
{
    const uint8_t *zero = memchr(in->at, '\0', (size_t)(in->end - in->at)), *text = in->at;
    in->bad |= !zero;
    in->at = zero ? zero + 1 : in->end;
    return zero ? (const char *)text : "";
}

/* The programs that are run: of one version, with its header's numbers. */
struct machine {
    struct prof_cubin *cubin;
    const uint8_t *start; /* of .debug_line */
    size_t files;         /* of other programs */
    struct line_row row;
    uint8_t step, line_range, first_special;
    int8_t line_base;
    uint8_t lengths[256];
};

static bool emit_row(struct machine *m, bool end)
{
    struct line_row *row =
        m->cubin->rows.count < MOST_ROWS ? prof_array_add(&m->cubin->rows) : NULL;
    if (row)
        *row = m->row;
    if (row)
        row->end = end;
    return row != NULL;
}

static void set_file(struct machine *m, uint64_t number)
{
    bool there = number && number <= m->cubin->files.count - m->files;
    m->row.file = there ? (uint32_t)(m->files + number) : 0;
}

static void reset_row(struct machine *m)
{
    m->row = (struct line_row){.line = 1, .sequence = (uint32_t)m->cubin->rows.count};
    set_file(m, 1);
}

static void set_address(struct machine *m, struct bytes *in)
{
    const struct relocation key = {.at = (uint64_t)(in->at - m->start)};
    const struct relocation *found =
        m->cubin->relocations.count ? bsearch(&key, m->cubin->relocations.data,
                                              m->cubin->relocations.count, sizeof key, by_relocated)
                                    : NULL;
    m->row.function = found ? found->section : 0;
    m->row.offset = take(in, 8) + (found ? found->addend : 0);
}

static bool run_extended(struct machine *m, struct bytes *in)
{
    uint64_t length = take_leb(in, false);
    if (length == 0 || length > (uint64_t)(in->end - in->at))
        return false;
    struct bytes body = {in->at, in->at + length, false};
    in->at += length;
    uint8_t operation = (uint8_t)take(&body, 1);
    if (operation == 1) { /* end_sequence */
        bool ok = emit_row(m, true);
        reset_row(m);
        return ok;
    }
    if (operation == 2 && length == 9) { /* set_address */
        set_address(m, &body);
    } else if (operation == OP_INLINED) {
        m->row.caller = (uint32_t)take_leb(&body, false);
    }
    return true;
}

static bool run_standard(struct machine *m, struct bytes *in, uint8_t operation)
{
    switch (operation) {
    case 1: /* copy */
        return emit_row(m, false);
    case 2: /* advance_pc */
        m->row.offset += take_leb(in, false) * m->step;
        return true;
    case 3: /* advance_line */
        m->row.line += (uint32_t)take_leb(in, true);
        return true;
    case 4: /* set_file */
        set_file(m, take_leb(in, false));
        return true;
    case 8: /* const_add_pc */
        m->row.offset += (uint64_t)((255 - m->first_special) / m->line_range) * m->step;
        return true;
    case 9: /* fixed_advance_pc */
        m->row.offset += take(in, 2);
        return true;
    default:
        for (unsigned i = 0; i < m->lengths[operation]; i++)
            take_leb(in, false);
        return true;
    }
}

static bool run_program(struct machine *m, struct bytes in)
{
    reset_row(m);
    while (in.at < in.end && !in.bad) {
        uint8_t operation = (uint8_t)take(&in, 1);
        if (operation >= m->first_special) {
            unsigned special = (unsigned)operation - m->first_special;
            m->row.offset += (uint64_t)(special / m->line_range) * m->step;
            m->row.line += (uint32_t)(m->line_base + (int)(special % m->line_range));
            if (!emit_row(m, false))
                return false;
        } else if (operation == 0 ? !run_extended(m, &in) : !run_standard(m, &in, operation)) {
            return false;
        }
    }
    return !in.bad;
}

/* The folders and files of a program, each list ended by an empty name. */
static bool read_files(struct prof_cubin *cubin, struct bytes *in)
{
    const char *name;
    cubin->folders.count = 0;
    while (*(name = take_line_text(in))) {
        if (cubin->folders.count == MOST_FILES || !prof_array_push(&cubin->folders, name))
            return false;
    }
    while (*(name = take_line_text(in))) {
        uint64_t folder = take_leb(in, false);
        take_leb(in, false); /* when it was changed, and its size */
        take_leb(in, false);
        bool there = folder && folder <= cubin->folders.count;
        if (cubin->files.count == MOST_FILES ||
            !prof_array_push(
                &cubin->files,
                (struct line_file){there ? cubin->folders.data[folder - 1] : "", name}))
            return false;
    }
    return !in->bad;
}

/* One unit of .debug_line; versions 2 to 4 are laid out alike but for a byte. */
static bool read_line_unit(struct prof_cubin *cubin, const uint8_t *start, struct bytes unit)
{
    struct machine m = {.cubin = cubin, .start = start, .files = cubin->files.count};
    uint64_t version = take(&unit, 2), header = take(&unit, 4);
    if (version < 2 || version > 4 || header > (uint64_t)(unit.end - unit.at))
        return false;
    struct bytes code = {unit.at + header, unit.end, false};
    unit.end = code.at;
    m.step = (uint8_t)take(&unit, 1);
    take(&unit, version == 4 ? 2 : 1); /* operations of an instruction; rows are statements */
    m.line_base = (int8_t)take(&unit, 1);
    m.line_range = (uint8_t)take(&unit, 1);
    m.first_special = (uint8_t)take(&unit, 1);
    for (unsigned i = 1; i < m.first_special; i++)
        m.lengths[i] = (uint8_t)take(&unit, 1);
    return !unit.bad && m.line_range && m.first_special && read_files(cubin, &unit) &&
           run_program(&m, code);
}

PROF_ORDER(by_line_range, struct line_range, PROF_ASCENDING(function), PROF_ASCENDING(offset),
           PROF_ASCENDING(row))

static bool order_rows(struct prof_cubin *cubin)
{
    const struct line_row *rows = cubin->rows.data;
    for (size_t i = 0; i + 1 < cubin->rows.count; i++) {
        if (rows[i].function && !rows[i].end && rows[i + 1].function == rows[i].function &&
            rows[i + 1].offset > rows[i].offset &&
            !prof_array_push(&cubin->ranges,
                             (struct line_range){rows[i].offset, rows[i].function, (uint32_t)i}))
            return false;
    }
    prof_array_sort(&cubin->ranges, by_line_range);
    return true;
}

static bool read_lines(struct prof_cubin *cubin)
{
    Elf64_Shdr section;
    uint32_t number = elf_image_find(&cubin->image, ".debug_line", &section);
    const uint8_t *data = number ? elf_image_bytes(&cubin->image, &section) : NULL;
    if (!data)
        return true;
    struct bytes all = {data, data + section.sh_size, false};
    if (!read_relocations(cubin, number))
        return false;
    while (all.end - all.at > 4) {
        uint64_t length = take(&all, 4);
        if (length > (uint64_t)(all.end - all.at) ||
            !read_line_unit(cubin, data, (struct bytes){all.at, all.at + length, false}))
            return false;
        all.at += length;
    }
    return order_rows(cubin);
}

/* ---- the answer */

enum prof_status prof_cubin_of(uint8_t *data, size_t bytes, struct prof_cubin **out,
                               struct prof_error *err)
{
    struct prof_cubin *cubin = *out = calloc(1, sizeof *cubin);
    if (!cubin) {
        free(data);
        return prof_fail(err, PROF_NOMEM, "no memory for machine code");
    }
    cubin->data = data;
    if (!elf_image_of(data, bytes, &cubin->image) && read_lines(cubin))
        return PROF_OK;
    prof_cubin_close(cubin);
    *out = NULL;
    return prof_fail(err, PROF_FORMAT, "its machine code cannot be read");
}

enum prof_status prof_cubin_open(const char *path, uint64_t hash, struct prof_cubin **out,
                                 struct prof_error *err)
{
    uint8_t *data = NULL;
    size_t bytes = 0;
    struct stat info;
    *out = NULL;
    int fd = prof_open_regular(AT_FDCWD, path, O_RDONLY | O_NOFOLLOW);
    PROF_FILE_CLOSED FILE *file = fd < 0 ? NULL : fdopen(fd, "rb");
    if (file && fstat(fd, &info) == 0 && info.st_size > 0 && info.st_size <= WIRE_CUBIN_BYTES)
        data = malloc((size_t)info.st_size);
    if (data)
        bytes = fread(data, 1, (size_t)info.st_size, file);
    else if (fd >= 0)
        close(fd);
    if (bytes && wire_cubin_hash(data, bytes) == hash)
        return prof_cubin_of(data, bytes, out, err);
    free(data);
    return prof_fail(err, PROF_NOTFOUND, "its machine code was not kept");
}

void prof_cubin_close(struct prof_cubin *cubin)
{
    if (!cubin)
        return;
    free(cubin->data);
    free(cubin->function);
    prof_array_free(&cubin->rows);
    prof_array_free(&cubin->ranges);
    prof_array_free(&cubin->files);
    prof_array_free(&cubin->folders);
    prof_array_free(&cubin->relocations);
    free(cubin);
}

static bool file_path(struct prof_cubin *cubin, const struct line_row *row)
{
    if (!row->file)
        return false;
    const struct line_file *file = &cubin->files.data[row->file - 1];
    bool joined = *file->folder && *file->name != '/';
    int length = snprintf(cubin->path, sizeof cubin->path, "%.*s%s%.*s", MOST_NAME,
                          joined ? file->folder : "", joined ? "/" : "", MOST_NAME, file->name);
    return length > 0 && (size_t)length < sizeof cubin->path;
}

static void find_function(struct prof_cubin *cubin, const char *function)
{
    Elf64_Shdr section;
    const char prefix[] = ".text.";
    if (cubin->function && strcmp(function, cubin->function + sizeof prefix - 1) == 0)
        return;
    size_t bytes = sizeof prefix + strlen(function);
    free(cubin->function);
    cubin->function = malloc(bytes);
    if (cubin->function)
        snprintf(cubin->function, bytes, "%s%s", prefix, function);
    cubin->section = cubin->function ? elf_image_find(&cubin->image, cubin->function, &section) : 0;
}

bool prof_cubin_line(struct prof_cubin *cubin, const char *function, uint64_t offset,
                     const char **file, uint32_t *line)
{
    const struct line_row *rows = cubin->rows.data;
    const struct line_range *ranges = cubin->ranges.data;
    size_t after;
    find_function(cubin, function);
    PROF_FIND_FIRST(after, i, cubin->ranges.count,
                    ranges[i].function > cubin->section ||
                        (ranges[i].function == cubin->section && ranges[i].offset > offset))
    if (!cubin->section || !after || ranges[after - 1].function != cubin->section)
        return false;
    const struct line_row *row = &rows[ranges[after - 1].row];
    if (offset >= row[1].offset)
        return false;
    for (int level = 0; row && row->caller && level < MOST_INLINED; level++) {
        size_t at = (size_t)row->sequence + row->caller - 1;
        bool there = at < cubin->rows.count && rows[at].sequence == row->sequence;
        row = there ? &rows[at] : NULL;
    }
    if (!row || !file_path(cubin, row))
        return false;
    *file = cubin->path;
    *line = row->line;
    return true;
}

#define INSTRUCTION_BYTES 16u /* since Volta */
#define OP_BARRIER 0x11du     /* BAR, in the low 9 bits; the next 3 say what its operands are */

uint64_t prof_cubin_barrier(struct prof_cubin *cubin, const char *function, uint64_t offset)
{
    Elf64_Shdr section;
    find_function(cubin, function);
    bool there = cubin->section && elf_image_section(&cubin->image, cubin->section, &section);
    const uint8_t *code = there ? elf_image_bytes(&cubin->image, &section) : NULL;
    for (unsigned back = 0; code && back <= 16 && offset >= back * INSTRUCTION_BYTES; back++) {
        uint64_t at = offset - back * INSTRUCTION_BYTES;
        uint16_t word = 0;
        if (at < section.sh_size && section.sh_size - at >= sizeof word)
            memcpy(&word, code + at, sizeof word);
        if ((word & 0x1ffu) == OP_BARRIER)
            return at;
    }
    return offset;
}

uint32_t prof_cubin_symbol(struct prof_cubin *cubin, const char *function)
{
    Elf64_Shdr table;
    uint32_t number = elf_image_find(&cubin->image, ".symtab", &table);
    const uint8_t *data = number ? elf_image_bytes(&cubin->image, &table) : NULL;
    find_function(cubin, function);
    for (uint32_t n = 1; data && cubin->section && n < table.sh_size / sizeof(Elf64_Sym); n++) {
        Elf64_Sym symbol;
        memcpy(&symbol, data + n * sizeof symbol, sizeof symbol);
        if (symbol.st_shndx == cubin->section && symbol.st_value == 0 &&
            ELF64_ST_TYPE(symbol.st_info) == STT_FUNC)
            return n;
    }
    return 0;
}
