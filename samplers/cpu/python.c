/* When frames are read, and what becomes of them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/clock.h"
#include "samplers/cpu/python.h"

#define MAX_TRIES 3u         /* of a reading */
#define MAX_THREADS 8192u    /* of an interpreter's list */
#define MAX_CODES (1u << 18) /* of a process */
#define MAX_LINES 65536u     /* bytes of a table of lines */
#define OFF_NS 1000000u      /* a thread that is off its processor for so long is read */
#define LOOK_AGAIN_NS                                                                              \
    100000000u          /* for the state of a thread, or for an interpreter, that was not          \
                           there */
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
    uint64_t look_ns; /* not before that */
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
    return calloc(1, sizeof(struct cpu_python));
}

void cpu_python_look_again(struct cpu_python *python)
{
    if (!python->found)
        python->looked = false;
}

void cpu_python_free_process(struct cpu_python *python)
{
    if (!python)
        return;
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
    uint64_t now = prof_now_ns();
    if (python->found || python->looked || now < python->look_ns)
        return python->found;
    python->look_ns = now + LOOK_AGAIN_NS;
    python->found = cpu_python_find(&pythons->memory, &python->interpreter, &version, &why);
    python->looked = python->found || *why;
    if (*why)
        note_refusal(pythons, version, why);
    return python->found;
}

static bool state_is_of(const struct python_layout *layout, python_reader read, uint64_t state,
                        uint64_t main, uint32_t tid)
{
    uint64_t owner, number = 0, thread;
    uint32_t found = 0;
    if (!python_pointer(read, state, layout->thread_interpreter, &owner) || owner != main)
        return false;
    if (layout->thread_native_id != PYTHON_NONE &&
        python_load(read, state + layout->thread_native_id, &number, sizeof number) &&
        number == tid)
        return true;
    return python_load(read, state + layout->thread_id, &thread, sizeof thread) &&
           python_load(read, thread + PTHREAD_TID, &found, sizeof found) && found == tid;
}

/* The thread's state in the main interpreter; 0 = it has none. */
static uint64_t find_state(const struct cpu_interpreter *in, python_reader read,
                           struct cpu_python_thread *thread, uint64_t main, uint32_t tid)
{
    const struct python_layout *layout = &in->layout;
    if (thread->state && state_is_of(layout, read, thread->state, main, tid))
        return thread->state;
    thread->state = 0;
    uint64_t now = prof_now_ns(), state;
    if (thread->absent && now - thread->absent < LOOK_AGAIN_NS)
        return 0;
    bool ok = python_pointer(read, main, layout->interpreter_threads, &state);
    for (unsigned i = 0; ok && state && i < MAX_THREADS; i++) {
        if (state_is_of(layout, read, state, main, tid))
            return thread->state = state;
        ok = python_pointer(read, state, layout->thread_next, &state);
    }
    thread->absent = now;
    return 0;
}

/* ---- code objects ---------------------------------------------------------------------------- */

static uint64_t code_word(python_reader read, uint64_t code, unsigned offset)
{
    uint64_t word = 0;
    python_load(read, code + offset, &word, sizeof word);
    return word;
}

/* Addresses are used again after code is freed: what differs from one object to the next there. */
static uint64_t print_code(const struct cpu_interpreter *in, python_reader read, uint64_t code)
{
    const struct python_layout *layout = &in->layout;
    const uint16_t parts[] = {layout->code_name,  layout->code_file,      layout->code_lines,
                              layout->code_names, layout->code_constants, layout->code_version};
    uint64_t print = 0;
    uint32_t line = 0, version = 0;
    for (size_t i = 0; i + 1 < sizeof parts / sizeof parts[0]; i++)
        print = (print + code_word(read, code, parts[i])) * 0x9e3779b97f4a7c15ull;
    python_load(read, code + layout->code_first_line, &line, sizeof line);
    if (layout->code_version != PYTHON_NONE)
        python_load(read, code + layout->code_version, &version, sizeof version);
    return (print + ((uint64_t)version << 32 | line)) * 0x9e3779b97f4a7c15ull;
}

static uint32_t send_text(struct cpu_pythons *pythons, const struct cpu_interpreter *in,
                          uint64_t object)
{
    char text[PYTHON_TEXT_MOST + 1];
    size_t bytes = python_text(&in->it, &pythons->memory.reader, object, text, PYTHON_TEXT_MOST);
    text[bytes] = '\0';
    return bytes ? spool_out_text(pythons->spool, text) : 0;
}

/* Send what the code object says; 0 = it is none, or there is no room. */
static uint32_t send_code(struct cpu_pythons *pythons, const struct cpu_interpreter *in,
                          uint64_t code)
{
    _Alignas(8) unsigned char buffer[WIRE_MAX_RECORD];
    struct wire_python_code *record = (struct wire_python_code *)(void *)buffer;
    const struct python_layout *layout = &in->layout;
    python_reader read = &pythons->memory.reader;
    uint64_t lines = code_word(read, code, layout->code_lines), total = 0, at = 0;
    uint32_t first_line = 0;
    if (!python_is(read, lines, in->it.bytes_type) ||
        !python_load(read, lines + PYTHON_OBJECT_SIZE, &total, sizeof total) ||
        !python_load(read, code + layout->code_first_line, &first_line, sizeof first_line))
        return 0;
    if (total > MAX_LINES)
        total = MAX_LINES;
    *record = (struct wire_python_code){
        .function = send_text(pythons, in, code_word(read, code, layout->code_name)),
        .file = send_text(pythons, in, code_word(read, code, layout->code_file)),
        .first_line = first_line,
        .version = layout->version,
        .total = (uint32_t)total,
    };
    uint32_t id = record->function && record->file ? spool_out_id(pythons->spool) : 0;
    bool ok = id && id <= WIRE_PYTHON_CODE_MOST;
    do {
        uint64_t bytes = total - at < WIRE_PYTHON_LINES ? total - at : WIRE_PYTHON_LINES;
        uint64_t size = (sizeof *record + bytes + 7) & ~7ull;
        memset(buffer + sizeof *record, 0, sizeof buffer - sizeof *record);
        ok = ok &&
             (!bytes || python_load(read, lines + PYTHON_BYTES_DATA + at, record->table, bytes));
        record->head = (struct wire_head){(uint16_t)size, WIRE_PYTHON_CODE, 0, id};
        record->at = (uint32_t)at;
        record->bytes = (uint32_t)bytes;
        ok = ok && spool_out_define(pythons->spool, record);
        at += bytes;
    } while (ok && at < total);
    return ok ? id : 0;
}

static uint32_t code_id_of(struct cpu_pythons *pythons, struct cpu_python *python, uint64_t code)
{
    uint64_t print = print_code(&python->interpreter, &pythons->memory.reader, code);
    uint64_t *slot = prof_map_get(&python->at, code);
    if (slot && python->codes.data[*slot].print == print)
        return python->codes.data[*slot].id;
    if (python->codes.count >= MAX_CODES)
        return 0;
    uint32_t id = send_code(pythons, &python->interpreter, code);
    if (!id || !prof_array_push(&python->codes, (struct known_code){print, id}))
        return 0;
    prof_map_put(&python->at, code, python->codes.count - 1);
    return id;
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
        uint64_t id = code_id_of(pythons, python, walk->frames[i].code);
        if (!id) { /* freed meanwhile */
            free(reading);
            return NULL;
        }
        reading->entries[i] =
            (uint64_t)WIRE_ENTRY_PYTHON << WIRE_ENTRY_SHIFT | id << 32 | walk->frames[i].offset;
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
            !main || !(state = find_state(in, &memory->reader, thread, main, tid)))
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
    uint64_t event;
    memcpy(&event, record + 1, sizeof event);
    for (unsigned i = 0; sample && i < perf->count; i++) {
        if (perf->rings[i].switch_id && perf->rings[i].switch_id == event)
            return; /* the switch itself follows */
    }
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
    for (size_t i = 0; i < pythons->stopped.count; i++) {
        uint32_t tid = pythons->stopped.data[i];
        struct cpu_thread *thread = cpu_tasks_find(pythons->tasks, tid);
        if (!thread || !thread->python || !thread->process->python)
            continue; /* it ended, or is another program */
        struct cpu_python_thread *frames = thread->python;
        uint64_t now = prof_now_ns();
        if (frames->off && (now < frames->at_ns || now - frames->at_ns < OFF_NS)) {
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
