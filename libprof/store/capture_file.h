/* The files of a capture as files, without SQLite: what stands at the beginning of one, what lies
 * beside it, and which ones this process writes. */
#ifndef PERFKIT_STORE_CAPTURE_FILE_H
#define PERFKIT_STORE_CAPTURE_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "libprof/base/error.h"

struct sqlite3;

/* A capture that this process writes. Its file is locked (flock, which SQLite's locks of ranges do
 * not meet) as long as `fd` is open: another process that is to replace it learns that it is used,
 * whatever its state says and wherever its spool is (prof_store_is_written). */
struct capture_written {
    int fd; /* -1 = none yet */
    struct capture_written *next;
    dev_t device;
    ino_t inode;
};

void capture_written_add(struct capture_written *file, const char *path);
/* Also of one that was not added. Unlocks `fd` and closes it (prof_look_close). */
void capture_written_remove(struct capture_written *file);
/* False when the descriptor cannot be locked; true where the file system has no locks. */
bool capture_lock(int fd);
bool capture_is_written_here(const char *path);

/* Size of PATH-wal, PATH-journal; -1: there is none. */
int64_t capture_side_bytes(const char *path, const char *suffix);
void capture_remove_side_files(const char *path);

/* sqlite3_open_v2 of a capture, apart from looks at it in other threads (libprof/base/regular.h). */
int capture_open_database(const char *path, struct sqlite3 **db, int flags);

/* The folder of a path, by sqlite3_malloc. */
char *capture_folder(const char *path);

/* Descriptors, or -1 with errno. The second one's file has no name, in the folder of `path`:
 * whether files can be made there is known before there is one. */
int capture_new_file(const char *path);
int capture_nameless_file(const char *path);

/* One sync of the finished file instead of SQLite's two of every page (log, then file). */
bool capture_sync_file(const char *path);

/* "file:PATH?how", of which SQLite reads no part of the path as its own; by sqlite3_malloc. */
char *capture_uri(const char *path, const char *how);

/* The first bytes of a file, which may be SQLite's; zeros where it has fewer. */
struct capture_head {
    unsigned char bytes[100];
    size_t got;
    uint64_t file_bytes;
};

/* PROF_NOTFOUND: no such file; PROF_FORMAT: not a regular one; PROF_ACCESS, PROF_IO. */
enum prof_status capture_read_head(const char *path, struct capture_head *head,
                                   struct prof_error *err);
bool capture_head_is_sqlite(const struct capture_head *head);
uint32_t capture_head_application(const struct capture_head *head); /* application_id */

/* Checks of the first bytes of a file, before SQLite opens it. Not of one that this process writes:
 * its newest header may be in the -wal file still. */
enum prof_status capture_check_header(const char *path, struct prof_error *err);

/* Of the header: is the file, or shall its image in memory be, in WAL mode? */
bool capture_file_is_wal(const char *path);
void capture_image_to_wal(unsigned char *image);

#endif
