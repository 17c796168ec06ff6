/* A cubin is an ELF file with a section of code for each function and DWARF 2 line programs whose
 * addresses are relocated to these sections (`nvcc -lineinfo`, Triton, NVRTC with the same option).
 * libdw knows neither the machine nor its relocations, and there is no other debug information than
 * the lines, so they are read here: the rows of the line programs, with the function that the last
 * relocated address belongs to. An extended operation of NVIDIA's names the row at whose line the
 * code was inlined; lines are given in the function itself, where a reader looks for them.
 *
 * The file was written by a foreign process: every offset is checked. */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "libprof/base/array.h"
#include "libprof/store/cubin.h"
#include "libprof/wire/sampler.h"

#define MOST_BYTES (512l << 20)
#define MOST_ROWS 50000000u
#define MOST_INLINED 64 /* levels */
#define OP_INLINED                                                                                 \
    0x90 /* extended operation: number of the row of the call, name; for all rows on */

struct line_row {
    uint32_t function; /* index of its section, 0 = none */
    uint32_t line, file, program;
    uint32_t sequence; /* index of its first row */
    uint64_t offset;
    uint32_t caller; /* number of a row of the same sequence, from 1; 0 = not inlined */
    bool end;        /* of the code that the rows before it describe */
};

struct line_program {
    const uint8_t *directories, *files, *end;
};

struct prof_cubin {
    uint8_t *data;
    size_t bytes;
    const Elf64_Shdr *sections; /* copied: the file's may lie unaligned */
    size_t section_count;
    PROF_ARRAY(struct line_row) rows;
    PROF_ARRAY(struct line_program) programs;
    /* Of the last function: its section and its rows. */
    char function[4096];
    uint32_t section;
    size_t first, end;
    char path[4096];
};

/* ---- sections */

static const uint8_t *section_data(const struct prof_cubin *cubin, const Elf64_Shdr *section)
{
    if (section->sh_type == SHT_NOBITS || section->sh_offset > cubin->bytes ||
        section->sh_size > cubin->bytes - section->sh_offset)
        return NULL;
    return cubin->data + section->sh_offset;
}

/* A text of a section of texts; "" when it has none there. */
static const char *text_at(const struct prof_cubin *cubin, size_t section, uint64_t at)
{
    const uint8_t *data =
        section < cubin->section_count ? section_data(cubin, &cubin->sections[section]) : NULL;
    uint64_t size = data ? cubin->sections[section].sh_size : 0;
    return at < size && memchr(data + at, '\0', size - at) ? (const char *)data + at : "";
}

static size_t section_named(const struct prof_cubin *cubin, size_t names, const char *prefix,
                            const char *name)
{
    size_t length = strlen(prefix);
    for (size_t i = 1; i < cubin->section_count; i++) {
        const char *text = text_at(cubin, names, cubin->sections[i].sh_name);
        if (strncmp(text, prefix, length) == 0 && strcmp(text + length, name) == 0)
            return i;
    }
    return 0;
}

static size_t section_names(const struct prof_cubin *cubin)
{
    Elf64_Ehdr head;
    memcpy(&head, cubin->data, sizeof head);
    return head.e_shstrndx;
}

static bool read_sections(struct prof_cubin *cubin)
{
    Elf64_Ehdr head;
    if (cubin->bytes < sizeof head)
        return false;
    memcpy(&head, cubin->data, sizeof head);
    if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 ||
        head.e_shentsize != sizeof(Elf64_Shdr) || head.e_shoff > cubin->bytes ||
        head.e_shnum > (cubin->bytes - head.e_shoff) / sizeof(Elf64_Shdr))
        return false;
    Elf64_Shdr *sections = calloc(head.e_shnum ? head.e_shnum : 1, sizeof *sections);
    if (!sections)
        return false;
    memcpy(sections, cubin->data + head.e_shoff, head.e_shnum * sizeof *sections);
    cubin->sections = sections;
    cubin->section_count = head.e_shnum;
    return true;
}

/* The section of the symbol that the 8 bytes at `at` of section `of` are relocated to; 0 = none. */
static uint32_t relocated_section(const struct prof_cubin *cubin, size_t of, uint64_t at,
                                  uint64_t *addend)
{
    for (size_t i = 1; i < cubin->section_count; i++) {
        const Elf64_Shdr *section = &cubin->sections[i];
        const uint8_t *data = section_data(cubin, section);
        bool rela = section->sh_type == SHT_RELA;
        size_t size = rela ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel);
        if ((!rela && section->sh_type != SHT_REL) || section->sh_info != of || !data ||
            section->sh_link >= cubin->section_count)
            continue;
        const Elf64_Shdr *symbols = &cubin->sections[section->sh_link];
        const uint8_t *symbol_data = section_data(cubin, symbols);
        for (uint64_t n = 0; symbol_data && n < section->sh_size / size; n++) {
            Elf64_Rela entry = {0};
            memcpy(&entry, data + n * size, size);
            if (entry.r_offset != at ||
                ELF64_R_SYM(entry.r_info) >= symbols->sh_size / sizeof(Elf64_Sym))
                continue;
            Elf64_Sym symbol;
            memcpy(&symbol, symbol_data + ELF64_R_SYM(entry.r_info) * sizeof symbol, sizeof symbol);
            *addend = symbol.st_value + (uint64_t)entry.r_addend;
            return symbol.st_shndx;
        }
    }
    return 0;
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
    size_t section; /* .debug_line */
    const uint8_t *start;
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

static void reset_row(struct machine *m)
{
    m->row = (struct line_row){.line = 1,
                               .file = 1,
                               .program = (uint32_t)m->cubin->programs.count - 1,
                               .sequence = (uint32_t)m->cubin->rows.count};
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
        uint64_t addend = 0;
        m->row.function =
            relocated_section(m->cubin, m->section, (uint64_t)(body.at - m->start), &addend);
        m->row.offset = take(&body, 8) + addend;
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
        m->row.file = (uint32_t)take_leb(in, false);
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

/* One unit of .debug_line; versions 2 to 4 are laid out alike but for a byte. */
static bool read_line_unit(struct prof_cubin *cubin, size_t section, const uint8_t *start,
                           struct bytes unit)
{
    struct machine m = {.cubin = cubin, .section = section, .start = start};
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
    struct line_program *program = prof_array_add(&cubin->programs);
    if (unit.bad || !program || !m.line_range || !m.first_special)
        return false;
    *program = (struct line_program){.directories = unit.at, .end = unit.end};
    while (*take_line_text(&unit)) {
    }
    program->files = unit.at;
    return !unit.bad && run_program(&m, code);
}

static bool read_lines(struct prof_cubin *cubin)
{
    size_t section = section_named(cubin, section_names(cubin), ".debug_line", "");
    const uint8_t *data = section ? section_data(cubin, &cubin->sections[section]) : NULL;
    if (!data)
        return true;
    struct bytes all = {data, data + cubin->sections[section].sh_size, false};
    while (all.end - all.at > 4) {
        uint64_t length = take(&all, 4);
        if (length > (uint64_t)(all.end - all.at))
            return false;
        if (!read_line_unit(cubin, section, data, (struct bytes){all.at, all.at + length, false}))
            return false;
        all.at += length;
    }
    return true;
}

/* ---- the answer */

static bool read_cubin(const char *path, struct prof_cubin *cubin)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return false;
    struct stat info;
    if (fstat(fileno(file), &info) == 0 && info.st_size > 0 && info.st_size <= MOST_BYTES)
        cubin->data = malloc((size_t)info.st_size);
    if (cubin->data)
        cubin->bytes = fread(cubin->data, 1, (size_t)info.st_size, file);
    fclose(file);
    return cubin->bytes > 0;
}

enum prof_status prof_cubin_open(const char *path, uint64_t hash, struct prof_cubin **out,
                                 struct prof_error *err)
{
    struct prof_cubin *cubin = calloc(1, sizeof *cubin);
    *out = NULL;
    if (!cubin)
        return prof_fail(err, PROF_NOMEM, "no memory for machine code");
    enum prof_status status = PROF_OK;
    if (!read_cubin(path, cubin) || wire_cubin_hash(cubin->data, cubin->bytes) != hash)
        status = prof_fail(err, PROF_NOTFOUND, "its machine code was not kept");
    else if (!read_sections(cubin) || !read_lines(cubin))
        status = prof_fail(err, PROF_FORMAT, "its machine code cannot be read");
    if (status)
        prof_cubin_close(cubin);
    else
        *out = cubin;
    return status;
}

void prof_cubin_close(struct prof_cubin *cubin)
{
    if (!cubin)
        return;
    free(cubin->data);
    free((void *)(uintptr_t)cubin->sections);
    prof_array_free(&cubin->rows);
    prof_array_free(&cubin->programs);
    free(cubin);
}

/* The path of a file of a program, by its number from 1. */
static bool file_path(struct prof_cubin *cubin, const struct line_row *row)
{
    const struct line_program *program = &cubin->programs.data[row->program];
    struct bytes in = {program->files, program->end, false};
    for (uint32_t number = 1; in.at < in.end && !in.bad; number++) {
        const char *name = take_line_text(&in);
        uint64_t directory = *name ? take_leb(&in, false) : 0;
        take_leb(&in, false); /* when it was changed, and its size */
        take_leb(&in, false);
        if (!*name || in.bad)
            return false;
        if (number != row->file)
            continue;
        struct bytes folders = {program->directories, program->files, false};
        const char *folder = "";
        for (uint64_t i = 1; i <= directory && !folders.bad; i++)
            folder = take_line_text(&folders);
        bool joined = *folder && *name != '/';
        int length = snprintf(cubin->path, sizeof cubin->path, "%s%s%s", joined ? folder : "",
                              joined ? "/" : "", name);
        return length > 0 && (size_t)length < sizeof cubin->path;
    }
    return false;
}

static void find_function(struct prof_cubin *cubin, const char *function)
{
    if (cubin->section && strcmp(function, cubin->function) == 0)
        return;
    snprintf(cubin->function, sizeof cubin->function, "%s", function);
    cubin->section = (uint32_t)section_named(cubin, section_names(cubin), ".text.", function);
    cubin->first = 0;
    while (cubin->first < cubin->rows.count &&
           cubin->rows.data[cubin->first].function != cubin->section)
        cubin->first++;
    cubin->end = cubin->rows.count;
    while (cubin->end > cubin->first && cubin->rows.data[cubin->end - 1].function != cubin->section)
        cubin->end--;
}

bool prof_cubin_line(struct prof_cubin *cubin, const char *function, uint64_t offset,
                     const char **file, uint32_t *line)
{
    const struct line_row *rows = cubin->rows.data, *row = NULL;
    find_function(cubin, function);
    for (size_t i = cubin->first; cubin->section && i + 1 < cubin->end; i++) {
        if (rows[i].function == cubin->section && !rows[i].end && rows[i].offset <= offset &&
            offset < rows[i + 1].offset && rows[i + 1].function == cubin->section)
            row = &rows[i];
    }
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
    find_function(cubin, function);
    const Elf64_Shdr *section = cubin->section ? &cubin->sections[cubin->section] : NULL;
    const uint8_t *code = section ? section_data(cubin, section) : NULL;
    for (unsigned back = 0; code && back <= 16 && offset >= back * INSTRUCTION_BYTES; back++) {
        uint64_t at = offset - back * INSTRUCTION_BYTES;
        uint16_t word = 0;
        if (at + sizeof word <= section->sh_size)
            memcpy(&word, code + at, sizeof word);
        if ((word & 0x1ffu) == OP_BARRIER)
            return at;
    }
    return offset;
}

uint32_t prof_cubin_symbol(struct prof_cubin *cubin, const char *function)
{
    find_function(cubin, function);
    for (size_t i = 1; cubin->section && i < cubin->section_count; i++) {
        const Elf64_Shdr *section = &cubin->sections[i];
        const uint8_t *data = section_data(cubin, section);
        if (section->sh_type != SHT_SYMTAB || !data)
            continue;
        for (uint64_t n = 1; n < section->sh_size / sizeof(Elf64_Sym); n++) {
            Elf64_Sym symbol;
            memcpy(&symbol, data + n * sizeof symbol, sizeof symbol);
            if (symbol.st_shndx == cubin->section && symbol.st_value == 0 &&
                ELF64_ST_TYPE(symbol.st_info) == STT_FUNC)
                return (uint32_t)n;
        }
    }
    return 0;
}
