/* Reading a few bytes of a file that SQLite may have open in this process.
 *
 * When a process closes any descriptor of a file, all POSIX locks that the process has on the file
 * are gone (fcntl(2), "Advisory record locking"), SQLite's too. A writer in another process then
 * sees no reader and ends the capture under it. So a descriptor of a file that the process has open
 * once more, also by another library, stays open until that one is closed. Thread-safe. */
#ifndef PERFKIT_BASE_LOOK_H
#define PERFKIT_BASE_LOOK_H

/* As prof_open_regular for reading, from the file's begin on. The descriptor may be one that an
 * earlier look left open; close it by prof_look_close only. */
int prof_look_open(int folder, const char *path);
/* Keeps errno. -1: only closes what earlier looks left open and may be closed by now, as after
 * closing a database. */
void prof_look_close(int fd);

/* Around an opening by SQLite: no look is closed between the opening and the first lock. */
void prof_look_hold(void);
void prof_look_release(void);

#endif
