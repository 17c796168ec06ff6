/* When frames are read, and what becomes of them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/clock.h"
#include "samplers/cpu/python.h"

#define MAX_TRIES 3u         /* of a reading */
#define MAX_THREADS 8192u    /* of an interpreter's list */
#define MAX_CODES (1u << 18) /* of a process */
#define OFF_NS 1000000u      /* a thread that is off its processor for so long is read */
#define LOOK_AGAIN_NS                                                                              \
    100000000u /* for the state of a thread, or for an interpreter, that was not                   \
                  there */
#define MOST_WAIT_NS 10000000000u /* for an interpreter that is still not there */
#define LIST_SHARE 20u  /* walks through the list of threads take at most one part of so many */
#define MAX_PENDING 16u /* readings of a thread whose records are still to come */

/* glibc's struct pthread: the kernel's number of the thread (before 3.11 Python does not have it).
 */
#if defined(__x86_64__)
#define PTHREAD_TID 720u
#else
#define PTHREAD_TID 208u
#endif

struct known_code {
    uint64_t print;
    uint32_t id;
};

struct cpu_python {
    bool found, looked;
    uint64_t look_ns, wait_ns; /* not before that; what is waited the next time */
    uint64_t list_ns;          /* likewise for the list of threads */
    struct prof_map states;    /* tid -> state, as the list had them: to be looked at again */
    struct cpu_interpreter interpreter;
    struct prof_map at; /* address of a code object -> index */
    PROF_ARRAY(struct known_code) codes;
};

struct cpu_python_thread {
    uint64_t at_ns;     /* of the newest record */
    uint64_t sample_ns; /* of the newest sample */
    bool off;           /* by that record, it does not run */
    bool listed;        /* among those to be read while they are off */
    uint64_t state;     /* of the interpreter, 0 = not known */
    uint64_t absent;    /* it had none then; 0 = not looked */
    PROF_ARRAY(struct cpu_reading *) readings;
};

struct cpu_python *cpu_python_new(void)
{
    struct cpu_python *python = calloc(1, sizeof *python);
    if (python)
        python->wait_ns = LOOK_AGAIN_NS;
    return python;
}

void cpu_python_look_again(struct cpu_python *python)
{
    if (!python->found)
        python->looked = false;
    python->wait_ns = LOOK_AGAIN_NS;
    python->look_ns = 0;
}

void cpu_python_free_process(struct cpu_python *python)
{
    if (!python)
        return;
    prof_map_free(&python->states);
    prof_map_free(&python->at);
    prof_array_free(&python->codes);
    free(python);
}

void cpu_python_free_thread(struct cpu_python_thread *thread)
{
    if (!thread)
        return;
    for (size_t i = 0; i < thread->readings.count; i++)
        free(thread->readings.data[i]);
    prof_array_free(&thread->readings);
    free(thread);
}

void cpu_pythons_free(struct cpu_pythons *pythons)
{
    cpu_memory_end(&pythons->memory);
    prof_array_free(&pythons->wanted);
    prof_array_free(&pythons->stopped);
    prof_array_free(&pythons->refusals);
}

/* ---- the interpreter and its threads --------------------------------------------------------- */

static void note_refusal(struct cpu_pythons *pythons, unsigned version, const char *why)
{
    for (size_t i = 0; i < pythons->refusals.count; i++) {
        if (pythons->refusals.data[i].version == version && pythons->refusals.data[i].why == why)
            return;
    }
    prof_array_push(&pythons->refusals, (struct cpu_refusal){version, why});
}

static bool find_interpreter(struct cpu_pythons *pythons, struct cpu_python *python)
{
    unsigned version;
    const char *why;
    uint64_t now = prof_now_ns(), refused = pythons->memory.refused;
    if (python->found || python->looked || now < python->look_ns)
        return python->found;
    python->look_ns = now + python->wait_ns;
    python->wait_ns = python->wait_ns < MOST_WAIT_NS / 2 ? python->wait_ns * 2 : MOST_WAIT_NS;
    python->found = cpu_python_find(&pythons->memory, &python->interpreter, &version, &why);
    if (pythons->memory.refused != refused && !python->found)
        return false; /* it may not have touched that yet */
    python->looked = python->found || *why;
    if (*why)
        note_refusal(pythons, version, why);
    return python->found;
}

/* By glibc's record of the thread; 0 = not known. */
static uint32_t tid_of_pthread(const struct python_layout *layout, python_reader read,
                               uint64_t state)
{
    uint64_t thread;
    uint32_t tid = 0;
    if (python_load(read, state + layout->thread_id, &thread, sizeof thread))
        python_load(read, thread + PTHREAD_TID, &tid, sizeof tid);
    return tid;
}

static uint64_t tid_of_state(const struct python_layout *layout, python_reader read, uint64_t state)
{
    uint64_t tid = 0;
    if (layout->thread_native_id != PYTHON_NONE)
        python_load(read, state + layout->thread_native_id, &tid, sizeof tid);
    return tid ? tid : tid_of_pthread(layout, read, state);
}

static bool state_is_of(const struct python_layout *layout, python_reader read, uint64_t state,
                        uint64_t main, uint32_t tid)
{
    uint64_t owner;
    return python_pointer(read, state, layout->thread_interpreter, &owner) && owner == main &&
           (tid_of_state(layout, read, state) == tid || tid_of_pthread(layout, read, state) == tid);
}

/* One walk serves all threads: there may be thousands. */
static uint64_t list_states(struct cpu_python *python, python_reader read, uint64_t main,
                            uint32_t tid)
{
    const struct python_layout *layout = &python->interpreter.layout;
    uint64_t state, found = 0;
    prof_map_free(&python->states);
    bool ok = python_pointer(read, main, layout->interpreter_threads, &state);
    for (unsigned i = 0; ok && state && i < MAX_THREADS; i++) {
        uint64_t other = tid_of_state(layout, read, state);
        if (other)
            prof_map_put(&python->states, other, state);
        if (!found && state_is_of(layout, read, state, main, tid))
            found = state;
        ok = python_pointer(read, state, layout->thread_next, &state);
    }
    return found;
}

/* The thread's state in the main interpreter; 0 = it has none. */
static uint64_t find_state(struct cpu_python *python, python_reader read,
                           struct cpu_python_thread *thread, uint64_t main, uint32_t tid)
{
    const struct python_layout *layout = &python->interpreter.layout;
    if (thread->state && state_is_of(layout, read, thread->state, main, tid))
        return thread->state;
    uint64_t *listed = prof_map_get(&python->states, tid), now = prof_now_ns();
    thread->state = 0;
    if (listed && state_is_of(layout, read, *listed, main, tid))
        return thread->state = *listed;
    if (now < python->list_ns || (thread->absent && now - thread->absent < LOOK_AGAIN_NS))
        return 0;
    thread->state = list_states(python, read, main, tid);
    uint64_t end = prof_now_ns();
    python->list_ns = end + (end - now) * LIST_SHARE;
    if (!thread->state)
        thread->absent = now;
    return thread->state;
}

/* ---- code objects ---------------------------------------------------------------------------- */

static uint64_t code_word(python_reader read, uint64_t code, unsigned offset)
{
    uint64_t word = 0;
    python_load(read, code + offset, &word, sizeof word);
    return word;
}

/* False: it is no str. An empty one, or one that is not compact, has no text. */
static bool read_name(struct cpu_pythons *pythons, const struct cpu_interpreter *in,
                      uint64_t object, char text[PYTHON_TEXT_MOST + 1])
{
    python_reader read = &pythons->memory.reader;
    if (!python_is(read, object, in->it.text_type))
        return false;
    text[python_text(&in->it, read, object, text, PYTHON_TEXT_MOST)] = '\0';
    return true;
}

/* Send what was read of a code object, with its `total` bytes of lines; 0 = there is no room. */
static uint32_t send_code(struct cpu_pythons *pythons, struct wire_python_code what,
                          const char *function, const char *file)
{
    _Alignas(8) unsigned char buffer[WIRE_MAX_RECORD];
    struct wire_python_code *record = (struct wire_python_code *)(void *)buffer;
    uint32_t at = 0;
    what.function = *function ? spool_out_text(pythons->spool, function) : 0;
    what.file = *file ? spool_out_text(pythons->spool, file) : 0;
    uint32_t id = spool_out_id(pythons->spool);
    bool ok = id <= WIRE_PYTHON_CODE_MOST;
    do {
        uint32_t left = what.total - at,
                 bytes = left < WIRE_PYTHON_LINES ? left : WIRE_PYTHON_LINES;
        uint64_t size = (sizeof *record + bytes + 7) & ~7ull;
        memset(buffer, 0, sizeof buffer);
        *record = what;
        memcpy(record->table, pythons->lines + at, bytes);
        record->head = (struct wire_head){(uint16_t)size, WIRE_PYTHON_CODE, 0, id};
        record->at = at;
        record->bytes = bytes;
        ok = ok && spool_out_define(pythons->spool, record);
        at += bytes;
    } while (ok && at < what.total);
    return ok ? id : 0;
}

/* Read it whole before anything is sent. False: it is none, or changed meanwhile; else *id is 0
 * when there was no room. */
static bool define_code(struct cpu_pythons *pythons, const struct cpu_interpreter *in,
                        uint64_t code, uint64_t print, uint32_t *id)
{
    const struct python_layout *layout = &in->layout;
    python_reader read = &pythons->memory.reader;
    char function[PYTHON_TEXT_MOST + 1], file[PYTHON_TEXT_MOST + 1];
    uint64_t lines = code_word(read, code, layout->code_lines), total = 0;
    uint32_t first_line = 0;
    if (!python_is(read, lines, in->it.bytes_type) ||
        !python_load(read, lines + PYTHON_OBJECT_SIZE, &total, sizeof total) ||
        !python_load(read, code + layout->code_first_line, &first_line, sizeof first_line) ||
        !read_name(pythons, in, code_word(read, code, layout->code_name), function) ||
        !read_name(pythons, in, code_word(read, code, layout->code_file), file))
        return false;
    if (total > CPU_MOST_LINES)
        total = CPU_MOST_LINES;
    if (total && !python_load(read, lines + PYTHON_BYTES_DATA, pythons->lines, total))
        return false;
    cpu_memory_forget(&pythons->memory);
    if (python_code_print(layout, read, code) != print)
        return false;
    struct wire_python_code what = {
        .first_line = first_line, .version = layout->version, .total = (uint32_t)total};
    *id = send_code(pythons, what, function, file);
    return true;
}

/* False: it is no code, or was freed meanwhile. What finds no room has the id 0, and is not sent
 * again. */
static bool find_code_id(struct cpu_pythons *pythons, struct cpu_python *python, uint64_t code,
                         uint32_t *id)
{
    const struct cpu_interpreter *in = &python->interpreter;
    uint64_t print = python_code_print(&in->layout, &pythons->memory.reader, code);
    uint64_t *slot = prof_map_get(&python->at, code);
    *id = 0;
    if (slot && python->codes.data[*slot].print == print) {
        *id = python->codes.data[*slot].id;
        return true;
    }
    if (python->codes.count >= MAX_CODES || !prof_array_reserve(&python->codes, 1))
        return true;
    if (!define_code(pythons, in, code, print, id))
        return false;
    if (prof_map_put(&python->at, code, python->codes.count))
        prof_array_push(&python->codes, (struct known_code){print, *id});
    return true;
}

/* ---- a reading ------------------------------------------------------------------------------- */

static struct cpu_reading *new_reading(const struct python_walk *walk)
{
    size_t entries = walk->frame_count * sizeof(uint64_t);
    size_t loops = walk->loop_count * sizeof(struct python_loop);
    struct cpu_reading *reading = malloc(sizeof *reading + entries + loops);
    if (!reading)
        return NULL;
    *reading = (struct cpu_reading){
        .frame_count = walk->frame_count,
        .loop_count = walk->loop_count,
        .cut = walk->cut,
        .loops = (struct python_loop *)(void *)(reading->entries + walk->frame_count)};
    memcpy(reading->loops, walk->loops, loops);
    return reading;
}

/* A chain that was read while it changed breaks off, or ends before the frame that the thread began
 * with: the outermost loop is the one that has no other. */
static bool walk_is_whole(const struct python_walk *walk)
{
    return !walk->ended && (walk->cut || walk->loop_count == 0 || walk->frame_count == 0 ||
                            walk->loops[walk->loop_count - 1].address != 0);
}

static struct cpu_reading *resolve_walk(struct cpu_pythons *pythons, struct cpu_python *python,
                                        const struct python_walk *walk)
{
    struct cpu_reading *reading = new_reading(walk);
    for (unsigned i = 0; reading && i < walk->frame_count; i++) {
        uint32_t id;
        if (!find_code_id(pythons, python, walk->frames[i].code, &id)) { /* freed meanwhile */
            free(reading);
            return NULL;
        }
        pythons->untold += id == 0;
        reading->entries[i] = (uint64_t)WIRE_ENTRY_PYTHON << WIRE_ENTRY_SHIFT | (uint64_t)id << 32 |
                              walk->frames[i].offset;
    }
    return reading;
}

/* NULL = the thread runs no Python, or its frames could not be read. */
static struct cpu_reading *read_thread(struct cpu_pythons *pythons, struct cpu_python *python,
                                       struct cpu_python_thread *thread, uint32_t tid)
{
    struct cpu_memory *memory = &pythons->memory;
    const struct cpu_interpreter *in = &python->interpreter;
    uint32_t pid = memory->pid;
    for (unsigned i = 0; i < MAX_TRIES; i++) {
        struct python_walk walk;
        uint64_t main, state;
        cpu_memory_begin(memory, pid);
        if (!python_pointer(&memory->reader, in->runtime, in->layout.runtime_main, &main) ||
            !main || !(state = find_state(python, &memory->reader, thread, main, tid)))
            return NULL; /* not initialized, or a thread without Python */
        python_walk(&in->it, main, &memory->reader, state, &walk);
        uint64_t read_ns = prof_now_ns();
        if (!walk_is_whole(&walk))
            continue;
        struct cpu_reading *reading =
            walk.frame_count ? resolve_walk(pythons, python, &walk) : NULL;
        if (reading)
            reading->read_ns = read_ns;
        if (reading || !walk.frame_count)
            return reading;
    }
    pythons->torn++;
    return NULL;
}

static void drop_readings(struct cpu_python_thread *thread, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(thread->readings.data[i]);
    thread->readings.count -= count;
    memmove(thread->readings.data, thread->readings.data + count,
            thread->readings.count * sizeof *thread->readings.data);
}

static void read_for_record(struct cpu_pythons *pythons, struct cpu_thread *thread, uint64_t for_ns)
{
    struct cpu_python *python = thread->process->python;
    struct cpu_python_thread *frames = thread->python;
    cpu_memory_begin(&pythons->memory, thread->process->pid);
    if (!find_interpreter(pythons, python))
        return;
    struct cpu_reading *reading = read_thread(pythons, python, frames, thread->tid);
    if (!reading)
        return;
    reading->for_ns = for_ns;
    if (frames->readings.count >= MAX_PENDING)
        drop_readings(frames, 1);
    if (!prof_array_push(&frames->readings, reading)) {
        free(reading);
        return;
    }
    if (for_ns == frames->sample_ns) {
        pythons->readings++;
        pythons->delay_ns += reading->read_ns - for_ns;
    }
}

static void read_sampled_thread(struct cpu_pythons *pythons, struct cpu_thread *thread)
{
    uint64_t for_ns = thread->python->sample_ns;
    if (prof_now_ns() - for_ns > pythons->late_ns)
        pythons->late++;
    else
        read_for_record(pythons, thread, for_ns);
}

/* ---- notes ----------------------------------------------------------------------------------- */

#define SAMPLE_TID_AT 20u
#define TRAILER_TID_BACK 28u

static struct cpu_python_thread *noted_thread(struct cpu_pythons *pythons,
                                              const struct perf_event_header *record, size_t at,
                                              struct cpu_thread **out)
{
    uint32_t tid;
    memcpy(&tid, (const unsigned char *)record + at, sizeof tid);
    struct cpu_thread *thread = cpu_tasks_find(pythons->tasks, tid);
    if (!thread || !thread->process->python)
        return NULL;
    if (!thread->python)
        thread->python = calloc(1, sizeof *thread->python);
    *out = thread;
    return thread->python;
}

void cpu_python_note(struct cpu_pythons *pythons, const struct cpu_perf *perf,
                     const struct perf_event_header *record, uint64_t time_ns)
{
    bool sample = record->type == PERF_RECORD_SAMPLE;
    struct cpu_thread *thread;
    if (!pythons->tasks->pythons || (!sample && record->type != PERF_RECORD_SWITCH))
        return;
    if (sample && cpu_perf_is_stop(perf, record))
        return; /* the switch itself follows */
    struct cpu_python_thread *frames = noted_thread(
        pythons, record, sample ? SAMPLE_TID_AT : record->size - (size_t)TRAILER_TID_BACK, &thread);
    if (!frames || time_ns < frames->at_ns)
        return;
    frames->at_ns = time_ns;
    frames->off = !sample && record->misc & PERF_RECORD_MISC_SWITCH_OUT;
    if (sample && prof_array_push(&pythons->wanted, thread))
        frames->sample_ns = time_ns;
    if (frames->off && !frames->listed)
        frames->listed = prof_array_push(&pythons->stopped, thread->tid);
}

void cpu_python_read(struct cpu_pythons *pythons)
{
    for (size_t i = 0; i < pythons->wanted.count; i++) {
        struct cpu_thread *thread = pythons->wanted.data[i];
        bool again = false; /* several samples of it: only the newest is not too old */
        for (size_t later = i + 1; later < pythons->wanted.count && !again; later++)
            again = pythons->wanted.data[later] == thread;
        if (!again)
            read_sampled_thread(pythons, thread);
    }
    pythons->wanted.count = 0;
    size_t kept = 0;
    uint64_t began = prof_now_ns();
    for (size_t i = 0; i < pythons->stopped.count; i++) {
        uint32_t tid = pythons->stopped.data[i];
        struct cpu_thread *thread = cpu_tasks_find(pythons->tasks, tid);
        if (!thread || !thread->python || !thread->process->python)
            continue; /* it ended, or is another program */
        struct cpu_python_thread *frames = thread->python;
        uint64_t now = prof_now_ns();
        bool full = now - began > pythons->late_ns; /* running threads come first */
        if (frames->off && (full || now < frames->at_ns || now - frames->at_ns < OFF_NS)) {
            pythons->stopped.data[kept++] = tid;
            continue;
        }
        frames->listed = false;
        if (frames->off)
            read_for_record(pythons, thread, frames->at_ns);
    }
    pythons->stopped.count = kept;
}

/* ---- merging --------------------------------------------------------------------------------- */

struct merging {
    const struct cpu_interpreter *in;
    const struct cpu_process *process;
    const struct cpu_chain *native;
    const uint64_t *cfas;
    uint32_t at; /* the next native frame */
    struct cpu_chain *out;
};

static void put_chain_entry(struct merging *m, uint64_t entry)
{
    if (m->out->count < CPU_MOST_ENTRIES)
        m->out->frames[m->out->count++] = entry;
    else
        m->out->cut = true;
}

static bool is_loop(const struct merging *m, uint32_t frame)
{
    uint64_t pc = m->native->frames[frame];
    return pc >= m->in->loop_low && pc < m->in->loop_high;
}

static bool is_of_interpreter(const struct merging *m, uint64_t pc)
{
    return pc >= m->in->it.machine_low && pc < m->in->it.machine_high;
}

/* Native frames before number `end`, without the interpreter's own where they only lead from one
 * function of Python to the next; then pass over the loop, and over the stub that -X perf puts
 * before it. */
static void put_native_until(struct merging *m, uint32_t end, bool innermost)
{
    for (; m->at < end; m->at++) {
        if (innermost || !is_of_interpreter(m, m->native->frames[m->at]))
            put_chain_entry(m, m->native->frames[m->at]);
    }
    m->at += m->at < m->native->count;
    m->at += m->at < m->native->count && !cpu_mapped(m->process, m->native->frames[m->at]);
}

/* Number of the native frame, of those left, that spans the address; the count = none. */
static uint32_t frame_spanning(const struct merging *m, uint64_t address)
{
    uint32_t i = m->at;
    while (i < m->native->count && m->cfas[i] <= address)
        i++;
    return i;
}

/* Was the thread in the loop that the reading begins with? Then what is further in was called by
 * its function. *first = that native frame. */
static bool find_first_loop(const struct merging *m, const struct cpu_reading *reading,
                            uint32_t *first)
{
    uint32_t i = 0, count = m->native->count;
    uint64_t address = reading->loop_count ? reading->loops[0].address : 0;
    while (i < count && !is_loop(m, i))
        i++;
    *first = i;
    uint64_t inner = i ? m->cfas[i - 1] : 0;
    if (i < count && !m->cfas[i])
        return address >= inner; /* nothing is known of its callers */
    return i < count ? address >= inner && address < m->cfas[i]
                     : m->native->cut && address >= inner; /* after what was copied */
}

static void merge_reading(struct merging *m, const struct cpu_reading *reading)
{
    uint32_t first, frame = 0;
    bool same = find_first_loop(m, reading, &first);
    if (same)
        put_native_until(m, first, first < m->native->count);
    for (uint32_t i = 0; i < reading->loop_count; i++) {
        if (same && i > 0)
            put_native_until(m, frame_spanning(m, reading->loops[i].address), false);
        for (; frame < reading->loops[i].end; frame++)
            put_chain_entry(m, reading->entries[frame]);
    }
    if (same && !reading->cut)
        put_native_until(m, m->native->count, false);
    m->out->cut |= reading->cut;
}

void cpu_python_merge(struct cpu_thread *thread, uint64_t for_ns, uint64_t until_ns,
                      const uint64_t *cfas, struct cpu_chain *chain)
{
    struct cpu_python_thread *frames = thread->python;
    size_t i = 0;
    while (frames && i < frames->readings.count && frames->readings.data[i]->for_ns < for_ns)
        i++;
    if (!frames || i == frames->readings.count)
        return;
    const struct cpu_reading *reading = frames->readings.data[i];
    if (reading->for_ns == for_ns && reading->read_ns < until_ns && thread->process->python) {
        struct cpu_chain native = *chain;
        chain->count = 0;
        chain->cut = false;
        struct merging m = {.in = &thread->process->python->interpreter,
                            .process = thread->process,
                            .native = &native,
                            .cfas = cfas,
                            .out = chain};
        merge_reading(&m, reading);
    }
    drop_readings(frames, i);
}
