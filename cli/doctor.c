/* perfkit doctor: what can be recorded on this machine, and what to do about the rest. */
#include <dirent.h>
#include <dlfcn.h>
#include <glob.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cli/capture_end.h"
#include "cli/command.h"
#include "cli/device.h"
#include "cli/installed.h"
#include "cli/run.h"
#include "libprof/base/format.h"
#include "libprof/base/json.h"
#include "libprof/base/regular.h"
#include "samplers/cpu/perf_events.h"
#include "report/columns.h"

enum doctor_level {
    DOCTOR_OK,
    DOCTOR_ABSENT, /* not here and not needed: no NVIDIA driver on a laptop */
    DOCTOR_WARN,   /* something is recorded less well */
    DOCTOR_FAIL,   /* something cannot be recorded although it is here */
};

struct doctor_line {
    const char *group; /* "system", "collector", "cuda", "opencl" */
    const char *name;
    enum doctor_level level;
    char text[400];
    char remedy[400]; /* "" = none */
};

#define DOCTOR_LINES 48

struct doctor {
    struct doctor_line lines[DOCTOR_LINES];
    size_t count;
    char collector[PATH_MAX]; /* "" = not found */
    bool can_nvtx, can_opencl, can_cuda;
};

/* Add a line; remedy may be NULL. */
static void __attribute__((format(printf, 6, 7)))
doctor_add(struct doctor *doctor, const char *group, const char *name, enum doctor_level level,
           const char *remedy, const char *format, ...)
{
    if (doctor->count == DOCTOR_LINES)
        return;
    struct doctor_line *line = &doctor->lines[doctor->count++];
    *line = (struct doctor_line){.group = group, .name = name, .level = level};
    va_list args;
    va_start(args, format);
    vsnprintf(line->text, sizeof line->text, format, args);
    va_end(args);
    if (remedy)
        snprintf(line->remedy, sizeof line->remedy, "%s", remedy);
}

/* ---- the system ------------------------------------------------------------------------------ */

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

static const struct {
    const char *symbol, *domain;
} entry_points[] = {
    {"InitializeInjection", "cuda"},
    {"InitializeInjectionNvtx2", "nvtx"},
    {"clGetLayerInfo", "opencl"},
};

/* Loads the collector and lists the domains whose entry point it has. */
static void probe_collector(void *context, char *reply, size_t size)
{
    void *library = dlopen(context, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(reply, size, "!%s", dlerror());
        return;
    }
    reply[0] = 0;
    for (size_t i = 0; i < sizeof entry_points / sizeof entry_points[0]; i++)
        if (dlsym(library, entry_points[i].symbol))
            prof_append(reply, size, "%s%s", *reply ? ", " : "", entry_points[i].domain);
}

static void doctor_collector(struct doctor *doctor)
{
    struct prof_error err = {0};
    char reply[PROBE_REPLY];
    if (collector_path(doctor->collector, &err)) {
        doctor->collector[0] = '\0';
        doctor_add(doctor, "collector", "library", DOCTOR_FAIL,
                   "install perfkit again, or set PERFKIT_COLLECTOR", "%s", err.message);
        return;
    }
    if (!probe_run(probe_collector, doctor->collector, reply, sizeof reply) || reply[0] == '!') {
        doctor_add(doctor, "collector", "library", DOCTOR_FAIL,
                   "build perfkit on this machine, or for its C library", "%s cannot be loaded: %s",
                   doctor->collector, reply[0] == '!' ? reply + 1 : reply);
        doctor->collector[0] = '\0';
        return;
    }
    doctor->can_nvtx = strstr(reply, "nvtx") != NULL;
    doctor_add(doctor, "collector", "library", DOCTOR_OK, NULL, "%s", doctor->collector);
    if (strpbrk(doctor->collector, " :"))
        doctor_add(doctor, "collector", "path", DOCTOR_WARN,
                   "install perfkit, or move it, to a path without blanks and colons",
                   "LD_PRELOAD%s cannot express it: %show processes end and short-lived children "
                   "are not seen",
                   strchr(doctor->collector, ':') ? " and OPENCL_LAYERS" : "",
                   strchr(doctor->collector, ':') ? "OpenCL is not recorded, and " : "");
    doctor_add(doctor, "collector", "sources", *reply ? DOCTOR_OK : DOCTOR_FAIL,
               *reply ? NULL : "build perfkit again", "built in: %s", *reply ? reply : "none");
}

static void check_shm(struct doctor *doctor)
{
    struct statvfs info;
    if (statvfs("/dev/shm", &info) < 0 || access("/dev/shm", W_OK) < 0) {
        doctor_add(doctor, "system", "/dev/shm", DOCTOR_WARN,
                   "mount a tmpfs there; until then the spool goes to TMPDIR or /tmp",
                   "cannot be written");
        return;
    }
    double bytes = (double)info.f_bavail * (double)info.f_frsize;
    bool small = bytes < 256.0 * 1024 * 1024;
    doctor_add(doctor, "system", "/dev/shm", small ? DOCTOR_WARN : DOCTOR_OK,
               small ? "give it more (mount -o remount,size=1G /dev/shm; docker run "
                       "--shm-size=1g); until then the spool goes to TMPDIR or /tmp"
                     : NULL,
               "%s free", prof_bytes(bytes).text);
}

static void check_limit(struct doctor *doctor, const char *name, int which, const char *effect)
{
    struct rlimit limit;
    if (getrlimit((__rlimit_resource_t)which, &limit) < 0)
        return;
    if (limit.rlim_cur == RLIM_INFINITY)
        doctor_add(doctor, "system", name, DOCTOR_OK, NULL, "unlimited");
    else
        doctor_add(doctor, "system", name, effect ? DOCTOR_WARN : DOCTOR_OK, effect, "%s",
                   prof_bytes((double)limit.rlim_cur).text);
}

static void check_linux_kernel(struct doctor *doctor)
{
    struct utsname name;
    uname(&name);
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool wipe = page != MAP_FAILED && madvise(page, 4096, MADV_WIPEONFORK) == 0;
    if (page != MAP_FAILED)
        munmap(page, 4096);
    doctor_add(doctor, "system", "fork", wipe ? DOCTOR_OK : DOCTOR_FAIL,
               wipe ? NULL : "use Linux 4.14 or newer (and no sandbox that lacks madvise)",
               "MADV_WIPEONFORK %s (%s %s)", wipe ? "works" : "is missing", name.sysname,
               name.release);
    long fd = syscall(SYS_pidfd_open, getpid(), 0);
    if (fd >= 0)
        close((int)fd);
    doctor_add(doctor, "system", "pidfd", fd >= 0 ? DOCTOR_OK : DOCTOR_WARN,
               fd >= 0 ? NULL : "use Linux 5.3 or newer; until then ends of processes are polled",
               "%s", fd >= 0 ? "works" : "is missing");
}

/* By trying: what the level says is not what a sandbox allows. */
static void check_perf_events(struct doctor *doctor)
{
    struct cpu_perf perf;
    struct cpu_perf_options options = {.pid = getpid(), .hz = 1, .switches = true};
    char why[300];
    int level = 0;
    bool known = cpu_perf_paranoid(&level);
    if (!cpu_perf_open(&perf, &options, why, sizeof why)) {
        doctor_add(doctor, "system", "perf events", known ? DOCTOR_WARN : DOCTOR_ABSENT,
                   known ? why : NULL, "perfkit run --cpu-sample samples nothing%s%s",
                   known ? "" : ": ", known ? "" : why);
        return;
    }
    bool kernel = perf.kernel;
    cpu_perf_close(&perf);
    doctor_add(doctor, "system", "perf events", kernel ? DOCTOR_OK : DOCTOR_WARN,
               kernel
                   ? NULL
                   : "sysctl kernel.perf_event_paranoid=1, or CAP_PERFMON for perfkit: until then "
                     "--cpu-sample does not see where threads block, nor time in the kernel",
               "perf_event_paranoid is %d; perfkit run --cpu-sample works", level);
}

/* What names can be found for host stacks. */
static void check_symbolizer(struct doctor *doctor)
{
    char path[PATH_MAX], command[PATH_MAX + 32], reads[32] = "";
    FILE *out = NULL;
    if (stack_names_helper(path) && !strpbrk(path, "'\\")) {
        snprintf(command, sizeof command, "exec '%s' --reads", path);
        out = popen(command, "re");
    }
    if (out) {
        if (!fgets(reads, sizeof reads, out))
            reads[0] = '\0';
        pclose(out);
    }
    reads[strcspn(reads, "\n")] = '\0';
    bool lines = strcmp(reads, "lines") == 0;
    if (!reads[0])
        doctor_add(doctor, "system", "stack names", DOCTOR_WARN, "install perfkit whole",
                   "%s is missing or does not run: frames of stacks stay addresses", SYMBOLIZER);
    else
        doctor_add(doctor, "system", "stack names", lines ? DOCTOR_OK : DOCTOR_WARN,
                   lines ? NULL : "build perfkit with elfutils (Debian: libdw-dev)", "%s",
                   lines ? "functions, inlined functions, files and lines"
                         : "functions only: perfkit was built without libdw");
}

static void doctor_system(struct doctor *doctor)
{
    check_shm(doctor);
    check_limit(doctor, "file size", RLIMIT_FSIZE,
                "raise it (ulimit -f unlimited): a spool cannot grow past it, and records are then "
                "dropped");
    check_limit(doctor, "locked memory", RLIMIT_MEMLOCK, NULL);
    check_linux_kernel(doctor);
    check_perf_events(doctor);
    check_symbolizer(doctor);
}

/* ---- CUDA ------------------------------------------------------------------------------------ */

/* The NVIDIA driver, its devices, CUPTI and the right to read counters. The driver and CUPTI are
 * loaded in a child, by name and without their headers, so that this works in every build. */

/* Where the collector looks by itself, in its order; then, marked so, where CUPTI may be as well.
 */
static const struct {
    const char *place; /* a name for the loader, or a pattern of paths; "~" means CUDA_HOME */
    bool collector;
} cupti_places[] = {
    {"libcupti.so.13", true},
    {"libcupti.so.12", true},
    {"libcupti.so", true},
#ifdef PERFKIT_CUPTI_LIBDIR
    {PERFKIT_CUPTI_LIBDIR "/libcupti.so*", true},
#endif
    {"/usr/local/cuda/lib64/libcupti.so*", true},
    {"/usr/local/cuda/extras/CUPTI/lib64/libcupti.so*", true},
    {"/usr/lib/x86_64-linux-gnu/libcupti.so*", true},
    {"~/lib64/libcupti.so*", false},
    {"~/extras/CUPTI/lib64/libcupti.so*", false},
    {"/usr/local/cuda-1*/extras/CUPTI/lib64/libcupti.so*", false},
    {"/usr/lib/python3*/*-packages/nvidia/*/lib/libcupti.so*", false},
    {"/usr/local/lib/python3*/*-packages/nvidia/*/lib/libcupti.so*", false},
};

/* Load what a place names; the path goes to path[size]. */
static void *open_library_path(const char *place, char *path, size_t size)
{
    if (!strchr(place, '/')) {
        snprintf(path, size, "%s", place);
        return dlopen(place, RTLD_NOW | RTLD_LOCAL);
    }
    char pattern[1024];
    const char *home = getenv("CUDA_HOME");
    if (place[0] == '~' && !home)
        return NULL;
    snprintf(pattern, sizeof pattern, "%s%s", place[0] == '~' ? home : "",
             place + (place[0] == '~'));
    glob_t found;
    if (glob(pattern, 0, NULL, &found) != 0)
        return NULL;
    snprintf(path, size, "%s", found.gl_pathv[found.gl_pathc - 1]);
    globfree(&found);
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* "PATH, API version N"; "?PATH" when it is where the collector does not look. */
static void probe_cupti(void *context, char *reply, size_t size)
{
    (void)context;
    char path[1024];
    const char *given = getenv(CUPTI_VARIABLE);
    void *library = given && *given ? open_library_path(given, path, sizeof path) : NULL;
    bool known = true;
    for (size_t i = 0; !library && i < sizeof cupti_places / sizeof cupti_places[0]; i++) {
        library = open_library_path(cupti_places[i].place, path, sizeof path);
        known = cupti_places[i].collector;
    }
    if (!library) {
        snprintf(reply, size,
                 "!not found by the loader, in CUDA_HOME, /usr/local/cuda or the Python packages");
        return;
    }
    uint32_t version = 0;
    int (*get)(uint32_t *) = (int (*)(uint32_t *))(uintptr_t)dlsym(library, "cuptiGetVersion");
    if (get)
        get(&version);
    if (known)
        snprintf(reply, size, "%s, API version %u", path, version);
    else
        snprintf(reply, size, "?%s", path);
}

static bool check_cupti(struct doctor *doctor)
{
    char reply[PROBE_REPLY], remedy[PROBE_REPLY + 64];
    bool answered = probe_run(probe_cupti, NULL, reply, sizeof reply);
    if (answered && reply[0] == '?') {
        snprintf(remedy, sizeof remedy, "export " CUPTI_VARIABLE "=%s", reply + 1);
        doctor_add(doctor, "cuda", "CUPTI", DOCTOR_FAIL, remedy,
                   "%s is where the collector does not look", reply + 1);
        return false;
    }
    bool ok = answered && reply[0] != '!';
    doctor_add(doctor, "cuda", "CUPTI", ok ? DOCTOR_OK : DOCTOR_FAIL,
               ok ? NULL
                  : "install the CUDA toolkit's CUPTI (package cuda-cupti), or set " CUPTI_VARIABLE
                    " to the path of libcupti.so",
               "%s", reply[0] == '!' ? reply + 1 : reply);
    return ok;
}

static bool check_kernel_driver(struct doctor *doctor)
{
    char line[256];
    bool here = prof_first_line("/proc/driver/nvidia/version", line, sizeof line);
    if (here)
        doctor_add(doctor, "cuda", "kernel driver", DOCTOR_OK, NULL, "%s", line);
    return here;
}

static void check_counters(struct doctor *doctor)
{
    char line[256];
    int admin_only = -1;
    PROF_FILE_CLOSED FILE *in = fopen("/proc/driver/nvidia/params", "re");
    while (in && fgets(line, sizeof line, in))
        sscanf(line, "RmProfilingAdminOnly: %d", &admin_only);
    if (admin_only == 1 && geteuid() != 0)
        doctor_add(doctor, "cuda", "counters", DOCTOR_WARN,
                   "put `options nvidia NVreg_RestrictProfilingToAdminUsers=0` into "
                   "/etc/modprobe.d/perfkit.conf and reboot, or run as root",
                   "only root may read hardware counters; timelines need no such right");
    else if (admin_only >= 0)
        doctor_add(doctor, "cuda", "counters", DOCTOR_OK, NULL, "may be read by you");
}

static void doctor_cuda(struct doctor *doctor)
{
    char reply[PROBE_REPLY];
    bool kernel_driver = check_kernel_driver(doctor);
    bool loaded = device_probe_cuda(NULL, reply);
    if (!kernel_driver && !loaded) {
        doctor_add(doctor, "cuda", "driver", DOCTOR_ABSENT, NULL, "no NVIDIA driver here");
        return;
    }
    doctor_add(doctor, "cuda", "driver", loaded ? DOCTOR_OK : DOCTOR_FAIL,
               loaded ? NULL
                      : "install the driver's user part (libcuda.so.1) of the same version; in a "
                        "container, start it with the NVIDIA runtime",
               "%s", reply);
    if (!PERFKIT_HAVE_CUDA) {
        doctor_add(doctor, "cuda", "collector", DOCTOR_FAIL,
                   "build again with cuda.h and cupti.h: set CUDA_HOME to a toolkit, then cmake "
                   "-DPERFKIT_CUDA_COLLECTOR=ON",
                   "this perfkit is built without the CUDA collector");
        return;
    }
    bool cupti = check_cupti(doctor);
    check_counters(doctor);
    doctor->can_cuda = loaded && cupti && doctor->collector[0];
}

/* ---- OpenCL ---------------------------------------------------------------------------------- */

/* The OpenCL loader, the drivers that its ICD files name, their devices, and whether the loader
 * brings in a layer: old ones know nothing of layers and say nothing about it. */

#define LOADER OPENCL_LOADER_NAME
#define PLATFORMS 16

static bool is_mapped(const char *path)
{
    char line[PATH_MAX + 128];
    bool found = false;
    PROF_FILE_CLOSED FILE *in = fopen("/proc/self/maps", "re");
    while (in && !found && fgets(line, sizeof line, in))
        found = strstr(line, path) != NULL;
    return found;
}

/* The layer is loaded at the first question about platforms. */
static void probe_layer(void *context, char *reply, size_t size)
{
    struct opencl_calls loader;
    opencl_handle platforms[PLATFORMS];
    uint32_t count;
    unsetenv("PERFKIT_DIR"); /* this is no program to record */
    setenv("OPENCL_LAYERS", context, 1);
    const char *why = opencl_load(&loader);
    if (why) {
        snprintf(reply, size, "!%s", why);
        return;
    }
    loader.platforms(PLATFORMS, platforms, &count);
    snprintf(reply, size, "%s", is_mapped(context) ? "loaded" : "!the loader did not load it");
}

static unsigned count_icds(char *folder, size_t size)
{
    const char *vendors = getenv("OCL_ICD_VENDORS");
    const char *files = getenv("OCL_ICD_FILENAMES");
    snprintf(folder, size, "%s", vendors && *vendors ? vendors : "/etc/OpenCL/vendors");
    unsigned count = files && *files ? 1 : 0;
    if (prof_ends_with(folder, ".icd"))
        return count + 1;
    PROF_DIR_CLOSED DIR *dir = opendir(folder);
    struct dirent *entry;
    while (dir && (entry = readdir(dir)))
        count += prof_ends_with(entry->d_name, ".icd");
    return count;
}

static void check_layer(struct doctor *doctor, const struct opencl_loader *loader, bool devices)
{
    char reply[PROBE_REPLY];
    if (!PERFKIT_HAVE_OPENCL) {
        doctor_add(doctor, "opencl", "layer", DOCTOR_FAIL,
                   "build again with the OpenCL headers (Debian: ocl-icd-opencl-dev)",
                   "this perfkit is built without the OpenCL layer");
        return;
    }
    if (!doctor->collector[0] || !devices)
        return;
    bool loaded = probe_run(probe_layer, doctor->collector, reply, sizeof reply) && reply[0] != '!';
    char remedy[PATH_MAX + 128];
    if (loader->better[0])
        snprintf(remedy, sizeof remedy,
                 "export LD_LIBRARY_PATH=%s:$LD_LIBRARY_PATH (the loader there has layers)",
                 loader->better);
    else
        snprintf(remedy, sizeof remedy,
                 "use a loader with layers: ocl-icd 2.3 or the Khronos loader 2022 or newer");
    doctor_add(doctor, "opencl", "layer", loaded ? DOCTOR_OK : DOCTOR_FAIL, loaded ? NULL : remedy,
               "%s",
               loaded            ? "the loader brings perfkit's layer in"
               : !loader->layers ? "this loader knows no layers, so OpenCL is not recorded"
               : reply[0] == '!' ? reply + 1
                                 : reply);
    doctor->can_opencl = loaded;
}

static void doctor_opencl(struct doctor *doctor)
{
    char reply[PROBE_REPLY], folder[PATH_MAX];
    bool devices = device_probe_opencl(NULL, reply);
    unsigned icds = count_icds(folder, sizeof folder);
    struct opencl_loader loader;
    opencl_loader_find(&loader);
    if (!loader.path[0]) {
        doctor_add(doctor, "opencl", "loader", DOCTOR_ABSENT,
                   icds ? "install ocl-icd-libopencl1" : NULL, "no OpenCL here (" LOADER ")");
        return;
    }
    doctor_add(doctor, "opencl", "loader", DOCTOR_OK, NULL, "%s", loader.path);
    doctor_add(doctor, "opencl", "drivers", icds ? DOCTOR_OK : DOCTOR_WARN,
               icds ? NULL : "install the ICD of your device, or pocl-opencl-icd for the processor",
               "%u ICD file%s in %s", icds, icds == 1 ? "" : "s", folder);
    doctor_add(doctor, "opencl", "devices", devices ? DOCTOR_OK : DOCTOR_WARN,
               devices ? NULL : "install pocl-opencl-icd to use the processor as a device", "%s",
               reply);
    check_layer(doctor, &loader, devices);
}

/* ---- the command ----------------------------------------------------------------------------- */

static void (*const checks[])(struct doctor *doctor) = {
    doctor_collector,
    doctor_cuda,
    doctor_opencl,
    doctor_system,
};

static const struct {
    const char *word, *colour;
} levels[] = {
    [DOCTOR_OK] = {"ok", "\033[32m"},
    [DOCTOR_ABSENT] = {"none", "\033[2m"},
    [DOCTOR_WARN] = {"warn", "\033[33m"},
    [DOCTOR_FAIL] = {"fail", "\033[31m"},
};

struct doctor_options {
    bool json;
};

static const struct cli_option doctor_options[] = {
    CLI_JSON_ROW(doctor_options, json, "print JSON"),
    {0},
};

CELL(check_level, prof_report_text(levels[((const struct doctor_line *)row)->level].word))

static const struct prof_report_column check_columns[] = {
    STRING("group", "Group", WORD, 1, doctor_line, group),
    STRING("name", "Check", WORD, 1, doctor_line, name),
    COMPUTED("level", "Level", WORD, 1, check_level),
    CHARS("text", "Result", NAME, 1, doctor_line, text),
    CHARS("remedy", "Remedy", NAME, 1, doctor_line, remedy),
    {0},
};
static const struct prof_report_table checks_table = {
    .name = "checks", .columns = check_columns, .row_bytes = sizeof(struct doctor_line)};

static bool print_doctor_json(const struct doctor *doctor)
{
    struct prof_json json;
    prof_json_to_file(&json, stdout, 2);
    prof_json_object(&json, NULL);
    prof_json_string(&json, "version", PERFKIT_VERSION);
    prof_json_object(&json, "records");
    prof_json_bool(&json, "cuda", doctor->can_cuda);
    prof_json_bool(&json, "opencl", doctor->can_opencl);
    prof_json_bool(&json, "nvtx", doctor->can_nvtx);
    prof_json_end(&json);
    prof_report_json_rows(&json, "checks", &checks_table, doctor->lines, doctor->count);
    prof_json_end(&json);
    return cli_finish_json("doctor", &json) == CLI_OK;
}

static void print_doctor_text(const struct doctor *doctor)
{
    bool colour = terminal_colour(stdout);
    const char *group = "";
    for (size_t i = 0; i < doctor->count; i++) {
        const struct doctor_line *line = &doctor->lines[i];
        if (strcmp(group, line->group) != 0) {
            printf("%s%s\n", i ? "\n" : "", line->group);
            group = line->group;
        }
        printf("  %s%-4s%s  %-15s %s\n", colour ? levels[line->level].colour : "",
               levels[line->level].word, colour ? "\033[0m" : "", line->name, line->text);
        if (line->remedy[0])
            printf("        %-15s -> %s\n", "", line->remedy);
    }
    const struct {
        const char *name;
        bool can;
    } sources[] = {
        {"CUDA", doctor->can_cuda}, {"OpenCL", doctor->can_opencl}, {"NVTX", doctor->can_nvtx}};
    printf("\nperfkit can record here:");
    bool any = false;
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++)
        if (sources[i].can) {
            printf("%s %s", any ? "," : "", sources[i].name);
            any = true;
        }
    printf("%s\n", any ? "" : " nothing");
}

static int doctor_run(const struct cli_command *command, void *given,
                      const struct cli_operands *operands, struct prof_error *err)
{
    const struct doctor_options *options = given;
    static struct doctor doctor;
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++)
        checks[i](&doctor);
    bool ok = true;
    (void)command, (void)operands, (void)err;
    if (options->json)
        ok = print_doctor_json(&doctor);
    else
        print_doctor_text(&doctor);
    return ok && (doctor.can_cuda || doctor.can_opencl || doctor.can_nvtx) ? CLI_OK : CLI_FAILED;
}

static const struct cli_text_row doctor_statuses[] = {
    {"0", "At least one source can be recorded."},
    {"1", "Nothing can be recorded."},
    {"2", "The command line is wrong."},
    {0},
};

const struct cli_command doctor_command = {
    .name = "doctor",
    .summary = "check what can be recorded on this machine",
    .operands = "",
    .text = "Checks the collector, the NVIDIA driver and CUPTI, the OpenCL loader and its devices, "
            "and the limits of the system. Each line is `ok`, `none` (not here), `warn` or `fail`, "
            "with what to do about it.",
    .options = doctor_options,
    CLI_OPTIONS_ARE(doctor_options, 0),
    .statuses = doctor_statuses,
    .run = doctor_run,
};
