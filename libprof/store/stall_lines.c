/* The collector keeps the cubins that samples fell into as files in the spool folder, by the hash
 * of their content (collectors/cuda/stalls.c). Here each sampled instruction gets its line, and the
 * hot ones and those beside them their text: the file goes with the spool folder. */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sqlite3.h>

#include "libprof/base/format.h"
#include "libprof/base/clock.h"
#include "libprof/store/cubin.h"
#include "libprof/store/symbolize.h"

#define DISASSEMBLE_NS 8000000000u /* in all: large libraries have code for minutes */
#define LINES_NS 60000000000u      /* cubins come from a foreign process: no more are read */
#define SMALL_CUBIN_BYTES (4 << 20)
#define MOST_FUNCTIONS 24 /* of a cubin, those with most samples */

struct lines {
    sqlite3 *db;
    const char *folder;
    sqlite3_stmt *functions, *rows, *set, *set_sass, *set_reason;
    uint64_t told;  /* instructions of nvdisasm's last output */
    uint64_t until; /* no more code is disassembled */
    bool (*stop)(void);
    uint64_t cubin; /* hash of the one in turn */
    uint32_t hot_count;
    char hot[MOST_FUNCTIONS * 11 + 1]; /* symbols of the functions of a cubin, for nvdisasm */
    struct prof_error *err;
};

static enum prof_status lines_failed(struct lines *l)
{
    return prof_fail(l->err, PROF_IO, "cannot write lines of kernels: %s", sqlite3_errmsg(l->db));
}

static enum prof_status run_lines(struct lines *l, const char *sql)
{
    return sqlite3_exec(l->db, sql, NULL, NULL, NULL) == SQLITE_OK ? PROF_OK : lines_failed(l);
}

static enum prof_status step_lines(struct lines *l, sqlite3_stmt *sql)
{
    int code = sqlite3_step(sql);
    sqlite3_reset(sql);
    sqlite3_clear_bindings(sql);
    return code == SQLITE_DONE ? PROF_OK : lines_failed(l);
}

static bool time_is_up(const struct lines *l, uint64_t until)
{
    return prof_now_ns() >= until || (l->stop && l->stop());
}

/* ---- text of instructions */

static bool find_nvdisasm(char path[PATH_MAX])
{
    const char *folders = getenv("PATH");
    for (const char *at = folders ? folders : ""; *at;) {
        size_t length = strcspn(at, ":");
        snprintf(path, PATH_MAX, "%.*s/nvdisasm", (int)length, at);
        if (length && access(path, X_OK) == 0)
            return true;
        at += length + (at[length] == ':');
    }
    snprintf(path, PATH_MAX, "/usr/local/cuda/bin/nvdisasm");
    return access(path, X_OK) == 0;
}

/* Its standard output, or -1. */
static int start_nvdisasm(const char *cubin, char *functions, bool all, pid_t *pid)
{
    char path[PATH_MAX], file[PATH_MAX];
    char code[] = "-c", only[] = "-fun";
    char *arguments[] = {path, code, all ? file : only, all ? NULL : functions, file, NULL};
    int ends[2];
    if (!find_nvdisasm(path) || pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    snprintf(file, sizeof file, "%s", cubin);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    int error = posix_spawn(pid, path, &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (!error)
        return ends[0];
    close(ends[0]);
    return -1;
}

/* An offset as a C comment, the instruction and a semicolon, of the function that the last
 * ".text.NAME:" began. */
static enum prof_status take_sass_line(struct lines *l, char *line, char *function, size_t size)
{
    char *at = line + strspn(line, " \t"), *end;
    if (strncmp(at, ".text.", 6) == 0 && (end = strchr(at, ':'))) {
        snprintf(function, size, "%.*s", (int)(end - at - 6), at + 6);
        return PROF_OK;
    }
    if (strncmp(at, "/*", 2) != 0)
        return PROF_OK;
    uint64_t offset = strtoull(at + 2, &end, 16);
    if (end == at + 2 || strncmp(end, "*/", 2) != 0)
        return PROF_OK;
    at = end + 2 + strspn(end + 2, " \t");
    at[strcspn(at, ";")] = '\0';
    for (size_t length = strlen(at); length && at[length - 1] == ' ';)
        at[--length] = '\0';
    if (!*at)
        return PROF_OK;
    l->told++;
    sqlite3_bind_text(l->set_sass, 1, at, -1, SQLITE_TRANSIENT);
    sqlite3_bind_text(l->set_sass, 2, function, -1, SQLITE_TRANSIENT);
    sqlite3_bind_int64(l->set_sass, 3, (int64_t)offset);
    sqlite3_bind_int64(l->set_sass, 4, (int64_t)l->cubin);
    return step_lines(l, l->set_sass);
}

static enum prof_status take_sass(struct lines *l, int from)
{
    static char buffer[1 << 16];
    char function[4096] = "";
    size_t used = 0;
    enum prof_status status = PROF_OK;
    while (!status && !time_is_up(l, l->until)) {
        struct pollfd ready = {.fd = from, .events = POLLIN};
        if (poll(&ready, 1, 200) <= 0)
            continue;
        ssize_t got = read(from, buffer + used, sizeof buffer - 1 - used);
        if (got <= 0)
            break;
        used += (size_t)got;
        buffer[used] = '\0';
        char *at = buffer;
        for (char *end; !status && (end = strchr(at, '\n')); at = end + 1) {
            *end = '\0';
            status = take_sass_line(l, at, function, sizeof function);
        }
        used -= (size_t)(at - buffer);
        memmove(buffer, at, used);
        if (used == sizeof buffer - 1)
            used = 0;
    }
    return status;
}

static enum prof_status disassemble_part(struct lines *l, const char *cubin, bool all)
{
    pid_t pid;
    int from = time_is_up(l, l->until) ? -1 : start_nvdisasm(cubin, l->hot, all, &pid);
    if (from < 0)
        return PROF_OK;
    enum prof_status status = take_sass(l, from);
    close(from);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return status;
}

/* The hot functions of a cubin; all of a small one where nvdisasm does not know them by number. */
static enum prof_status disassemble(struct lines *l, const char *cubin)
{
    struct stat info;
    enum prof_status status = PROF_OK;
    l->told = 0;
    if (l->hot[0])
        status = disassemble_part(l, cubin, false);
    if (!status && l->hot[0] && !l->told && stat(cubin, &info) == 0 &&
        info.st_size <= SMALL_CUBIN_BYTES)
        status = disassemble_part(l, cubin, true);
    l->hot[0] = '\0';
    l->hot_count = 0;
    return status;
}

/* ---- lines */

static enum prof_status line_function(struct lines *l, struct prof_cubin *cubin, int64_t function,
                                      const char *name)
{
    enum prof_status status = PROF_OK;
    bool any = false;
    uint32_t symbol = l->hot_count++ < MOST_FUNCTIONS ? prof_cubin_symbol(cubin, name) : 0;
    if (symbol)
        prof_append(l->hot, sizeof l->hot, "%s%u", *l->hot ? "," : "", symbol);
    sqlite3_bind_int64(l->rows, 1, function);
    while (!status && sqlite3_step(l->rows) == SQLITE_ROW) {
        const char *file = NULL;
        uint32_t line = 0;
        uint64_t offset = (uint64_t)sqlite3_column_int64(l->rows, 1);
        if (sqlite3_column_int(l->rows, 2))
            offset = prof_cubin_barrier(cubin, name, offset);
        bool found = prof_cubin_line(cubin, name, offset, &file, &line);
        any |= found;
        sqlite3_bind_int64(l->set, 1, sqlite3_column_int64(l->rows, 0));
        sqlite3_bind_text(l->set, 2, name, -1, SQLITE_STATIC);
        sqlite3_bind_int64(l->set, 3, sqlite3_column_int64(l->rows, 1));
        if (found) {
            sqlite3_bind_text(l->set, 4, file, -1, SQLITE_STATIC);
            sqlite3_bind_int64(l->set, 5, line);
        }
        sqlite3_bind_int64(l->set, 6, (int64_t)l->cubin);
        status = step_lines(l, l->set);
    }
    sqlite3_reset(l->rows);
    if (!status && !any) {
        sqlite3_bind_int64(l->set_reason, 1, function);
        sqlite3_bind_text(l->set_reason, 2,
                          "it was compiled without lines: compile it with -lineinfo", -1,
                          SQLITE_STATIC);
        status = step_lines(l, l->set_reason);
    }
    return status;
}

/* The functions come cubin by cubin. */
static enum prof_status line_functions(struct lines *l)
{
    struct prof_cubin *cubin = NULL;
    struct prof_error why = {0};
    char path[PATH_MAX] = "";
    uint64_t end = prof_now_ns() + LINES_NS;
    enum prof_status status = PROF_OK;
    while (!status && sqlite3_step(l->functions) == SQLITE_ROW) {
        int64_t function = sqlite3_column_int64(l->functions, 0);
        uint64_t hash = (uint64_t)sqlite3_column_int64(l->functions, 1);
        const char *name = (const char *)sqlite3_column_text(l->functions, 2);
        bool late = time_is_up(l, end);
        if (late || hash != l->cubin || !path[0]) {
            bool before = cubin != NULL;
            prof_cubin_close(cubin);
            cubin = NULL;
            if (before)
                status = disassemble(l, path);
            snprintf(path, sizeof path, "%s/%016" PRIx64 ".cubin", l->folder, hash);
            if (late)
                prof_fail(&why, PROF_FULL, "no time was left to read its machine code");
            else
                prof_cubin_open(path, hash, &cubin, &why);
            l->cubin = hash;
        }
        if (!status && cubin) {
            status = line_function(l, cubin, function, name ? name : "");
        } else if (!status) {
            sqlite3_bind_int64(l->set_reason, 1, function);
            sqlite3_bind_text(l->set_reason, 2, why.message, -1, SQLITE_STATIC);
            status = step_lines(l, l->set_reason);
        }
    }
    bool last = cubin != NULL;
    prof_cubin_close(cubin);
    return last && !status ? disassemble(l, path) : status;
}

/* Enough of a row's samples to order functions by. */
#define SAMPLES                                                                                    \
    "sum(ifnull(long_scoreboard,0)+ifnull(short_scoreboard,0)+ifnull(wait,0)+ifnull(barrier,0)+"   \
    "ifnull(math_pipe_throttle,0)+ifnull(mio_throttle,0)+ifnull(lg_throttle,0)+"                   \
    "ifnull(no_instruction,0)+ifnull(selected,0)+ifnull(not_selected,0)+ifnull(gmma,0))"

static bool prepare_lines(struct lines *l)
{
    const struct {
        sqlite3_stmt **out;
        const char *sql;
    } all[] = {
        {&l->functions, "SELECT f.id, f.cubin, s.value FROM stall_function f LEFT JOIN string s "
                        "ON s.id=f.name JOIN (SELECT function, " SAMPLES " n FROM stall GROUP BY "
                        "function) h ON h.function=f.id ORDER BY sum(n) OVER (PARTITION BY "
                        "f.cubin) DESC, f.cubin, n DESC, f.id"},
        {&l->rows, "SELECT id, offset, at_barrier FROM stall_row WHERE function=?1 ORDER BY "
                   "offset"},
        {&l->set, "INSERT INTO stall_line(id,function,offset,file,line,cubin) VALUES(?1,?2,?3,?4,"
                  "?5,?6)"},
        {&l->set_sass, "UPDATE stall_line SET sass=?1 WHERE function=?2 AND offset=?3 "
                       "AND cubin=?4"},
        {&l->set_reason, "UPDATE stall_function SET lines=?2 WHERE id=?1"},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (sqlite3_prepare_v2(l->db, all[i].sql, -1, all[i].out, NULL) != SQLITE_OK)
            return false;
    }
    return true;
}

static enum prof_status fill_lines(struct lines *l)
{
    PROF_TRY(run_lines(l, "BEGIN IMMEDIATE;"
                          "CREATE TEMP TABLE stall_row(function INT, offset INT, id INT, "
                          "at_barrier INT, PRIMARY KEY(function, offset, id)) WITHOUT ROWID;"
                          "INSERT INTO stall_row SELECT function, offset, id, "
                          "ifnull(barrier,0)*2>ifnull(long_scoreboard,0)+ifnull(wait,0)+"
                          "ifnull(barrier,0)+ifnull(short_scoreboard,0) FROM stall WHERE "
                          "function NOT NULL AND offset NOT NULL;"
                          "CREATE TEMP TABLE stall_line(id INTEGER PRIMARY KEY, function TEXT, "
                          "offset INT, file TEXT, line INT, sass TEXT, cubin INT);"
                          "CREATE INDEX temp.stall_at ON stall_line(function, offset);"
                          "CREATE TEMP TABLE stall_text(value TEXT PRIMARY KEY, id INT)"));
    if (!prepare_lines(l))
        return lines_failed(l);
    PROF_TRY(line_functions(l));
    return run_lines(
        l, "INSERT INTO string(value) SELECT file FROM stall_line WHERE file NOT NULL UNION "
           "SELECT sass FROM stall_line WHERE sass NOT NULL EXCEPT SELECT value FROM string;"
           "INSERT OR IGNORE INTO stall_text SELECT value, id FROM string WHERE value IN "
           "(SELECT file FROM stall_line UNION SELECT sass FROM stall_line);"
           "UPDATE stall SET (file, line, sass)=(SELECT (SELECT t.id FROM stall_text t WHERE "
           "t.value=l.file), l.line, (SELECT t.id FROM stall_text t WHERE t.value=l.sass) "
           "FROM stall_line l WHERE l.id=stall.id) WHERE id IN (SELECT id FROM stall_line);"
           "DROP TABLE stall_row; DROP TABLE stall_line; DROP TABLE stall_text; COMMIT");
}

enum prof_status prof_stall_lines(struct prof_store *store, const char *folder, bool (*stop)(void),
                                  struct prof_error *err)
{
    struct lines l = {.db = prof_store_db(store),
                      .folder = folder,
                      .until = prof_now_ns() + DISASSEMBLE_NS,
                      .stop = stop,
                      .err = err};
    if (!prof_sql_number(l.db, 0, "SELECT 1 FROM stall LIMIT 1"))
        return PROF_OK;
    enum prof_status status = fill_lines(&l);
    sqlite3_stmt *all[] = {l.functions, l.rows, l.set, l.set_sass, l.set_reason};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        sqlite3_finalize(all[i]);
    if (status)
        sqlite3_exec(l.db, "ROLLBACK", NULL, NULL, NULL);
    return status;
}
