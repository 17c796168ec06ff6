/* Keys, clicks and cells of a terminal, by ncurses. Signals are blocked but while it waits for a
 * key: a handler only says which came, and everything is done in the loop, with the terminal put
 * back before anything else happens. */
#define NCURSES_WIDECHAR 1
#include "tui/app.h"

#include <curses.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <term.h>
#include <time.h>
#include <unistd.h>

#include "libprof/base/clock.h"

#define TICK_NS 200000000  /* how often the state of the capture is looked at */
#define STALE_NS 500000000 /* what is older is read again before it is drawn */

static const int caught[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH};
#define CAUGHT (sizeof caught / sizeof caught[0])

static volatile sig_atomic_t came[NSIG];

static void note_signal(int number)
{
    came[number] = 1;
}

static bool took(int number)
{
    bool it_came = came[number];
    came[number] = 0;
    return it_came;
}

struct signals {
    struct sigaction before[CAUGHT];
    sigset_t mask;
};

/* Before ncurses sets handlers of its own. */
static void remember_signals(struct signals *signals)
{
    for (size_t i = 0; i < CAUGHT; i++)
        sigaction(caught[i], NULL, &signals->before[i]);
    sigprocmask(SIG_BLOCK, NULL, &signals->mask);
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = note_signal};
    sigset_t all;
    sigemptyset(&all);
    sigfillset(&action.sa_mask);
    for (size_t i = 0; i < CAUGHT; i++) {
        came[caught[i]] = 0;
        sigaddset(&all, caught[i]);
    }
    sigprocmask(SIG_BLOCK, &all, NULL);
    for (size_t i = 0; i < CAUGHT; i++)
        sigaction(caught[i], &action, NULL);
}

static void restore_signals(const struct signals *signals)
{
    for (size_t i = 0; i < CAUGHT; i++)
        sigaction(caught[i], &signals->before[i], NULL);
    sigprocmask(SIG_SETMASK, &signals->mask, NULL);
}

/* ---- the screen ------------------------------------------------------------------------------ */

static attr_t styles[TUI_STYLES];

static void plain_styles(void)
{
    styles[TUI_NORMAL] = A_NORMAL;
    styles[TUI_STRONG] = A_BOLD;
    styles[TUI_DIM] = A_DIM;
    styles[TUI_HEADER] = A_REVERSE;
    styles[TUI_CHOSEN] = A_REVERSE | A_BOLD;
    styles[TUI_TAB] = A_REVERSE;
    styles[TUI_KEY] = A_BOLD;
    styles[TUI_BAR] = A_NORMAL;
    styles[TUI_GOOD] = A_NORMAL;
    styles[TUI_WARN] = A_BOLD;
    styles[TUI_BAD] = A_BOLD | A_UNDERLINE;
}

static void paint(enum tui_style style, short pair, short foreground, short background, attr_t more)
{
    init_pair(pair, foreground, background);
    styles[style] = (attr_t)COLOR_PAIR(pair) | more;
}

static void coloured_styles(void)
{
    short grey = COLORS >= 256 ? 244 : COLOR_WHITE;
    paint(TUI_DIM, 1, grey, -1, 0);
    paint(TUI_HEADER, 2, COLOR_BLACK, COLOR_GREEN, 0);
    paint(TUI_CHOSEN, 3, COLOR_BLACK, COLOR_CYAN, 0);
    paint(TUI_TAB, 4, COLOR_BLACK, COLOR_CYAN, 0);
    paint(TUI_KEY, 5, COLOR_CYAN, -1, 0);
    paint(TUI_BAR, 6, COLORS >= 256 ? 39 : COLOR_BLUE, -1, 0);
    paint(TUI_GOOD, 7, COLOR_GREEN, -1, 0);
    paint(TUI_WARN, 8, COLOR_YELLOW, -1, 0);
    paint(TUI_BAD, 9, COLOR_RED, -1, A_BOLD);
}

static void put_grid_line(const struct tui_grid *grid, int y)
{
    const struct tui_glyph *line = &grid->glyphs[y * grid->width];
    for (int x = 0; x < grid->width;) {
        char text[9 * 64] = "";
        size_t length = 0;
        int from = x;
        enum tui_style style = line[x].style;
        while (x < grid->width && line[x].style == style && length + 9 < sizeof text) {
            tui_glyph_text(&line[x++], text + length);
            length += strlen(text + length);
        }
        attrset(0);
        attron(styles[style]);
        mvaddstr(y, from, text);
    }
    attrset(0);
}

static void draw_screen(struct tui_app *app)
{
    struct tui_grid grid;
    if (!tui_grid_make(&grid, COLS > 0 ? COLS : 80, LINES > 0 ? LINES : 24, app->ascii))
        return;
    tui_app_draw(app, &grid);
    erase();
    for (int y = 0; y < grid.height; y++)
        put_grid_line(&grid, y);
    refresh();
    tui_grid_free(&grid);
}

static void new_size(void)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0)
        resizeterm(size.ws_row, size.ws_col);
}

/* ---- keys ------------------------------------------------------------------------------------ */

static int key_from_curses(wint_t code, bool special)
{
    static const struct {
        wint_t code;
        int key;
    } keys[] = {{KEY_UP, TUI_KEY_UP},
                {KEY_DOWN, TUI_KEY_DOWN},
                {KEY_LEFT, TUI_KEY_LEFT},
                {KEY_RIGHT, TUI_KEY_RIGHT},
                {KEY_PPAGE, TUI_KEY_PAGE_UP},
                {KEY_NPAGE, TUI_KEY_PAGE_DOWN},
                {KEY_HOME, TUI_KEY_HOME},
                {KEY_END, TUI_KEY_END},
                {KEY_BTAB, TUI_KEY_BACK_TAB},
                {KEY_ENTER, TUI_KEY_ENTER},
                {KEY_BACKSPACE, TUI_KEY_BACKSPACE}};
    if (!special)
        return code == '\r' ? TUI_KEY_ENTER : code == 8 ? TUI_KEY_BACKSPACE : (int)code;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (keys[i].code == code)
            return keys[i].key;
    }
    return code >= KEY_F(1) && code <= KEY_F(10) ? TUI_KEY_F1 + (int)(code - KEY_F(1))
                                                 : TUI_KEY_NONE;
}

static unsigned take_mouse(struct tui_app *app)
{
    MEVENT event;
    if (getmouse(&event) != OK)
        return 0;
#ifdef BUTTON5_PRESSED
    if (event.bstate & BUTTON5_PRESSED)
        return tui_app_key(app, TUI_KEY_WHEEL_DOWN);
#endif
    if (event.bstate & BUTTON4_PRESSED)
        return tui_app_key(app, TUI_KEY_WHEEL_UP);
    if (event.bstate & (BUTTON1_CLICKED | BUTTON1_PRESSED | BUTTON1_DOUBLE_CLICKED))
        return tui_app_click(app, event.x, event.y, event.bstate & BUTTON1_DOUBLE_CLICKED);
    return 0;
}

static unsigned take_keys(struct tui_app *app)
{
    unsigned todo = 0;
    wint_t code;
    for (int kind; !(todo & TUI_QUIT) && (kind = get_wch(&code)) != ERR;) {
        if (kind == KEY_CODE_YES && code == KEY_MOUSE)
            todo |= take_mouse(app);
        else if (kind == KEY_CODE_YES && code == KEY_RESIZE)
            todo |= TUI_REDRAW;
        else
            todo |= tui_app_key(app, key_from_curses(code, kind == KEY_CODE_YES));
    }
    return todo;
}

/* ---- the loop -------------------------------------------------------------------------------- */

/* Ctrl-Z: the shell gets its terminal back; when top is continued, the screen is as it was. */
static void stop_until_continued(void)
{
    struct sigaction ours;
    sigset_t only;
    endwin();
    sigaction(SIGTSTP, &(struct sigaction){.sa_handler = SIG_DFL}, &ours);
    sigemptyset(&only);
    sigaddset(&only, SIGTSTP);
    raise(SIGTSTP);
    sigprocmask(SIG_UNBLOCK, &only, NULL); /* stops here */
    sigprocmask(SIG_BLOCK, &only, NULL);
    sigaction(SIGTSTP, &ours, NULL);
}

static unsigned take_signals(int *ended_by)
{
    static const int last[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    unsigned todo = 0;
    for (size_t i = 0; i < sizeof last / sizeof last[0]; i++) {
        if (took(last[i])) {
            *ended_by = last[i];
            return TUI_QUIT;
        }
    }
    if (took(SIGTSTP)) {
        stop_until_continued();
        took(SIGCONT);
        todo = TUI_REDRAW | TUI_REFRESH;
        new_size();
        clearok(curscr, TRUE);
    }
    if (took(SIGCONT)) { /* after SIGSTOP, which cannot be caught: what the screen holds is unknown
                          */
        reset_prog_mode();
        clearok(curscr, TRUE);
        todo = TUI_REDRAW;
    }
    if (took(SIGWINCH)) {
        new_size();
        todo |= TUI_REDRAW;
    }
    return todo;
}

static bool is_old(const struct tui_app *app)
{
    return !app->paused && tui_model_is_live(app->model) &&
           prof_now_ns() - app->model->looked_ns > STALE_NS;
}

/* False: the terminal is gone. */
static bool wait_for_key(const struct signals *signals, int64_t wait_ns)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    struct timespec wait = {.tv_sec = wait_ns / 1000000000, .tv_nsec = wait_ns % 1000000000};
    int ready = ppoll(&input, 1, &wait, &signals->mask);
    return ready <= 0 || !(input.revents & (POLLERR | POLLHUP | POLLNVAL));
}

static enum prof_status loop(struct tui_app *app, const struct tui_terminal_options *options,
                             const struct signals *signals, int *ended_by, struct prof_error *err)
{
    enum prof_status status = PROF_OK;
    uint64_t next = prof_now_ns() + (uint64_t)options->interval_ns;
    unsigned todo = TUI_REDRAW;
    while (!status && !(todo & TUI_QUIT)) {
        uint64_t now = prof_now_ns();
        bool behind = !app->paused && !app->model->caught_up && app->model->phase != TUI_GONE &&
                      app->model->phase != TUI_LET_GO;
        if (tui_model_tick(app->model) || now >= next || behind || tui_app_has_read(app) ||
            ((todo & TUI_REDRAW) && is_old(app)))
            todo |= TUI_REFRESH;
        if (todo & TUI_REFRESH) {
            status = tui_app_refresh(app, options->budget_ns, err);
            next = now + (uint64_t)options->interval_ns;
        }
        if (todo && !status)
            draw_screen(app);
        now = prof_now_ns();
        int64_t wait = next > now ? (int64_t)(next - now) : 0;
        if (behind)
            wait = 0;
        if (!wait_for_key(signals, wait < TICK_NS ? wait : TICK_NS))
            return status;
        todo = take_signals(ended_by);
        if (!(todo & TUI_QUIT))
            todo |= take_keys(app);
    }
    return status;
}

/* Does it know how to move the cursor and to clear? */
static bool can_draw(void)
{
    const char *clear_text = tigetstr("clear"), *move_text = tigetstr("cup");
    return clear_text && clear_text != (char *)-1 && move_text && move_text != (char *)-1;
}

enum prof_status tui_terminal_run(struct tui_app *app, const struct tui_terminal_options *options,
                                  int *ended_by, struct prof_error *err)
{
    struct signals signals;
    *ended_by = 0;
    remember_signals(&signals);
    SCREEN *screen = newterm(NULL, stdout, stdin);
    if (!screen || !can_draw()) {
        if (screen) {
            endwin();
            delscreen(screen);
        }
        restore_signals(&signals);
        return prof_fail(err, PROF_UNSUPPORTED,
                         "the terminal '%s' cannot show a screen: use --once or --json",
                         getenv("TERM") ? getenv("TERM") : "");
    }
    catch_signals();
    cbreak();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    set_escdelay(25);
    curs_set(0);
    mousemask(ALL_MOUSE_EVENTS, NULL);
    plain_styles();
    if (options->colour && has_colors() && start_color() == OK && use_default_colors() == OK)
        coloured_styles();
    enum prof_status status = loop(app, options, &signals, ended_by, err);
    erase();
    refresh();
    endwin();
    delscreen(screen);
    restore_signals(&signals);
    return status;
}
