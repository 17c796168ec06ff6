/* `perfkit run --pytorch`, in the target. */
#ifndef PERFKIT_COLLECTORS_PYTHON_PYTORCH_H
#define PERFKIT_COLLECTORS_PYTHON_PYTORCH_H

/* Once, when the library is loaded. */
void pytorch_start(void);

#endif
