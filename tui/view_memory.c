/* Who allocates, by call path: what Enter shows in the view of memory. Of the end of the capture
 * that a look can afford. */
#include "libprof/base/format.h"
#include "libprof/include/prof_memory.h"
#include "tui/views.h"

enum { A_PATH, A_KIND, A_HELD, A_SHARE, A_COUNT, A_BYTES, A_KEPT, A_GROWTH, A_VERDICT };

static const struct tui_column columns[] = {
    [A_PATH] = {"path", "who allocates", TUI_NAME, 0, 0},
    [A_KIND] = {"kind", "memory", TUI_TEXT, 14, 3},
    [A_HELD] = {"held_bytes", "at peak", TUI_BYTES, 9, 0},
    [A_SHARE] = {"held_share", "share", TUI_SHARE, 7, 1},
    [A_COUNT] = {"count", "allocations", TUI_COUNT, 11, 2},
    [A_BYTES] = {"bytes", "bytes", TUI_BYTES, 9, 4},
    [A_KEPT] = {"kept_bytes", "alive", TUI_BYTES, 9, 1},
    [A_GROWTH] = {"growth_bytes", "a step", TUI_BYTES, 9, 2},
    [A_VERDICT] = {"verdict", "verdict", TUI_TEXT, 7, 2},
};

#define MOST 200

static void add_site(struct tui_table *table, const struct prof_memory_site *site, int64_t number)
{
    bool leaks = site->verdict == PROF_MEMORY_LEAK;
    tui_table_row(table, number, 0, leaks ? TUI_WARN : TUI_NORMAL);
    tui_table_text(table, A_PATH, site->brief);
    tui_table_text(table, A_KIND, site->kind_text);
    tui_table_number(table, A_HELD, site->use.held_bytes);
    tui_table_real(table, A_SHARE, site->held_share);
    tui_table_number(table, A_COUNT, site->use.count);
    tui_table_number(table, A_BYTES, site->use.bytes);
    tui_table_number(table, A_KEPT, site->use.kept_bytes);
    tui_table_real(table, A_GROWTH, site->growth_bytes);
    tui_table_text(table, A_VERDICT, prof_memory_verdict_text(site->verdict));
}

void tui_fill_memory_paths(struct tui_table *table, const struct tui_view_input *input)
{
    struct prof_memory_profile profile;
    struct prof_error err = {0};
    tui_table_begin(table, columns, sizeof columns / sizeof *columns);
    table->sort = A_HELD;
    if (!input->tail)
        return;
    if (prof_memory_profile(input->tail, &input->filter, &profile, &err)) {
        tui_table_note(table, "%s", err.message);
        return;
    }
    for (size_t i = 0; i < profile.site_count && i < MOST; i++)
        add_site(table, &profile.sites[i], (int64_t)i);
    if (profile.why_none)
        tui_table_note(table, "Nothing is told: %s", profile.why_none);
    if (profile.failed)
        tui_table_note(table, "%s found no room",
                       prof_counted(profile.failed, "allocation", "allocations").text);
    tui_table_note(table, "At peak: of what was allocated last%s. Alive: not freed so far",
                   profile.steps ? "; a step: what each keeps" : "");
    prof_memory_profile_free(&profile);
}
