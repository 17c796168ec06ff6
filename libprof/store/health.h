/* What the rows of capture_health may say: each code with its level, in one list. Who writes a row
 * names the code; readers decide by level and code and never by the words. */
#ifndef PERFKIT_STORE_HEALTH_H
#define PERFKIT_STORE_HEALTH_H

/* Rising; those of prof_capture.h. */
#define PROF_HEALTH_LEVEL_MAP(X)                                                                   \
    X(NOTE, "note") X(WARNING, "warning") X(RISK, "risk") X(LOSS, "loss")
enum prof_health_level {
#define X(name, text) PROF_HEALTH_##name,
    PROF_HEALTH_LEVEL_MAP(X)
#undef X
};

/* clang-format off */
/* Code, level, subject and item of its rows (NULL: of several, or no row: made of the balances),
 * meaning, remedy ("" = none is needed). */
#define PROF_HEALTH_MAP(X) \
    X(count, NOTE, NULL, NULL, "a count of a balance or of graph work", "") \
    X(record_room, LOSS, "record", "room", "records were dropped, and why", "--spool-limit, --spool-dir; record less (--trace, --kernel)") \
    X(record_dropped, LOSS, "record", "dropped", "records of one type that found no room in the spool", "as for record_room") \
    X(record_marks_dropped, LOSS, "record", "dropped", "marks of when recording began and stopped that found no room", "as for record_room") \
    X(record_definitions_dropped, LOSS, "record", "definitions_dropped", "names and other definitions that found no room", "as for record_room") \
    X(record_backend_dropped, LOSS, "record", "backend_dropped", "records that the vendor's library dropped", "record less at a time (--capture-range)") \
    X(record_reentered, LOSS, "record", "reentered", "records given up because a signal handler interrupted a write (earlier versions)", "make no GPU or NVTX calls in signal handlers") \
    X(record_damaged, LOSS, "record", "damaged", "spool chunks, records or files that could not be read", "check disk and memory; record again") \
    X(record_truncated, LOSS, "record", "truncated", "spool files cut short (earlier versions)", "record again") \
    X(record_unseen, LOSS, "record", "unseen", "calls through entry points that bypass the collector", "link the program with the vendor's library in the usual way") \
    X(record_unprofiled, WARNING, "record", "unprofiled", "commands whose queue refused profiling: no device times", "create queues with CL_QUEUE_PROFILING_ENABLE") \
    X(record_times_missing, WARNING, "record", "times_missing", "device records that came without times", "") \
    X(record_times_repaired, WARNING, "record", "times_repaired", "device times put back into order", "") \
    X(record_orphan_times, WARNING, "record", "orphan_times", "device times whose command was dropped", "as for record_room") \
    X(record_stacks_unsent, WARNING, "record", "stacks_unsent", "stacks without room in their table or the spool", "fewer stacks: --stacks with fewer kinds of calls") \
    X(record_stacks_cut, WARNING, "record", "stacks_cut", "stacks deeper than the limit", "") \
    X(record_stacks_ended, WARNING, "record", "stacks_ended", "stacks that ended early: a caller was not found", "compile with unwind tables or frame pointers") \
    X(record_stacks_beyond, WARNING, "record", "stacks_beyond", "stacks that ended in one of too many object files", "") \
    X(record_python_untold, WARNING, "record", "python_untold", "Python frames without a name: no room for their code", "") \
    X(record_outside, NOTE, "record", "outside", "records left out: recording was off at their time", "") \
    X(record_filtered, NOTE, "record", "filtered", "kernels left out by --kernel", "") \
    X(record_open, NOTE, "record", "open", "NVTX ranges that were never closed: they last to the end", "close them, if their GPU time matters") \
    X(process_dropped, LOSS, "process", "dropped", "processes without room in the table of processes", "record a part of the processes") \
    X(part_incomplete, LOSS, "part", "incomplete", "a file that lacks something, merged", "recover or record that part again") \
    X(part_missing, LOSS, "part", "missing", "ranks that are in none of the merged files", "give all files, or --subset") \
    X(part_twice, WARNING, "part", "twice", "ranks that are in several of the merged files", "give each rank once") \
    X(part_mixed, WARNING, "part", "mixed", "merged files of different runs", "give the files of one run") \
    X(part_recovered, WARNING, "part", "recovered", "a merged file was finished by perfkit recover", "") \
    X(part_summary, WARNING, "part", "summary", "merged with --summary: no single events", "merge without --summary") \
    X(part_copy, NOTE, "part", "copy", "a file given twice, left out", "") \
    X(part_subset, NOTE, "part", "subset", "ranks left out, as requested", "") \
    X(part_filtered, NOTE, "part", "filtered", "a merged file has kernels of a filter only", "") \
    X(clock_assumed, WARNING, "clock", "assumed", "hosts compared by their wall clocks only", "synchronize the hosts' clocks (chrony, PTP)") \
    X(clock_unknown, WARNING, "clock", "unknown", "merged files without a wall clock", "") \
    X(clock_collectives, NOTE, "clock", "collectives", "collectives that not all compared ranks have", "perfkit report --ranks; a rank of a smaller group lacks them rightly") \
    X(import_lost, LOSS, "import", "lost", "what the imported file says it lost", "") \
    X(import_note, NOTE, "import", NULL, "where an import came from and what it left out", "") \
    X(collector_running, NOTE, "collector", NULL, "a collector works", "") \
    X(collector_refused, LOSS, "collector", NULL, "a requested collector could not run", "the note says why; perfkit doctor") \
    X(collector_degraded, WARNING, "collector", NULL, "a collector runs with a limit, or a sampler does not", "the note says why; perfkit doctor") \
    X(collector_contended, WARNING, "collector", NULL, "the program uses CUPTI itself", "stop its own profiler, or --cupti=yield") \
    X(collector_yielded, NOTE, "collector", NULL, "CUPTI was left to the program, as requested", "") \
    X(collector_nested, WARNING, "collector", "nested", "a perfkit run inside the program recorded a part of it", "look at that capture too") \
    X(collector_ended, NOTE, "collector", NULL, "a collector ended", "") \
    X(collector_note, NOTE, "collector", NULL, "a note of a collector or of perfkit run", "") \
    X(block_bad, NOTE, "block", "bad", "lines of PyTorch's memory history that made no sense", "") \
    X(risk_device_records, RISK, "risk", "device_records", "the process ended without a last flush: its last device records may be missing", "end the program by exit or a signal that it handles") \
    X(end_unseen, WARNING, "end", "unseen", "the process ended without an exit hook", "") \
    X(end_signal, WARNING, "end", "signal", "the process was killed by a signal", "") \
    X(end_running, WARNING, "end", "running", "the process was still running when the capture was closed", "") \
    X(end_normal, NOTE, "end", NULL, "the process ended as it wanted", "") \
    X(other, NOTE, NULL, NULL, "a line of an earlier or later version", "") \
    X(balance_missing, LOSS, NULL, NULL, "calls or records that are unaccounted for", "report it: a fault of perfkit") \
    X(balance_dropped, LOSS, NULL, NULL, "records of a kind of call that found no room", "as for record_room") \
    X(balance_unanswered, LOSS, NULL, NULL, "launches without a device record; a warning where that may be", "") \
    X(balance_unreturned, WARNING, NULL, NULL, "calls that had not returned when the process ended", "") \
    X(balance_unfinished, WARNING, NULL, NULL, "device work that had not finished when the capture ended", "synchronize before the end") \
    X(balance_uncalled, WARNING, NULL, NULL, "device records without their calls: the process was cut off first", "") \
    X(capture_unfinished, LOSS, NULL, NULL, "the capture is still being written, or perfkit was killed", "wait, or perfkit recover") \
    X(capture_unknown_end, LOSS, NULL, NULL, "the capture does not say how it ended", "") \
    X(capture_recovered, WARNING, NULL, NULL, "finished by perfkit recover", "") \
    X(capture_windows, NOTE, NULL, NULL, "recorded in part of the time, as requested", "") \
    X(capture_ring, NOTE, "ring", "left", "rows deleted by a recording with --ring, which keeps its last part", "") \
    X(capture_kept, NOTE, "ring", "kept", "why this copy of a recording with --ring was kept", "") \
    X(ring_unkept, WARNING, "ring", "unkept", "triggers of a recording with --ring without a copy", "raise --ring-limit, or use --ring-rotate") \
    X(graph_ends, NOTE, "kernel", "ends", "kernels of CUDA graphs whose end is not known, since recording paused before the graph was replayed again", "") \
    X(budget_kept, NOTE, "overhead", "kept", "recording cost at most the share of --overhead=PERCENT", "") \
    X(budget_exceeded, WARNING, "overhead", "exceeded", "recording cost more than the share of --overhead=PERCENT", "a longer run; a larger share") \
    X(budget_unknown, WARNING, "overhead", "unknown", "the cost of recording was not measured, so it may exceed --overhead=PERCENT", "a longer run, with NVTX ranges that repeat") \
    X(stalls_dropped, WARNING, NULL, NULL, "samples of instructions that the hardware dropped, or for which there was no room", "sample less often: --stalls=PERIOD") \
    X(stalls_full, WARNING, NULL, NULL, "the hardware's buffer for samples of instructions was full", "as for stalls_dropped") \
    X(stalls_none, WARNING, NULL, NULL, "--stalls sampled no instruction", "the note says why") \
    X(capture_filtered, NOTE, NULL, NULL, "only kernels of a filter have rows, as requested", "")
/* clang-format on */

enum prof_health_code {
#define X(name, ...) PROF_HEALTH_##name,
    PROF_HEALTH_MAP(X)
#undef X
        PROF_HEALTH_CODES
};

struct prof_health {
    const char *code;
    enum prof_health_level level;
    const char *subject, *item, *meaning, *remedy;
};
extern const struct prof_health prof_health[PROF_HEALTH_CODES];

/* "note", "warning", "risk", "loss" */
const char *prof_health_level_text(enum prof_health_level level);
/* PROF_HEALTH_other when the text is of none. */
enum prof_health_code prof_health_find(const char *code);
/* What rows of captures without codes mean, by their words. For the migration of such captures only
 * (schema.c). */
enum prof_health_code prof_health_guess(const char *subject, const char *item, const char *note);

#endif
