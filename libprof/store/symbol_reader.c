/* See symbolize.h. The answer was made from an untrusted file by a process that this file may
 * have compromised: every number is checked before it is used. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libprof/base/clock.h"
#include "libprof/store/symbolize.h"

#define MOST_ANSWER (1ull << 30) /* bytes: more is no answer */

extern char **environ;

struct bytes {
    unsigned char *data;
    size_t count, capacity;
};

struct talk {
    const struct symbol_question *question;
    struct symbol_answer *answer;
    struct bytes out; /* the request */
    size_t sent;
    struct bytes in; /* not yet understood */
    uint64_t received, deadline_ns;
    bool ended, damaged, no_memory;
};

/* ---- the request ----------------------------------------------------------------------------- */

static size_t list_bytes(const char *list)
{
    size_t at = 0;
    while (list[at])
        at += strlen(list + at) + 1;
    return at;
}

static bool make_request(struct talk *talk)
{
    const struct symbol_question *q = talk->question;
    struct symbols_request request = {
        .magic = SYMBOLS_MAGIC,
        .source = q->source,
        .flags = q->flags,
        .count = q->count,
        .segment = q->segment,
        .not_after_s = q->not_after_s,
        .not_before_s = q->not_before_s,
        .path_bytes = (uint32_t)strlen(q->path),
        .build_id_bytes = (uint32_t)strlen(q->build_id),
        .folder_bytes = (uint32_t)list_bytes(q->folders),
    };
    return prof_array_append(&talk->out, &request, sizeof request) &&
           prof_array_append(&talk->out, q->path, request.path_bytes) &&
           prof_array_append(&talk->out, q->build_id, request.build_id_bytes) &&
           prof_array_append(&talk->out, q->folders, request.folder_bytes) &&
           prof_array_append(&talk->out, q->addresses, q->count * sizeof *q->addresses);
}

/* ---- the answer ------------------------------------------------------------------------------ */

static bool take_state(struct talk *talk, const unsigned char *payload, uint32_t bytes)
{
    uint32_t quality;
    if (bytes < sizeof quality)
        return false;
    memcpy(&quality, payload, sizeof quality);
    if (quality > SYMBOLS_LINES)
        return false;
    talk->answer->quality = (enum symbols_quality)quality;
    snprintf(talk->answer->note, sizeof talk->answer->note, "%.*s", (int)(bytes - sizeof quality),
             (const char *)payload + sizeof quality);
    return true;
}

static bool take_text(struct talk *talk, const unsigned char *payload, uint32_t bytes)
{
    struct symbol_answer *answer = talk->answer;
    if (bytes > SYMBOLS_MOST_TEXT)
        return false;
    struct symbol_text *text = prof_array_add(&answer->texts);
    if (!text || !prof_array_append(&answer->bytes, payload, bytes)) {
        talk->no_memory = true;
        return false;
    }
    *text = (struct symbol_text){answer->bytes.count - bytes, bytes};
    return true;
}

static bool take_frame(struct talk *talk, const unsigned char *payload, uint32_t bytes)
{
    struct symbol_answer *answer = talk->answer;
    uint32_t index, levels = (uint32_t)((bytes - sizeof index) / sizeof(struct symbols_level));
    if (bytes < sizeof index || (bytes - sizeof index) % sizeof(struct symbols_level) || !levels ||
        levels > SYMBOLS_MOST_LEVELS)
        return false;
    memcpy(&index, payload, sizeof index);
    if (index >= talk->question->count || answer->spans[index].count ||
        answer->levels.count + levels > UINT32_MAX)
        return false;
    if (!prof_array_reserve(&answer->levels, levels)) {
        talk->no_memory = true;
        return false;
    }
    struct symbols_level *added = answer->levels.data + answer->levels.count;
    memcpy(added, payload + sizeof index, levels * sizeof *added);
    for (uint32_t i = 0; i < levels; i++) {
        if (added[i].function > answer->texts.count || added[i].file > answer->texts.count)
            return false;
    }
    answer->spans[index] = (struct symbol_span){(uint32_t)answer->levels.count, levels};
    answer->levels.count += levels;
    return true;
}

static bool handle_record(struct talk *talk, const struct symbols_record *record,
                          const unsigned char *payload)
{
    switch (record->type) {
    case SYMBOLS_STATE:
        return take_state(talk, payload, record->bytes);
    case SYMBOLS_TEXT:
        return take_text(talk, payload, record->bytes);
    case SYMBOLS_FRAME:
        return take_frame(talk, payload, record->bytes);
    case SYMBOLS_END:
        return talk->ended = true;
    default:
        return false;
    }
}

/* All whole records of what has come. */
static void understand(struct talk *talk)
{
    struct symbols_record record;
    size_t at = 0;
    while (!talk->ended && !talk->damaged && talk->in.count - at >= sizeof record) {
        memcpy(&record, talk->in.data + at, sizeof record);
        if (record.bytes > SYMBOLS_MOST_TEXT + sizeof(uint32_t))
            talk->damaged = true;
        else if (talk->in.count - at - sizeof record < record.bytes)
            break;
        else {
            talk->damaged = !handle_record(talk, &record, talk->in.data + at + sizeof record);
            at += sizeof record + record.bytes;
        }
    }
    memmove(talk->in.data, talk->in.data + at, talk->in.count - at);
    talk->in.count -= at;
}

/* ---- the conversation ------------------------------------------------------------------------ */

/* False when the other side is gone or has said all. */
static bool receive(struct talk *talk, int fd)
{
    if (!prof_array_reserve(&talk->in, 65536)) {
        talk->no_memory = true;
        return false;
    }
    ssize_t n = recv(fd, talk->in.data + talk->in.count, 65536, MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    talk->in.count += (size_t)n;
    talk->received += (uint64_t)n;
    talk->damaged |= talk->received > MOST_ANSWER;
    understand(talk);
    return n > 0 && !talk->ended && !talk->damaged;
}

static void transmit(struct talk *talk, int fd)
{
    ssize_t n = send(fd, talk->out.data + talk->sent, talk->out.count - talk->sent,
                     MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0)
        talk->sent += (size_t)n;
    else if (errno != EAGAIN && errno != EINTR)
        talk->sent = talk->out.count; /* it does not listen; its answer says more */
    if (talk->sent == talk->out.count)
        shutdown(fd, SHUT_WR);
}

#define STOP_MS 100 /* between two checks whether to stop */

/* True when the time was enough. */
static bool converse(struct talk *talk, int fd)
{
    const struct symbol_question *question = talk->question;
    for (;;) {
        uint64_t now = prof_now_ns();
        if (question->stop && question->stop(question->user))
            return talk->answer->stopped = true;
        if (now >= talk->deadline_ns)
            return false;
        struct pollfd on = {fd, (short)(POLLIN | (talk->sent < talk->out.count ? POLLOUT : 0)), 0};
        int left_ms = (int)((talk->deadline_ns - now) / 1000000 + 1);
        left_ms = question->stop && left_ms > STOP_MS ? STOP_MS : left_ms;
        if (poll(&on, 1, left_ms) < 0 && errno != EINTR)
            return true;
        if (on.revents & POLLOUT && talk->sent < talk->out.count)
            transmit(talk, fd);
        if (on.revents & (POLLIN | POLLHUP | POLLERR) && !receive(talk, fd))
            return true;
    }
}

static enum prof_status start_symbol_helper(const char *helper, pid_t *pid, int *fd,
                                            struct prof_error *err)
{
    int pair[2];
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    char *arguments[] = {(char *)(uintptr_t)helper, NULL};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return prof_fail_errno(err, PROF_IO, "cannot talk to %s", helper);
    sigemptyset(&none);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pair[1], STDIN_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    /* Out of the terminal's reach: ^C is for perfkit, which ends it. */
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    int rc = posix_spawn(pid, helper, &actions, &attributes, arguments, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    close(pair[1]);
    *fd = pair[0];
    if (rc == 0)
        return PROF_OK;
    close(pair[0]);
    errno = rc;
    return prof_fail_errno(err, PROF_NOTFOUND, "cannot run %s", helper);
}

static void say_end(struct symbol_answer *answer, bool in_time, int status, bool damaged)
{
    answer->broken = true;
    if (!in_time)
        snprintf(answer->note, sizeof answer->note, "reading it took too long");
    else if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
        snprintf(answer->note, sizeof answer->note, "reading it ended with signal %d (%s)",
                 WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        snprintf(answer->note, sizeof answer->note,
                 damaged ? "what was read of it makes no sense" : "reading it failed");
}

enum prof_status symbol_ask(const struct symbol_question *question, struct symbol_answer *answer,
                            struct prof_error *err)
{
    struct talk talk = {.question = question, .answer = answer};
    pid_t pid = -1;
    int fd = -1, ended = 0;
    *answer = (struct symbol_answer){0};
    answer->spans = calloc((size_t)question->count + 1, sizeof *answer->spans);
    enum prof_status status = PROF_OK;
    if (!answer->spans || !make_request(&talk))
        status = prof_out_of_memory(err);
    status = status ?: start_symbol_helper(question->helper, &pid, &fd, err);
    if (!status) {
        talk.deadline_ns = prof_now_ns() + question->timeout_ms * 1000000ull;
        bool in_time = converse(&talk, fd);
        close(fd);
        if (!talk.ended)
            kill(pid, SIGKILL); /* its own death came first, or it is to be stopped */
        while (waitpid(pid, &ended, 0) < 0 && errno == EINTR)
            ;
        if (talk.no_memory)
            status = prof_out_of_memory(err);
        else if (!talk.ended)
            say_end(answer, in_time, ended, talk.damaged);
    }
    prof_array_free(&talk.out);
    prof_array_free(&talk.in);
    return status;
}

void symbol_answer_free(struct symbol_answer *answer)
{
    free(answer->spans);
    prof_array_free(&answer->levels);
    prof_array_free(&answer->texts);
    prof_array_free(&answer->bytes);
    *answer = (struct symbol_answer){0};
}
