/* perfkit top without its terminal: what a key does, when to read, what the screen holds. */
#ifndef PERFKIT_TUI_APP_H
#define PERFKIT_TUI_APP_H

#include "tui/views.h"

/* Keys that are no characters. */
enum tui_key {
    TUI_KEY_NONE = 0,
    TUI_KEY_ENTER = '\n',
    TUI_KEY_ESCAPE = 27,
    TUI_KEY_TAB = '\t',
    TUI_KEY_BACKSPACE = 127,
    TUI_KEY_UP = 0x110000, /* above Unicode */
    TUI_KEY_DOWN,
    TUI_KEY_LEFT,
    TUI_KEY_RIGHT,
    TUI_KEY_PAGE_UP,
    TUI_KEY_PAGE_DOWN,
    TUI_KEY_HOME,
    TUI_KEY_END,
    TUI_KEY_BACK_TAB,
    TUI_KEY_F1, /* F2 .. F10 follow */
    TUI_KEY_F10 = TUI_KEY_F1 + 9,
    TUI_KEY_WHEEL_UP,
    TUI_KEY_WHEEL_DOWN,
};

/* What is to be done after a key. */
enum { TUI_REDRAW = 1, TUI_REFRESH = 2, TUI_QUIT = 4 };

enum tui_prompt { TUI_NO_PROMPT, TUI_SEARCH, TUI_FILTER };

#define TUI_LINE 80

struct tui_place { /* of one view */
    size_t chosen, scroll;
    int64_t chosen_id;
    bool has_id;
    size_t sort; /* SIZE_MAX: the table's own */
    bool rising;
    char filter[TUI_LINE];
};

/* The table of a view, of which it stays true as long as the capture is finished. */
struct tui_reading {
    struct tui_table table;
    int64_t target;
    unsigned window_s;
    bool done;
};

struct tui_reader;

struct tui_app {
    struct tui_model *model; /* owned */
    struct tui_table table;
    struct tui_health health;
    void (*measure)(void *context, struct tui_health *health); /* NULL = nothing can be said */
    void *measure_context;
    struct tui_kept kept;
    struct prof_nvml *nvml; /* owned; opened when the view of devices is */
    bool nvml_tried;

    struct tui_dashboard dashboard;
    struct prof_filter iterations; /* of which only what an iteration is: set by the caller */

    int view;
    bool drilled;
    int64_t target;
    char target_name[256]; /* of the kernel, to find it again */
    bool paused, help;
    enum tui_prompt prompt;
    char line[TUI_LINE]; /* what is being typed */
    char search[TUI_LINE];
    char message[160];
    struct tui_place places[TUI_VIEWS], drill_place;
    int width, height;
    bool ascii;

    /* As many events of a table as a look at details can afford, by view; then by what it drills
     * into. */
    int64_t tail_rows[2 * TUI_VIEWS];
    uint64_t next_detail_ns;
    bool stale; /* another view, window or row: details are due at once */

    /* Details of a finished capture. `beside`: a thread reads them while keys are taken; set by the
     * caller. `readings`: what was read, by view, then by what it drills into. */
    bool beside;
    struct tui_reader *reader; /* owned; NULL = nothing is being read */
    struct tui_reading readings[2 * TUI_VIEWS];
};

/* A model of `path`. False: out of memory. */
bool tui_app_make(struct tui_app *app, const char *path, bool ascii);
void tui_app_free(struct tui_app *app);

/* Look at the capture (unless paused) and fill the table that is shown. As tui_model_look. */
enum prof_status tui_app_refresh(struct tui_app *app, int64_t budget_ns, struct prof_error *err);
/* Where the user is in the view, or in the page of one of its rows. */
struct tui_place *tui_app_cursor(struct tui_app *app);
/* Fill the table again from what was read. */
void tui_app_fill(struct tui_app *app);

/* A thread reads the finished capture: the model may not change. */
bool tui_app_is_reading(const struct tui_app *app);
/* It has read what is shown next: refresh. */
bool tui_app_has_read(const struct tui_app *app);

/* The view with this key (a prefix is enough); -1 = none. */
int tui_view_named(const char *key);
void tui_app_show(struct tui_app *app, int view);

unsigned tui_app_key(struct tui_app *app, int key);
/* A click at (x, y) of the screen. */
unsigned tui_app_click(struct tui_app *app, int x, int y, bool twice);

/* Draw everything; the grid's size becomes the app's. */
void tui_app_draw(struct tui_app *app, struct tui_grid *grid);

/* The meters, the first `rows` rows of the table and its notes as text, for --once. */
enum prof_status tui_app_print(struct tui_app *app, int width, size_t rows, FILE *out,
                               struct prof_error *err);

/* Did what was shown of a finished capture lack something that could not be read? Of a running one
 * the next look may read it. */
enum prof_status tui_app_whole(const struct tui_app *app, struct prof_error *err);

/* One object: the state, the totals, and the rows of every view in `views` (bits; details too). See
 * docs/guide/top.md. One line. */
enum prof_status tui_app_json(struct tui_app *app, unsigned views, FILE *out,
                              struct prof_error *err);

/* Lines of the screen, for drawing and for clicks. Pure. */
struct tui_layout {
    int meters, tabs, titles, rows, row_lines, notes, note_lines, keys,
        dashboard; /* -1: no room for it */
};
/* `notes`, `dashboard`: lines that they take. */
struct tui_layout tui_lay_out(int height, int notes, int dashboard);
struct tui_layout tui_app_layout(const struct tui_app *app);
/* Columns that tab `view` takes: from *x to the returned end. */
int tui_tab_at(int view, int width, int *x);

/* ---- the terminal ---------------------------------------------------------------------------- */

/* The one place that talks to ncurses: keys and clicks in, cells out, signals in between. */

struct tui_terminal_options {
    int64_t interval_ns; /* between two looks */
    int64_t budget_ns;   /* what a look may take */
    bool colour;
};

/* Show the app until the user leaves it, or a signal ends it: *ended_by is then its number (the
 * terminal is as it was found; the caller may raise it again), else 0. The locale's character type
 * must be set (setlocale). PROF_UNSUPPORTED: this terminal cannot show it. */
enum prof_status tui_terminal_run(struct tui_app *app, const struct tui_terminal_options *options,
                                  int *ended_by, struct prof_error *err);

#endif
