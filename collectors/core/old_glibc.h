/* Included in front of every source of the collector on x86-64: the symbols of glibc that are as old
 * as they can be, so that a collector built on a new system loads in the containers of an old one
 * (glibc 2.17 and later: CentOS 7, RHEL 8, Ubuntu 20.04). glibc 2.34 gave what moved into libc.so.6
 * new versions, and 2.33 made stat a function; libc.so.6 keeps the old ones. tests/host/exports.sh
 * holds the collector to it. */
#ifndef PERFKIT_COLLECTORS_OLD_GLIBC_H
#define PERFKIT_COLLECTORS_OLD_GLIBC_H

#include <sys/stat.h>

#define OLD_SYMBOL(name) __asm__(".symver " #name "," #name "@GLIBC_2.2.5")
OLD_SYMBOL(dladdr);
OLD_SYMBOL(dlopen);
OLD_SYMBOL(dlsym);
OLD_SYMBOL(pthread_attr_setstacksize);
OLD_SYMBOL(pthread_create);
OLD_SYMBOL(pthread_key_create);
OLD_SYMBOL(pthread_setspecific);
OLD_SYMBOL(pthread_sigmask);
#undef OLD_SYMBOL

/* What stat and fstat were in the headers before; 1: the struct of x86-64. */
int __xstat(int version, const char *path, struct stat *status);
int __fxstat(int version, int fd, struct stat *status);
#define stat(path, status) __xstat(1, path, status)
#define fstat(fd, status) __fxstat(1, fd, status)

#endif
