/* Samples of instructions (perfkit run --stalls): by kernel, by line of the source, and the code
 * around the hottest instruction of the hottest kernels. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/columns.h"

ROW_CELL(stall_reason, prof_stall_row, stall,
         prof_report_text(stall->sums.stalled > 0 ? prof_stall_name(stall->sums.reason) : NULL))
ROW_CELL(stall_issued, prof_stall_row, stall,
         prof_report_real((double)stall->sums.of[PROF_STALL_SELECTED] /
                          (double)stall->sums.samples))

/* What of the stalls is not the first reason: "barrier 20 %". */
static struct prof_report_value stall_second(const struct prof_report_data *data, const void *row)
{
    const struct prof_stall_sums *sums = &((const struct prof_stall_row *)row)->sums;
    int second = -1;
    (void)data;
    for (int i = PROF_STALL_LONG_SCOREBOARD; i < PROF_STALL_REASONS; i++) {
        if (i != (int)sums->reason && sums->of[i] > 0 &&
            (second < 0 || sums->of[i] > sums->of[second]))
            second = i;
    }
    return prof_report_text(second < 0 ? NULL : prof_stall_name((enum prof_stall_reason)second));
}

static struct prof_report_value stall_second_share(const struct prof_report_data *data,
                                                   const void *row)
{
    const struct prof_stall_sums *sums = &((const struct prof_stall_row *)row)->sums;
    struct prof_report_value name = stall_second(data, row);
    for (int i = 0; name.text && i < PROF_STALL_REASONS; i++) {
        if (strcmp(name.text, prof_stall_name((enum prof_stall_reason)i)) == 0)
            return prof_report_real((double)sums->of[i] / (double)sums->samples);
    }
    return prof_report_real(NAN);
}

/* Every reason, for programs. */
#define REASON(key, slot) INT64(key, key, COUNT, 0, prof_stall_row, sums.of[PROF_STALL_##slot])
#define REASONS                                                                                    \
    REASON("selected", SELECTED), REASON("not_selected", NOT_SELECTED),                            \
        REASON("long_scoreboard", LONG_SCOREBOARD), REASON("short_scoreboard", SHORT_SCOREBOARD),  \
        REASON("wait", WAIT), REASON("barrier", BARRIER), REASON("math_pipe_throttle", MATH_PIPE), \
        REASON("mio_throttle", MIO), REASON("lg_throttle", LG), REASON("tex_throttle", TEX),       \
        REASON("no_instruction", NO_INSTRUCTION), REASON("dispatch_stall", DISPATCH),              \
        REASON("drain", DRAIN), REASON("membar", MEMBAR), REASON("branch_resolving", BRANCH),      \
        REASON("imc_miss", IMC), REASON("sleeping", SLEEPING), REASON("gmma", GMMA),               \
        REASON("warpgroup_arrive", WARPGROUP), REASON("misc", MISC), REASON("other", OTHER)
#define SUMS                                                                                       \
    INT64("samples", "Samples", COUNT, 2, prof_stall_row, sums.samples),                           \
        REAL("share", "Share", SHARE, 1, prof_stall_row, share)
#define WHY                                                                                        \
    COMPUTED("reason", "Waits for", WORD, 1, stall_reason),                                        \
        REAL("reason_share", "Of it", SHARE, 1, prof_stall_row, sums.reason_share),                \
        COMPUTED("second_reason", "Then", WORD, 5, stall_second),                                  \
        COMPUTED("second_share", "Of it", SHARE, 6, stall_second_share),                           \
        INT64("not_issued", "Not issued", COUNT, 0, prof_stall_row, sums.not_issued)
#define PLACE                                                                                      \
    STRING("file", "File", NAME, 0, prof_stall_row, file),                                         \
        INT64("line", "Line number", NUMBER, 0, prof_stall_row, line)

static const struct prof_report_column stall_columns[] = {
    SUMS,
    WHY,
    COMPUTED("issued_share", "Issued", SHARE, 3, stall_issued),
    INT64("instructions", "Instructions", COUNT, 0, prof_stall_row, instructions),
    REASONS,
    PLACE,
    STRING("no_lines", "Why no lines", PROSE, 0, prof_stall_row, no_lines),
    STRING("where", "Mostly at", NAME, 2, prof_stall_row, where),
    STRING("name", "Kernel", NAME, 1, prof_stall_row, name),
    {0},
};

static void stall_totals(const struct prof_report_data *data, char *out, size_t size)
{
    snprintf(out, size, "%s samples of warps in %s kernel%s", prof_count(data->stalls.samples).text,
             prof_count((int64_t)data->stalls.count).text, data->stalls.count == 1 ? "" : "s");
}

/* What the most frequent reasons mean, each once. */
static void stall_notes(const struct prof_report_data *data, struct prof_report_notes *notes)
{
    bool told[PROF_STALL_REASONS] = {false};
    for (size_t i = 0; i < data->stalls.count && i < 5 && notes->count < 4; i++) {
        const struct prof_stall_sums *sums = &data->stalls.rows[i].sums;
        if (!sums->stalled || told[sums->reason])
            continue;
        told[sums->reason] = true;
        snprintf(notes->text[notes->count++], PROF_REPORT_NOTE_BYTES, "%s: waits for %s",
                 prof_stall_name(sums->reason), prof_stall_text(sums->reason));
    }
}

const struct prof_report_table prof_report_stalls_table = {
    .name = "stalls",
    .part = PROF_PART_KERNELS,
    .part_order = 2,
    .title = "Stalls of kernels",
    .none = "no instructions were sampled (--stalls)",
    .unfolds = true,
    .help = "What warps waited for when they were sampled, of all samples of the kernel; the "
            "share of a kernel in all samples grows with its time and its warps.",
    .screen_rows = 10,
    .first_rows = 5,
    .optional = true,
    .needs = "--stalls",
    .name_cells = PROF_REPORT_KERNEL_CELLS,
    .totals = stall_totals,
    .notes = stall_notes,
    ROWS(prof_stall_row, stall, stalls.rows, stalls.count),
};

/* ---- lines */

static const struct prof_report_column stall_line_columns[] = {
    REAL("share", "Of kernel", SHARE, 1, prof_stall_row, share),
    INT64("samples", "Samples", COUNT, 2, prof_stall_row, sums.samples),
    WHY,
    REASONS,
    STRING("where", "Line", NAME, 1, prof_stall_row, where),
    PLACE,
    INT64("instructions", "Instructions", COUNT, 0, prof_stall_row, instructions),
    INT64("offset", "Offset", NUMBER, 0, prof_stall_row, offset),
    STRING("sass", "Hottest instruction", NAME, 4, prof_stall_row, sass),
    STRING("name", "Kernel", NAME, 1, prof_stall_row, name),
    {0},
};

const struct prof_report_table prof_report_stall_lines_table = {
    .name = "stall_lines",
    .part = PROF_PART_KERNELS,
    .part_order = 3,
    .title = "Lines at which kernels wait",
    .none = "no instructions were sampled (--stalls)",
    .help = "The line is that of the instruction that could not go on, which "
            "uses what an earlier one loads; of inlined functions that of the call in the kernel.",
    .screen_rows = 20,
    .first_rows = 6,
    .optional = true,
    .needs = "--stalls",
    ROWS(prof_stall_row, stall_line, stalls.lines, stalls.line_count),
};

/* ---- code */

static const struct prof_report_column stall_code_columns[] = {
    REAL("share", "Of kernel", SHARE, 1, prof_stall_row, share),
    INT64("samples", "Samples", COUNT, 3, prof_stall_row, sums.samples),
    WHY,
    REASONS,
    INT64("offset", "Offset in bytes", NUMBER, 0, prof_stall_row, offset),
    STRING("address", "Offset", WORD, 1, prof_stall_row, address),
    STRING("sass", "Instruction", NAME, 1, prof_stall_row, sass),
    STRING("where", "Line", NAME, 2, prof_stall_row, where),
    PLACE,
    STRING("name", "Kernel", NAME, 4, prof_stall_row, name),
    {0},
};

static bool stall_code_worth(const struct prof_report_data *data)
{
    return data->filter && (data->filter->kernel || data->filter->kernel_pattern);
}

const struct prof_report_table prof_report_stall_code_table = {
    .name = "stall_code",
    .part = PROF_PART_KERNELS,
    .part_order = 4,
    .title = "Code around the hottest instruction",
    .none = "no instructions were sampled (--stalls)",
    .help = "Sampled instructions beside the one with most samples, of the kernels with most "
            "samples; their text where nvdisasm was installed when it was recorded.",
    .screen_rows = 22,
    .first_rows = 22,
    .optional = true,
    .worth = stall_code_worth,
    .needs = "--stalls",
    .name_cells = 40,
    ROWS(prof_stall_row, stall_code, stall_code, stall_code_count),
};
