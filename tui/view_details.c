/* Views that need single events: the NVTX ranges and the findings, of a growing capture of the end
 * that a look can afford. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/format.h"
#include "libprof/base/saturate.h"
#include "report/findings.h"
#include "tui/views.h"

/* ---- NVTX ranges ----------------------------------------------------------------------------- */

#define RANGE_COLUMNS(COLUMN)                                                                      \
    COLUMN(R_NAME, "name", "NVTX range", NAME, 0, 0)                                               \
    COLUMN(R_TOTAL, "gpu_ns", "GPU time", NS, 9, 0)                                                \
    COLUMN(R_SHARE, "gpu_share", "share", SHARE, 7, 0)                                             \
    COLUMN(R_SELF, "self_gpu_ns", "self", NS, 9, 0)                                                \
    COLUMN(R_COUNT, "operations", "operations", COUNT, 11, 1)                                      \
    COLUMN(R_KERNELS, "depth", NULL, COUNT, 0, 0)
TUI_COLUMNS(range_columns, RANGE_COLUMNS)

struct tree {
    const struct prof_flame *flame;
    int64_t *self;  /* device time of what was called in the node itself */
    int64_t *count; /* operations in it and below */
    size_t *next;   /* siblings, SIZE_MAX at the end */
    size_t *child;
};

static bool node_is_container(const struct prof_flame_node *node)
{
    return node->kind == PROF_FLAME_ROOT || node->kind == PROF_FLAME_PROCESS ||
           node->kind == PROF_FLAME_RANGE;
}

static bool plant(struct tree *tree, const struct prof_flame *flame)
{
    size_t count = flame->count;
    *tree = (struct tree){flame, calloc(count, sizeof(int64_t)), calloc(count, sizeof(int64_t)),
                          malloc(count * sizeof(size_t)), malloc(count * sizeof(size_t))};
    if (!tree->self || !tree->count || !tree->next || !tree->child)
        return false;
    for (size_t i = 0; i < count; i++)
        tree->next[i] = tree->child[i] = SIZE_MAX;
    for (size_t i = count; i-- > 1;) { /* parents are before their children */
        size_t parent = flame->nodes[i].parent;
        tree->count[i] = prof_add(tree->count[i], flame->nodes[i].count);
        tree->count[parent] = prof_add(tree->count[parent], tree->count[i]);
        if (!node_is_container(&flame->nodes[i])) {
            tree->self[i] = prof_add(tree->self[i], flame->nodes[i].self);
            tree->self[parent] = prof_add(tree->self[parent], tree->self[i]);
            continue;
        }
        tree->next[i] = tree->child[parent];
        tree->child[parent] = i;
    }
    return true;
}

static void fell(struct tree *tree)
{
    free(tree->self);
    free(tree->count);
    free(tree->next);
    free(tree->child);
}

static size_t largest_child(struct tree *tree, size_t node)
{
    size_t best = SIZE_MAX, *link = NULL;
    for (size_t *at = &tree->child[node]; *at != SIZE_MAX; at = &tree->next[*at]) {
        if (best == SIZE_MAX || tree->flame->nodes[*at].total > tree->flame->nodes[best].total) {
            best = *at;
            link = at;
        }
    }
    if (link)
        *link = tree->next[best];
    return best;
}

static void add_range_node(struct tui_table *table, const struct tree *tree, size_t i, int depth,
                           const struct tui_model *model)
{
    const struct prof_flame_node *node = &tree->flame->nodes[i];
    double all = (double)tree->flame->nodes[0].total;
    tui_table_row(table, (int64_t)i, depth,
                  node->kind == PROF_FLAME_RANGE ? TUI_NORMAL : TUI_STRONG);
    if (node->kind == PROF_FLAME_PROCESS) {
        const struct tui_process *p = tui_model_process(model, node->process);
        tui_table_format(table, R_NAME, "process %lld", (long long)(p ? p->values.pid : 0));
    } else
        tui_table_text(table, R_NAME,
                       node->kind == PROF_FLAME_ROOT ? "(all device work)" : node->name);
    tui_table_number(table, R_TOTAL, node->total);
    tui_table_real(table, R_SHARE, all > 0 ? (double)node->total / all : NAN);
    tui_table_number(table, R_SELF, tree->self[i]);
    tui_table_number(table, R_COUNT, tree->count[i]);
    tui_table_number(table, R_KERNELS, depth);
}

#define MOST_RANGES 2000
#define MOST_DEPTH 64

static void add_range_subtree(struct tui_table *table, struct tree *tree, size_t node, int depth,
                              const struct tui_model *model)
{
    add_range_node(table, tree, node, depth, model);
    for (size_t child; depth < MOST_DEPTH && table->rows.count < MOST_RANGES &&
                       (child = largest_child(tree, node)) != SIZE_MAX;)
        add_range_subtree(table, tree, child, depth + 1, model);
}

bool tui_has_events(struct tui_table *table, const struct tui_view_input *input)
{
    if (!input->tail && input->model->phase == TUI_LET_GO)
        tui_table_note(table, "The capture is being finished: its events are shown in a moment");
    else if (!input->tail && input->model->ever_read)
        tui_table_note(table, "n/a: the file cannot be read at present");
    return input->tail != NULL;
}

void tui_note_extent(struct tui_table *table, const struct tui_view_input *input, const char *what)
{
    int64_t begin = input->filter.begin_ns, now = input->model->now_ns;
    if (begin && now != PROF_UNKNOWN)
        tui_table_note(table, "%s the last %s (`perfkit report` reads all of it)", what,
                       prof_duration_ns(now > begin ? now - begin : 0).text);
}

void tui_fill_ranges(struct tui_table *table, const struct tui_view_input *input)
{
    struct prof_flame flame;
    struct tree tree;
    struct prof_error err = {0};
    tui_table_begin(table, range_columns, sizeof range_columns / sizeof *range_columns);
    table->in_order = true;
    if (!tui_has_events(table, input))
        return;
    if (prof_flame_of_ranges(input->tail, &input->filter, PROF_FLAME_DEVICE_NS, &flame, &err)) {
        tui_table_failure(table, &err);
        return;
    }
    if (flame.count && plant(&tree, &flame)) {
        add_range_subtree(table, &tree, 0, 0, input->model);
        fell(&tree);
    }
    prof_flame_free(&flame);
    tui_note_extent(table, input, "Device work of");
}

/* ---- findings -------------------------------------------------------------------------------- */

/* The phase is known where several were analysed. F_ORDER is the report's order. */
#define FINDING_COLUMNS(COLUMN)                                                                    \
    COLUMN(F_LEVEL, "severity", "", WORD, 8, 0)                                                    \
    COLUMN(F_RULE, "rule", "Finding", WORD, 19, 0)                                                 \
    COLUMN(F_SAVES, "bound_ns", "at most", NS, 9, 0)                                               \
    COLUMN(F_SHARE, "bound_share", "share", SHARE, 7, 0)                                           \
    COLUMN(F_ALL, "rule_bound_ns", "all phases", NS, 10, 0, .if_known = true)                      \
    COLUMN(F_ALONE, "alone_ns", "alone", NS, 9, 1, .if_known = true)                               \
    COLUMN(F_PHASE, "phase", "phase", WORD, 20, 0, .if_known = true)                               \
    COLUMN(F_TITLE, "title", "what it is", NAME, 0, 1)                                             \
    COLUMN(F_SEEN, "seen", "what was seen", NAME, 60, 2)                                           \
    COLUMN(F_ORDER, NULL, NULL, COUNT, 0, 0)
TUI_COLUMNS(finding_columns, FINDING_COLUMNS)

static const char *const levels[] = {"info", "warning", "critical"};

/* Of a rule, a phase and a device: findings come and go between two looks, and change their order.
 */
static int64_t finding_id(const struct prof_finding *finding)
{
    uint64_t rule = 0;
    while (prof_rule_page((size_t)rule) && prof_rule_page((size_t)rule) != finding->rule)
        rule++;
    return (int64_t)(rule << 48 ^ (uint64_t)finding->phase << 32 ^ (uint64_t)finding->device);
}

static void note_analysed(struct tui_table *table, const struct tui_view_input *input,
                          const struct prof_findings *findings)
{
    const struct prof_phase_row *phase = findings->phases;
    char repeats[120] = "";
    if (findings->phase_count > 1)
        snprintf(repeats, sizeof repeats, " in %s phases",
                 prof_count((int64_t)findings->phase_count).text);
    else if (findings->phase_count && phase->iterations && phase->name)
        snprintf(repeats, sizeof repeats, ", %s of \"%.60s\"",
                 prof_counted(phase->iterations, "iteration", "iterations").text, phase->name);
    else if (findings->phase_count && phase->iterations)
        snprintf(repeats, sizeof repeats, ", %s by the period of the launches",
                 prof_counted(phase->iterations, "iteration", "iterations").text);
    tui_table_note(table, "Analysed: %s from %s on%s", prof_duration_ns(findings->window_ns).text,
                   prof_duration_ns(findings->phase_count ? findings->phases->begin_ns : 0).text,
                   repeats);
    if (findings->overhead.in_part)
        tui_table_note(table, "Recording overhead: iterations take at least %.2fx as long",
                       findings->overhead.low);
    else if (findings->overhead.source != PROF_OVERHEAD_UNKNOWN)
        tui_table_note(table, "Recording overhead: iterations take %.2fx [%.2f, %.2f] as long",
                       findings->overhead.ratio, findings->overhead.low, findings->overhead.high);
    tui_note_extent(table, input, "Looked at were");
}

/* NULL where only one was analysed. */
static const char *finding_phase_name(const struct prof_findings *findings,
                                      const struct prof_finding *f)
{
    return findings->phase_count > 1 ? findings->phases[f->phase].name : NULL;
}

void tui_fill_findings(struct tui_table *table, const struct tui_view_input *input)
{
    static const enum tui_style styles[] = {TUI_NORMAL, TUI_WARN, TUI_BAD};
    struct prof_findings findings;
    struct prof_error err = {0};
    tui_table_begin(table, finding_columns, sizeof finding_columns / sizeof *finding_columns);
    table->sort = F_ORDER;
    if (!tui_has_events(table, input))
        return;
    if (prof_findings(input->tail, &input->filter, &findings, &err)) {
        tui_table_failure(table, &err);
        return;
    }
    for (size_t i = 0; i < findings.count; i++) {
        const struct prof_finding *f = &findings.rows[i];
        bool first = prof_report_finding_is_worst_phase(&findings, f);
        tui_table_row(table, finding_id(f), 0, styles[f->severity]);
        tui_table_text(table, F_LEVEL, levels[f->severity]);
        tui_table_rank(table, F_LEVEL, f->severity);
        tui_table_text(table, F_TITLE, f->rule->title);
        if (f->phases > 1 && first)
            tui_table_number(table, F_ALL, f->rule_bound_ns);
        else
            tui_table_blank(table, F_ALL);
        if (f->alone_ns != f->bound_ns)
            tui_table_number(table, F_ALONE, f->alone_ns);
        else
            tui_table_blank(table, F_ALONE);
        tui_table_number(table, F_SAVES, f->bound_ns);
        tui_table_real(table, F_SHARE, f->bound_share);
        tui_table_text(table, F_PHASE, finding_phase_name(&findings, f));
        tui_table_text(table, F_SEEN, f->seen);
        tui_table_text(table, F_RULE, f->rule->id);
        tui_table_number(table, F_ORDER, (int64_t)(findings.count - i));
    }
    if (findings.why_none)
        tui_table_note(table, "Nothing was analysed: %s", findings.why_none);
    else if (!findings.count)
        tui_table_note(table, "No rule found anything.");
    if (findings.abstention_count)
        tui_table_note(table, "%s not checked: data is missing",
                       prof_counted((int64_t)findings.abstention_count, "rule", "rules").text);
    if (!findings.why_none)
        note_analysed(table, input, &findings);
    prof_findings_free(&findings);
}

/* At words, for pages that have no other way to be wider than the screen. title: NULL = it goes on
 * what is above it. */
static void paragraph(struct tui_table *table, const char *title, const char *text)
{
    if (title)
        tui_table_line(table, TUI_STRONG, "%s", title);
    while (*text) {
        size_t length = tui_line_length(text, 74);
        tui_table_line(table, TUI_NORMAL, "  %.*s", (int)length, text);
        text += length;
        text += strspn(text, " ");
    }
}

static void section(struct tui_table *table, const char *title, const char *text)
{
    if (!text || !*text)
        return;
    paragraph(table, title, text);
    tui_table_line(table, TUI_NORMAL, "%s", "");
}

static void show_places(struct tui_table *table, const struct prof_finding *finding)
{
    for (size_t i = 0; i < finding->place_count; i++) {
        const struct prof_place *place = &finding->places[i];
        char text[460];
        snprintf(text, sizeof text, "%s at %s%s%s%s%s%s%s",
                 prof_duration_ns(place->duration_ns).text, prof_duration_ns(place->start_ns).text,
                 place->path[0] ? " in " : "", place->path, place->name ? ", " : "",
                 place->name ? place->name : "",
                 place->line[0] ? place->line_ends_it ? ", before " : ", by " : "", place->line);
        paragraph(table, i ? NULL : "Where it is worst", text);
    }
    if (finding->place_count)
        tui_table_line(table, TUI_NORMAL, "%s", "");
}

static void show_finding(struct tui_table *table, const struct prof_findings *findings,
                         const struct prof_finding *f)
{
    char bound[200];
    snprintf(bound, sizeof bound, "%s (%s)", f->rule->title, f->rule->id);
    section(table, bound, f->seen);
    section(table, "In phase", finding_phase_name(findings, f));
    if (f->bound_ns != PROF_UNKNOWN) {
        snprintf(bound, sizeof bound, "%s, %s of the %s that were analysed",
                 prof_duration_ns(f->bound_ns).text, prof_percent(f->bound_share).text,
                 prof_duration_ns(findings->window_ns).text);
        section(table, "Can save at most", bound);
    }
    if (f->net_min_ns != PROF_UNKNOWN) {
        snprintf(bound, sizeof bound, "%s to %s", prof_duration_ns(f->net_min_ns).text,
                 prof_duration_ns(f->net_max_ns).text);
        section(table, "Of it without the recording overhead", bound);
    }
    show_places(table, f);
    section(table, "Why it is slow", f->rule->why);
    section(table, "What to change", f->fix);
    section(table, "What the rule cannot see", f->rule->limits);
}

void tui_fill_finding(struct tui_table *table, const struct tui_view_input *input)
{
    struct prof_findings findings;
    tui_table_begin(table, tui_text_column, 1);
    table->in_order = true;
    if (!input->tail || prof_findings(input->tail, &input->filter, &findings, NULL))
        return;
    size_t at = 0;
    while (at < findings.count && finding_id(&findings.rows[at]) != input->target)
        at++;
    if (at < findings.count)
        show_finding(table, &findings, &findings.rows[at]);
    else
        tui_table_line(table, TUI_NORMAL, "%s",
                       "No longer found: the program does something else now.");
    if (!findings.why_none)
        note_analysed(table, input, &findings);
    prof_findings_free(&findings);
}
