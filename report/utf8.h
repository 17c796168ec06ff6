/* Names fit for a terminal, as the writers ask for them: libprof/base/utf8.h. */
#ifndef PERFKIT_REPORT_UTF8_H
#define PERFKIT_REPORT_UTF8_H

#include "libprof/base/utf8.h"

#endif
