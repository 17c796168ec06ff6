/* The one door between hooks and the spool. Hooks (cuda/, opencl/, nvtx/, host/) call these
 * functions and nothing else of perfkit.
 *
 * All of them: may be called from any thread and at any moment, also in a signal handler and
 * after fork; keep errno; never print, exit, throw or block on a lock that a driver call could
 * hold; never allocate from the heap. When there is no spool (not run under perfkit, no room, in a
 * forked child before its first event) they do nothing or bring the spool up.
 *
 * A record is a struct of libprof/wire whose head the caller has filled. */
#ifndef PERFKIT_COLLECTORS_CORE_COLLECTOR_H
#define PERFKIT_COLLECTORS_CORE_COLLECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/wire/wire.h"

/* Is there a perfkit to record for? Brings the spool up at the first call of a process (the first
 * GPU or NVTX event), so a hook that must prepare something calls it first. False also between
 * fork and the child's first event as seen from a stale thread, and for ever when perfkit's
 * environment is absent or the spool could not be made. Cheap when the answer is known. */
bool collector_active(void);

/* Publish one event record of this thread. Returns false when it was dropped (and counted). */
bool collector_emit(const void *record);

/* Publish a record of the definition stream. Returns false when it was dropped (and counted). */
bool collector_define(const void *record);

/* A fresh id for a definition of the caller's own (device, context, stream, clock ...). */
uint32_t collector_new_id(void);

/* The id of a text, defined in the spool on first sight. The text is compared by content: the
 * buffer may be reused. length is in bytes; NULL gives 0, the empty text a real id. Names of any
 * length arrive whole. 0 when dropped (counted). */
uint32_t collector_string(const char *text, size_t length);
uint32_t collector_text(const char *text); /* the same for a NUL-terminated text */

/* The id of a launch configuration (head and padding of *config are ignored). */
uint32_t collector_config(const struct wire_config *config);

/* Add to a conservation counter. */
void collector_count(enum wire_count which, uint64_t n);

/* State what became of a collector: one sentence in `why` (NULL = none). */
void collector_health(enum wire_source source, enum wire_health_state state, const char *why,
                      uint32_t value);

/* CLOCK_MONOTONIC in ns; the thread id of the calling thread (cached). */
uint64_t collector_now(void);
uint32_t collector_tid(void);

/* A number that is new in this process, for correlation of sources that have none; never 0. */
uint64_t collector_correlation(void);

/* True while this process is on its way out (exit hooks ran): hooks then pass calls through. */
bool collector_ended(void);

/* Functions of a source that the core calls. Registered once (static storage), kept across fork. */
struct collector_source {
    enum wire_source source;
    /* Called by the helper thread every 100 ms or so, all signals blocked. The only thread of ours
     * on which a source may call CUPTI. NULL = not wanted. */
    void (*tick)(void);
    /* Called when the process ends by return, exit, _exit or quick_exit, or is about to exec, on
     * the thread that ends it; on the helper thread when a deadly signal or abort() ends it
     * (collector_dying): publish what is complete, mark the rest. Called again when an exec failed
     * and the process ends later. Never in a forked child for its parent's events. */
    void (*at_exit)(void);
    /* Called in a forked child at its first event, before anything else: drop every pending thing
     * inherited from the parent without calling the driver or any collector_ function. */
    void (*forked)(void);
    /* Recording begins or stops in this process (below). Called on the program's thread when a mark
     * of the program's own did it, so that the very next call is recorded; else on the helper
     * thread, at its next tick. Never two at a time. NULL = not wanted. */
    void (*recording)(bool on);
    /* The program unloaded a library (dlclose returned), on its thread. NULL = not wanted. */
    void (*unloaded)(void);
    /* The spool was made, on the thread with the first event, all signals but SIGSYS blocked. NULL
     * = not wanted. */
    void (*born)(void);
};
void collector_register(const struct collector_source *source);

/* Has the source registered in this process? */
bool collector_attached(enum wire_source source);

/* Run the ticks soon, from any thread: one system call, none when already requested. */
void collector_wake(void);

/* Is the calling thread the helper thread? */
bool collector_is_helper(void);

/* Option text handed over by `perfkit run` in PERFKIT_OPTIONS, "name=value,name=value"
 * (cli/run_environment.c, cli/run_scope.c): the value of `name` copied into value[size]
 * (NUL-terminated), or false when it is not there. Names of ranges have '%' and ',' as %XX. */
bool collector_option(const char *name, char *value, size_t size);

/* The spool folder (PERFKIT_DIR), or NULL. */
const char *collector_directory(void);

/* Is `domain` ("cuda", "nvtx", "opencl") within --trace? True when no --trace was given. */
bool collector_traces(const char *domain);

/* ---- When to record (core/window.c). A capture may record only within windows of time: between
 * `perfkit ctl start` and `stop`, after --delay, inside a range of --capture-range. Without such an
 * option the window is open from the start and never closes.
 *
 * Is a window open now? What begins while it is false is not recorded and not counted; what began
 * inside a window is recorded to its end. Three loads, with --capture-range four; never false
 * without such an option. */
bool collector_recording(void);

/* In a pause of --overhead=measure, and with a budget (--overhead=PERCENT): the page, which names
 * the NVTX range that is an iteration and always recorded. NULL: neither now. */
const struct control_page *collector_pause(void);

/* An iteration begins: with a budget it may be the first of some that are recorded, or left out; a
 * pause begins or ends with it. Call it before collector_recording. */
void collector_iteration(void);

/* Is it still to be timed what the program takes before CUPTI is switched on? NVTX and OpenCL are
 * recorded then. */
bool collector_bare(void);

/* May recording be switched off and on again? Not known of `perfkit ctl`. */
bool collector_windows_expected(void);

/* Did a pause begin or end, and will the sources hear of it when the next iteration begins? */
bool collector_awaits_iteration(void);

/* Will there be such pauses, or iterations left out? They are short, so what follows windows must
 * follow at once. */
bool collector_pauses(void);

/* Was a window open at `time` (CLOCK_MONOTONIC)? For records that come after the fact; keeps the
 * last windows only, older times count as their oldest. */
bool collector_recorded_at(uint64_t time);

/* The program's own mark opens or closes a window: the begin and end of a capture range. Opens
 * nest. Has an effect only when --capture-range names that kind of mark. */
void collector_window(bool open, enum wire_window_reason reason);

/* A thread of the program made events that are recorded by another: its name is followed too. One
 * load when it was seen before. */
void collector_saw_thread(uint32_t tid);

/* ---- The end of the process (core/lifecycle.c, core/death.c)
 *
 * For a source's at_exit: not all of its device records could be fetched. */
void collector_unflushed(void);

/* For a source with a backend of its own buffers: all device work that ended before `time`
 * (CLOCK_MONOTONIC) has been handed over. */
void collector_fetched(uint64_t time);

/* For host/, in the handler of a signal whose default action is about to end the process, or before
 * abort(): the helper thread runs every source's at_exit while the caller waits, at most 2 s, and
 * at most 1 s for it to begin. Atomics and futexes only. A second thread of the process that dies
 * waits for the first one to end it. On the helper thread itself, at work for a thread that dies,
 * it never returns: the process must end by the signal that it would have ended by without us. */
void collector_death(void);

/* Is a thread waiting in collector_death? */
bool collector_dying(void);

/* For host/: the functions that end this process are ours (the library was preloaded), so an end
 * that is not seen passed none of them. Before collector_hello. */
void collector_hooked(void);

/* For host/: the process ends now (`how`: LIFECYCLE_* of libprof/spool/lifecycle.h, status as in
 * exit) or is about to be replaced by exec. Runs every source's at_exit once, hands the threads'
 * chunks back. collector_revive undoes it when an exec failed. */
void collector_end(unsigned how, int status);
void collector_revive(void);

/* For host/: facts (LIFECYCLE_OTHER_*) for this process's entry in the table of processes. */
void collector_note_fact(uint32_t facts);

/* For host/: before an exec. The next program begins anew: can it reach the spool folder from here?
 * When this process has another root folder, /dev/shm or user than at its start, it says so. */
void collector_check_reach(void);

/* For host/: the program unloaded a library. */
void collector_unloaded(void);

/* For host/: this process exists (constructor of the preloaded library, or the first event).
 * Writes the lifecycle entry once. Costs no spool. */
void collector_hello(int argc, char *const *argv);

#endif
