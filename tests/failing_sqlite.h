/* SQLite without memory: the allocation of a wanted size after so many others fails. */
#ifndef PERFKIT_TESTS_FAILING_SQLITE_H
#define PERFKIT_TESTS_FAILING_SQLITE_H

#include <check.h>
#include <errno.h>
#include <sqlite3.h>
#include <stdbool.h>

static sqlite3_mem_methods usual_memory;
static int failing_from, failing_below; /* bytes */
static long failing_until;              /* such allocations until one fails; 0 = none fails */

static bool allocation_fails(int bytes)
{
    bool now =
        bytes >= failing_from && bytes < failing_below && failing_until > 0 && --failing_until == 0;
    if (now)
        errno = ENOMEM;
    return now;
}

static void *failing_malloc(int bytes)
{
    return allocation_fails(bytes) ? NULL : usual_memory.xMalloc(bytes);
}

static void *failing_realloc(void *old, int bytes)
{
    return allocation_fails(bytes) ? NULL : usual_memory.xRealloc(old, bytes);
}

/* Of the process, before SQLite is used: allocations of `from` to `below` bytes may fail. */
static inline void let_sqlite_fail(int from, int below)
{
    static struct sqlite3_mem_methods memory;
    failing_from = from;
    failing_below = below;
    sqlite3_shutdown();
    ck_assert_int_eq(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &usual_memory), SQLITE_OK);
    memory = usual_memory;
    memory.xMalloc = failing_malloc;
    memory.xRealloc = failing_realloc;
    ck_assert_int_eq(sqlite3_config(SQLITE_CONFIG_MALLOC, &memory), SQLITE_OK);
    ck_assert_int_eq(sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0), SQLITE_OK);
}

#endif
