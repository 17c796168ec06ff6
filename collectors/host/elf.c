/* A look at the program that is about to be executed: does our library do it harm? A handful of
 * small reads, about 5 us; of a script its interpreter is looked at. What cannot be read counts as
 * harmless. */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "collectors/host/host.h"

#define MAX_HEADERS 32u
#define MAX_DYNAMIC 96u
#define MAX_NEEDED 64u
#define MAX_PATH 4096u
#define MAX_SCRIPTS 4u /* a script whose interpreter is a script ..., as the kernel has it */
#define MAX_LINE 256u  /* of the first line of a script, as the kernel has it */
#define MUSL_LOADER "ld-musl-"

#if defined(__x86_64__)
#define OUR_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OUR_MACHINE EM_AARCH64
#else
#error "add the ELF machine of this architecture"
#endif

static bool read_elf_at(int fd, void *to, size_t bytes, uint64_t offset)
{
    return pread(fd, to, bytes, (off_t)offset) == (ssize_t)bytes;
}

static bool is_sanitizer(const char *library)
{
    static const char *const prefixes[] = {"libasan.", "libhwasan.", "libtsan.", "libclang_rt.asan",
                                           "libclang_rt.hwasan"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        if (strncmp(library, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    }
    return false;
}

static bool needs_sanitizer(int fd, const Elf64_Phdr *headers, unsigned count)
{
    Elf64_Dyn dynamic[MAX_DYNAMIC];
    size_t entries = 0;
    uint64_t strings = 0, strings_offset = 0;

    for (unsigned i = 0; i < count; i++) {
        if (headers[i].p_type != PT_DYNAMIC)
            continue;
        ssize_t n =
            pread(fd, dynamic,
                  headers[i].p_filesz < sizeof dynamic ? headers[i].p_filesz : sizeof dynamic,
                  (off_t)headers[i].p_offset);
        entries = n > 0 ? (size_t)n / sizeof *dynamic : 0;
    }
    for (size_t i = 0; i < entries; i++) {
        if (dynamic[i].d_tag == DT_STRTAB)
            strings = dynamic[i].d_un.d_ptr;
    }
    for (unsigned i = 0; i < count; i++) {
        if (headers[i].p_type == PT_LOAD && strings >= headers[i].p_vaddr &&
            strings - headers[i].p_vaddr < headers[i].p_filesz)
            strings_offset = strings - headers[i].p_vaddr + headers[i].p_offset;
    }
    unsigned needed = 0;
    for (size_t i = 0; strings_offset && i < entries && needed < MAX_NEEDED; i++) {
        char name[32];
        if (dynamic[i].d_tag == DT_NULL)
            break;
        if (dynamic[i].d_tag != DT_NEEDED)
            continue;
        needed++;
        ssize_t n =
            pread(fd, name, sizeof name - 1, (off_t)(strings_offset + dynamic[i].d_un.d_val));
        if (n <= 0)
            continue;
        name[n] = '\0';
        if (is_sanitizer(name))
            return true;
    }
    return false;
}

static const char *base_name_of_path(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The loader of this process by its file name, "" = unknown. glibc's has the same name wherever it
 * is installed; musl's has another one, and ends a program whose LD_PRELOAD needs glibc. */
static char own_loader[64];

void host_elf_find_loader(void)
{
    Dl_info info;
    /* Where the kernel put the loader; 0 when it was called by name. Its functions come second:
     * sanitizers have their own of the same name. */
    void *in_loader = (void *)getauxval(AT_BASE);
    if (!in_loader)
        in_loader = dlsym(RTLD_DEFAULT, "__tls_get_addr");
    const char *name =
        in_loader && dladdr(in_loader, &info) ? base_name_of_path(info.dli_fname) : "";
    if (strlen(name) < sizeof own_loader)
        memcpy(own_loader, name, strlen(name) + 1);
}

/* Does the program name another loader than ours? A static one names none. */
static bool has_other_loader(int fd, const Elf64_Phdr *headers, unsigned count)
{
    char name[MAX_LINE];
    for (unsigned i = 0; *own_loader && i < count; i++) {
        if (headers[i].p_type == PT_INTERP && headers[i].p_filesz - 1 < sizeof name &&
            read_elf_at(fd, name, headers[i].p_filesz, headers[i].p_offset)) {
            name[headers[i].p_filesz - 1] = '\0';
            return strcmp(base_name_of_path(name), own_loader) != 0;
        }
    }
    return false;
}

static bool elf_takes(int fd, const Elf64_Ehdr *header)
{
    Elf64_Phdr headers[MAX_HEADERS];
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_machine != OUR_MACHINE)
        return false;
    unsigned count = header->e_phnum < MAX_HEADERS ? header->e_phnum : MAX_HEADERS;
    return header->e_phentsize != sizeof *headers ||
           !read_elf_at(fd, headers, count * sizeof *headers, header->e_phoff) ||
           (!has_other_loader(fd, headers, count) && !needs_sanitizer(fd, headers, count));
}

/* The path after "#!" up to a blank; false when the file is no script. */
static bool read_interpreter(int fd, char line[MAX_LINE])
{
    ssize_t n = pread(fd, line, MAX_LINE - 1, 0);
    if (n < 3 || line[0] != '#' || line[1] != '!')
        return false;
    line[n] = '\0';
    size_t start = 2 + strspn(line + 2, " \t"), length = strcspn(line + start, " \t\n");
    memmove(line, line + start, length);
    line[length] = '\0';
    return length > 0;
}

static int open_program(const char *path)
{
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

bool host_elf_takes_preload_fd(int fd)
{
    Elf64_Ehdr header;
    char line[MAX_LINE];
    int saved = errno, at = fd;
    bool takes = true;

    for (unsigned i = 0; i < MAX_SCRIPTS && at >= 0 && read_interpreter(at, line); i++) {
        if (at != fd)
            close(at);
        takes = strncmp(base_name_of_path(line), MUSL_LOADER, strlen(MUSL_LOADER)) != 0;
        at = open_program(line);
    }
    if (takes && at >= 0 && read_elf_at(at, &header, sizeof header, 0) &&
        memcmp(header.e_ident, ELFMAG, SELFMAG) == 0)
        takes = elf_takes(at, &header);
    if (at >= 0 && at != fd)
        close(at);
    errno = saved;
    return takes;
}

/* -1 = no such file here, else the answer. */
static int inspect_program(const char *path)
{
    int fd = open_program(path);
    if (fd < 0)
        return -1;
    /* musl's loader, called by name, names no loader itself */
    bool takes = strncmp(base_name_of_path(path), MUSL_LOADER, strlen(MUSL_LOADER)) != 0 &&
                 host_elf_takes_preload_fd(fd);
    close(fd);
    return takes;
}

bool host_elf_takes_preload(const char *path)
{
    int saved = errno;
    bool takes = !path || inspect_program(path) != 0;
    errno = saved;
    return takes;
}

bool host_elf_takes_preload_file(const char *file)
{
    if (!file || !*file || strchr(file, '/'))
        return host_elf_takes_preload(file);
    int saved = errno, takes = -1;
    const char *at = getenv("PATH");
    size_t bytes = strlen(file) + 1;
    char path[MAX_PATH];
    if (!at)
        at = "/bin:/usr/bin"; /* as the C library does */
    while (takes < 0) {
        const char *end = strchrnul(at, ':');
        size_t folder = (size_t)(end - at);
        if (folder + 1 + bytes <= sizeof path) {
            memcpy(path, at, folder);
            path[folder] = '/';
            /* an empty element is the working directory */
            memcpy(path + folder + (folder > 0), file, bytes);
            takes = inspect_program(path);
        }
        if (!*end)
            break;
        at = end + 1;
    }
    errno = saved;
    return takes != 0;
}
