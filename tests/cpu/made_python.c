/* What perfkit looks for in an interpreter, of 3.12 by its number, with nothing behind it. */
#include <stdint.h>

uint64_t _PyRuntime[1024];
const uint64_t Py_Version = 0x030c00f0;
uint64_t PyCode_Type[8] = {[4] = 192};
uint64_t PyUnicode_Type[8] = {[4] = 64};
uint64_t PyBytes_Type[8];
uint64_t _PyEval_EvalFrameDefault[8];
