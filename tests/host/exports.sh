#!/usr/bin/env bash
# The collector inside other people's programs: it shows only its entry points, without versions
# (the dynamic linker would not bind _exit@GLIBC_2.2.5 to one that has a version), and it takes
# nothing from the C library that could end, print, throw or allocate there. What it may take is
# the list below; a new import has to be added here, which is the moment to think about it.
#
#     exports.sh LIBRARY EXPORTS.MAP
set -u
library=$1
map=$2
command -v nm >/dev/null || { echo "skipped: no nm"; exit 77; }

allowed="
__errno_location errno environ __environ syscall getenv
memchr memcmp memcpy memmem memmove memset strchr strchrnul strcmp strcspn strlen strncmp strnlen strrchr
strspn strstr strtol strtoul strtoull snprintf vsnprintf strncat
open close read pread pwrite write fallocate ftruncate unlink lseek fstat stat __fxstat __xstat access readlink
mmap munmap madvise mprotect getuid geteuid getpid getppid gettid getrlimit prctl sysconf getauxval
clock_gettime nanosleep clock_nanosleep sched_yield strerror_r
pthread_create pthread_attr_init pthread_attr_destroy pthread_attr_setdetachstate
pthread_attr_setstacksize pthread_key_create pthread_setspecific pthread_getspecific
pthread_sigmask pthread_setcancelstate sigdelset sigfillset sigemptyset sigaddset
pthread_mutex_init pthread_mutex_lock pthread_mutex_trylock
pthread_mutex_unlock pthread_once __register_atfork pthread_self
dlopen dlsym dladdr dl_iterate_phdr
process_vm_readv pipe2
atexit on_exit __cxa_atexit __cxa_at_quick_exit
__stack_chk_fail __tls_get_addr _GLOBAL_OFFSET_TABLE_
__cxa_finalize __gmon_start__ _ITM_deregisterTMCloneTable _ITM_registerTMCloneTable
"
# --counters=exact matches the names of kernels, each once. They allocate, as CUPTI does there too.
allowed+=" regcomp regexec"
# --stalls holds a GPU by an abstract socket, which no message ever uses.
allowed+=" socket bind getsockname"
# Fortified forms of what is allowed (they end the program only when memory is already corrupt).
fortified="__memcpy_chk __memmove_chk __memset_chk __snprintf_chk __vsnprintf_chk __strncat_chk
__open_2 __open64_2 __read_chk __pread_chk __pread64_chk __readlink_chk"
# Never, whatever the list above says.
forbidden="exit _exit _Exit quick_exit abort __assert_fail raise kill puts putchar printf fprintf
vprintf vfprintf perror fputs fputc fwrite fopen fflush __printf_chk __fprintf_chk malloc calloc
realloc free _Unwind_RaiseException __cxa_throw longjmp __longjmp_chk system popen fork"

always="InitializeInjectionNvtx2 InitializeInjectionNvtxExtension _exit _Exit quick_exit execve execv
execvp execvpe execl execlp execle execveat fexecve posix_spawn posix_spawnp dlclose setenv
abort sigaction signal bsd_signal ssignal sysv_signal __sysv_signal sigset"

wrong=0
say() {
    echo "$*"
    wrong=1
}
has() { # word list
    [[ " ${2//$'\n'/ } " == *" $1 "* ]]
}

listed=$(sed -n '/global:/,/local:/s/^ *\([A-Za-z_][A-Za-z0-9_]*\);.*/\1/p' "$map")
exports=$(nm -D --defined-only "$library" | awk '{print $NF}')
for symbol in $exports; do
    has "${symbol%%@*}" "$listed" || say "exports $symbol, which exports.map does not list"
    [[ $symbol == *@* ]] && say "exports $symbol with a version"
done
for symbol in $always; do
    has "$symbol" "$exports" || say "does not export $symbol"
done

imports=0
for symbol in $(nm -D --undefined-only "$library" | awk '{print $NF}'); do
    imports=$((imports + 1))
    name=${symbol%%@*}
    plain=${name%64} # open64, pread64 ... with 64-bit file offsets
    if has "$name" "$forbidden" || has "$plain" "$forbidden"; then
        say "imports $name, which has no place in somebody else's program"
    elif ! has "$name" "$allowed" && ! has "$plain" "$allowed" && ! has "$name" "$fortified"; then
        say "imports $name, which is not on the list of $0"
    fi
done
[ "$imports" -gt 5 ] || say "found only $imports imports: is this the collector?"

needed=$(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
for name in $needed; do
    case $name in
    libc.so.6 | ld-linux*.so.* | libdl.so.2 | libpthread.so.0) ;; # the last two are parts of libc since 2.34
    *) say "needs $name: it links only libc" ;;
    esac
done
# Programs in older containers load it too (collectors/core/old_glibc.h).
if [ "$(uname -m)" = x86_64 ] && has libpthread.so.0 "$needed"; then
    newest=$(objdump -T "$library" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -1)
    [ "$(printf '%s\n' "$newest" GLIBC_2.17 | sort -V | tail -1)" = GLIBC_2.17 ] ||
        say "needs $newest: $(objdump -T "$library" | grep "$newest" | awk '{print $NF}' | tr '\n' ' ')"
fi
readelf -d "$library" | grep -q NODELETE || say "may be unloaded: built without -z nodelete"

exit $wrong
