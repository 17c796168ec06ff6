/* A damaged spool through the whole ingest: whatever stands in it, the capture is finished and
 * passes SQLite's integrity check. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libprof/store/ingest.h"
#include "libprof/store/store.h"
#include "tests/fuzz/image.h"

static char folder[64];

static void remove_folder(void)
{
    char path[128];
    snprintf(path, sizeof path, "%s/lifecycle", folder);
    unlink(path);
    rmdir(folder);
}

static void make_folder(void)
{
    snprintf(folder, sizeof folder, "/dev/shm/perfkit-fuzz-XXXXXX");
    if (!mkdtemp(folder) || prof_ingest_prepare(folder, NULL) != PROF_OK)
        abort();
    atexit(remove_folder);
}

static void check(struct prof_store *store)
{
    sqlite3_stmt *sql;
    if (sqlite3_prepare_v2(prof_store_db(store), "PRAGMA quick_check", -1, &sql, NULL) ||
        sqlite3_step(sql) != SQLITE_ROW ||
        strcmp((const char *)sqlite3_column_text(sql, 0), "ok") != 0)
        abort();
    sqlite3_finalize(sql);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!folder[0])
        make_folder();
    char spool_path[160], path[128];
    snprintf(spool_path, sizeof spool_path, "%s/999999999-1000.spool", folder);
    snprintf(path, sizeof path, "%s.sqlite", folder);
    size_t bytes;
    unsigned char *image = fuzz_image(data, size, &bytes);
    int fd = open(spool_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (!image || fd < 0 || write(fd, image, bytes) != (ssize_t)bytes)
        abort();
    close(fd);
    free(image);

    struct prof_error err = {0};
    struct prof_store *store;
    struct prof_ingest *ingest;
    struct prof_ingest_about about = {.command = "fuzz", .start_mono_ns = 1};
    if (prof_store_create(path, true, &store, &err) != PROF_OK ||
        prof_ingest_open(store, folder, &about, &ingest, &err) != PROF_OK ||
        prof_ingest_step(ingest, NULL, &err) != PROF_OK ||
        prof_ingest_finish(ingest, "complete", true, &err) != PROF_OK) {
        fprintf(stderr, "%s\n", err.message);
        abort();
    }
    prof_ingest_close(ingest);
    check(store);
    prof_store_close(store);
    unlink(spool_path);
    unlink(path);
    snprintf(spool_path, sizeof spool_path, "%s-wal", path);
    unlink(spool_path);
    snprintf(spool_path, sizeof spool_path, "%s-shm", path);
    unlink(spool_path);
    return 0;
}
