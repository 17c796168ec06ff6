/* Threads of a report: they do part of one piece of work, and signals are not their business. */
#ifndef PERFKIT_REPORT_THREAD_H
#define PERFKIT_REPORT_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

/* Start `run`, with all signals blocked. False: there is no thread to be had. */
bool prof_report_thread(pthread_t *thread, void *(*run)(void *), void *argument);

/* A stream whose data a thread writes to `out` (borrowed), up to a megabyte behind: for writers who
 * are busy with what they write. An error of `out` is told, with its errno, by a later write or by
 * fclose, which waits until all is written; then `out` is as if it had been written to directly.
 * Not flushed by fflush. NULL: there is no thread or no memory; `out` is as good. */
FILE *prof_report_behind(FILE *out);

#endif
