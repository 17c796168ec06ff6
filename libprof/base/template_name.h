/* What of a C++ name with template arguments tells it from its neighbours, where room is short. */
#ifndef PERFKIT_BASE_TEMPLATE_NAME_H
#define PERFKIT_BASE_TEMPLATE_NAME_H

#include <stddef.h>

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
