/* The stream of a report that is written behind; see thread.h. Half of the time of a large trace is
 * spent in making its text, a fifth in the file system or, many times that, in compressing it:
 * those two side by side. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "report/thread.h"

#define PIECE_BYTES (256u << 10)
#define PIECES 4 /* a ring */

struct behind {
    FILE *out;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t filled, written; /* pieces so far, by each side */
    bool closing;
    int error; /* errno of `out`; 0 = all well */
    size_t counts[PIECES];
    char pieces[PIECES][PIECE_BYTES];
};

bool prof_report_thread(pthread_t *thread, void *(*run)(void *), void *argument)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(thread, NULL, run, argument) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

static int write_piece(struct behind *b, size_t piece)
{
    errno = 0;
    if (fwrite(b->pieces[piece], 1, b->counts[piece], b->out) == b->counts[piece])
        return 0;
    return errno ? errno : EIO;
}

/* After an error the rest is thrown away: nobody waits for room that never comes. */
static void *write_behind(void *argument)
{
    struct behind *b = argument;
    pthread_mutex_lock(&b->lock);
    for (;;) {
        while (b->filled == b->written && !b->closing)
            pthread_cond_wait(&b->changed, &b->lock);
        if (b->filled == b->written)
            break;
        if (!b->error) {
            pthread_mutex_unlock(&b->lock);
            int error = write_piece(b, b->written % PIECES);
            pthread_mutex_lock(&b->lock);
            b->error = error;
        }
        b->written++;
        pthread_cond_signal(&b->changed);
    }
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

/* Hand over one piece; false, with errno, after an error. */
static bool queue_piece(struct behind *b, const char *data, size_t size)
{
    pthread_mutex_lock(&b->lock);
    while (b->filled - b->written == PIECES)
        pthread_cond_wait(&b->changed, &b->lock);
    int error = b->error;
    pthread_mutex_unlock(&b->lock);
    if (error) {
        errno = error;
        return false;
    }
    memcpy(b->pieces[b->filled % PIECES], data, size); /* nobody else's until it is filled */
    pthread_mutex_lock(&b->lock);
    b->counts[b->filled % PIECES] = size;
    b->filled++;
    pthread_cond_signal(&b->changed);
    pthread_mutex_unlock(&b->lock);
    return true;
}

static ssize_t queue_pieces(void *cookie, const char *data, size_t size)
{
    for (size_t done = 0; done < size;) {
        size_t now = size - done < PIECE_BYTES ? size - done : PIECE_BYTES;
        if (!queue_piece(cookie, data + done, now))
            return 0; /* an error, to stdio */
        done += now;
    }
    return (ssize_t)size;
}

static int finish_thread_writer(void *cookie)
{
    struct behind *b = cookie;
    pthread_mutex_lock(&b->lock);
    b->closing = true;
    pthread_cond_signal(&b->changed);
    pthread_mutex_unlock(&b->lock);
    pthread_join(b->thread, NULL);
    int error = b->error;
    pthread_cond_destroy(&b->changed);
    pthread_mutex_destroy(&b->lock);
    free(b);
    errno = error;
    return error ? -1 : 0;
}

FILE *prof_report_behind(FILE *out)
{
    struct behind *b = malloc(sizeof *b);
    if (!b)
        return NULL;
    b->out = out;
    b->filled = b->written = 0;
    b->closing = false;
    b->error = 0;
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->changed, NULL);
    if (!prof_report_thread(&b->thread, write_behind, b)) {
        pthread_cond_destroy(&b->changed);
        pthread_mutex_destroy(&b->lock);
        free(b);
        return NULL;
    }
    FILE *file = fopencookie(
        b, "w", (cookie_io_functions_t){.write = queue_pieces, .close = finish_thread_writer});
    if (!file)
        finish_thread_writer(b);
    return file;
}
