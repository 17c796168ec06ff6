/* Names of C++ functions: made readable, and shortened to what distinguishes one from its
 * neighbours. */
#ifndef PERFKIT_BASE_CXX_NAME_H
#define PERFKIT_BASE_CXX_NAME_H

#include <stddef.h>

/* From libstdc++ (Itanium C++ ABI, section 3.4), which has no C header for it: the implementation
 * that follows the compiler's mangling as it grows. */
extern char *__cxa_demangle(const char *mangled, char *buffer, size_t *length, int *status);

/* The readable form of an Itanium-ABI mangled name ("_Z..."); NULL when it is none, or out of
 * memory. The caller frees it. */
static inline char *prof_demangle(const char *mangled)
{
    int status = 0;
    return mangled[0] == '_' && mangled[1] == 'Z' ? __cxa_demangle(mangled, NULL, NULL, &status)
                                                  : NULL;
}

/* Within `name`, behind "void " and the like, which says nothing about which kernel it is. */
const char *prof_name_without_type(const char *name);

/* Bytes in front of the argument list that the name ends with; all of them where there is none.
 * "gemm<(Layout)0>(int) const": 15. */
size_t prof_name_without_arguments(const char *name);

/* The name of a function (no return type, no argument list, clean: prof_report_clean) in `cells`
 * columns of a terminal where that can be done by leaving parts out whole. They go in this order
 * until the rest fits: namespaces and what is local to a function (lambdas); arguments that are
 * types of the language, arrays of them or numbers, beside others that are not; the arguments of
 * arguments; the middle of the function's own name. Nothing marks what was left out but dots in
 * the function's name:
 * "at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<...> >"
 * becomes "vectorized_elementwise_kernel<FillFunctor<float>>", "vectorized...<FillFunctor>".
 * Longer than `cells` where the parts themselves are too long. malloc'ed; NULL = not such a name
 * (nothing to leave out, or brackets that do not match), or out of memory. */
char *prof_name_reduced(const char *name, size_t cells);

#endif
