/* See run_cpu.h. The kernel's events are opened while the target's process still is perfkit's own,
 * so that they begin with its program; the thread starts when nothing is forked any more. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/run_cpu.h"

enum { STACK_DWARF, STACK_FP };
const char *const cpu_stack_words[] = {[STACK_DWARF] = "dwarf", [STACK_FP] = "fp", NULL};
const char *const cpu_blocked_words[] = {"on", "off", NULL};

/* Copied of each stack. At high rates less, for the buffers hold no more of them. */
static uint32_t copied_bytes(unsigned hz)
{
    return hz <= 250 ? 16384 : hz <= 1000 ? 8192 : 4096;
}

bool cpu_check(const char *command, const struct cpu_options *options)
{
    if (options->hz == 0 && (options->blocked || options->stack)) {
        cli_say(command, "--cpu-sample-%s needs --cpu-sample: give that too",
                options->blocked ? "blocked" : "stack");
        return false;
    }
    return true;
}

void cpu_attach(void *context, pid_t pid)
{
    struct cpu *cpu = context;
    struct cpu_sampler_options options = {
        .directory = cpu->spool,
        .perf = {.pid = pid,
                 .hz = cpu->options->hz,
                 .stack_bytes =
                     cpu->options->stack == STACK_DWARF ? copied_bytes(cpu->options->hz) : 0,
                 .switches = cpu->options->blocked == 0},
    };
    cpu->sampler = cpu_sampler_open(&options, cpu->why_not, sizeof cpu->why_not);
}

void cpu_start(struct cpu *cpu, const char *command, struct prof_ingest *ingest)
{
    if (cpu->sampler && !cpu_sampler_start(cpu->sampler)) {
        snprintf(cpu->why_not, sizeof cpu->why_not, "cannot start a thread: %s", strerror(errno));
        cpu_sampler_close(cpu->sampler);
        cpu->sampler = NULL;
    }
    if (!cpu->why_not[0])
        return;
    char note[480];
    snprintf(note, sizeof note, "--cpu-sample was given, but nothing is sampled: %s", cpu->why_not);
    prof_ingest_note(ingest, PROF_HEALTH_collector_degraded, "cpu-sample degraded", note, NULL);
    cli_say(command, "%s", note);
}

void cpu_stop(struct cpu *cpu)
{
    cpu_sampler_close(cpu->sampler);
    cpu->sampler = NULL;
}
