/* Where the headers of an interpreter say that things are, in the order of struct python_layout;
 * built by test_layout.py against each interpreter whose headers are installed. */
#define Py_BUILD_CORE 1
#include <Python.h>
#include <stddef.h>
#include <stdio.h>
#if PY_VERSION_HEX < 0x030b0000
#include <frameobject.h>
#else
#include "internal/pycore_frame.h"
#endif
#include "internal/pycore_interp.h"
#include "internal/pycore_runtime.h"

#define NONE 0xffffu
#define AT(type, field) ((unsigned)offsetof(type, field))

#if PY_VERSION_HEX < 0x030b0000
#define LOOP AT(PyThreadState, cframe)
#define FRAME AT(PyThreadState, frame)
#define LOOPS NONE, AT(CFrame, previous)
#define FRAMES                                                                                     \
    AT(PyFrameObject, f_code), AT(PyFrameObject, f_back), AT(PyFrameObject, f_lasti), NONE, NONE
#define NAME AT(PyCodeObject, co_name)
#define BYTES AT(PyCodeObject, co_code)
#define TRACEABLE NONE
#define THREADS AT(PyInterpreterState, tstate_head)
#define NATIVE_ID NONE
#else
#define THREADS AT(PyInterpreterState, threads.head)
#define NATIVE_ID AT(PyThreadState, native_thread_id)
#define NAME AT(PyCodeObject, co_qualname)
#define BYTES AT(PyCodeObject, co_code_adaptive)
#define TRACEABLE AT(PyCodeObject, _co_firsttraceable)
#if PY_VERSION_HEX < 0x030d0000
#define LOOP AT(PyThreadState, cframe)
#define FRAME NONE
#define LOOPS AT(_PyCFrame, current_frame), AT(_PyCFrame, previous)
#define CODE AT(_PyInterpreterFrame, f_code)
#define INSTRUCTION AT(_PyInterpreterFrame, prev_instr)
#else
#define LOOP NONE
#define FRAME AT(PyThreadState, current_frame)
#define LOOPS NONE, NONE
#define CODE AT(_PyInterpreterFrame, f_executable)
#define INSTRUCTION AT(_PyInterpreterFrame, instr_ptr)
#endif
#if PY_VERSION_HEX < 0x030c0000
#define ENTRY AT(_PyInterpreterFrame, is_entry)
#else
#define ENTRY NONE
#endif
#define FRAMES                                                                                     \
    CODE, AT(_PyInterpreterFrame, previous), INSTRUCTION, ENTRY, AT(_PyInterpreterFrame, owner)
#endif
#if PY_VERSION_HEX < 0x030c0000
#define VERSION NONE
#else
#define VERSION AT(PyCodeObject, co_version)
#endif

int main(void)
{
    const unsigned layout[] = {
        PY_VERSION_HEX >> 16,
        AT(_PyRuntimeState, interpreters.main),
        THREADS,
        AT(PyThreadState, next),
        AT(PyThreadState, thread_id),
        NATIVE_ID,
        AT(PyThreadState, interp),
        LOOP,
        FRAME,
        LOOPS,
        FRAMES,
        NAME,
        AT(PyCodeObject, co_filename),
        AT(PyCodeObject, co_linetable),
        AT(PyCodeObject, co_firstlineno),
        BYTES,
        VERSION,
        TRACEABLE,
        AT(PyCodeObject, co_consts),
        AT(PyCodeObject, co_names),
        sizeof(PyASCIIObject),
        sizeof(PyCompactUnicodeObject),
    };
    for (size_t i = 0; i < sizeof layout / sizeof layout[0]; i++)
        printf("%u ", layout[i]);
    return 0;
}
