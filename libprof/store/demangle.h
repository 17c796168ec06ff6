/* Readable names of C++ symbols. */
#ifndef PERFKIT_STORE_DEMANGLE_H
#define PERFKIT_STORE_DEMANGLE_H

/* The readable form of an Itanium-ABI mangled name ("_Z..."); NULL when it is none, or no memory.
 * The caller frees it. */
char *prof_demangle(const char *mangled);

#endif
