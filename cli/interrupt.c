/* What a signal that ends perfkit must not leave behind: half a report. See interrupt.h. */
#include <signal.h>
#include <stddef.h>

#include "cli/interrupt.h"
#include "report/report.h"

/* The disposition is the default one again: after the handler the signal ends the process, so that
 * a shell sees what ended it. */
static void on_report_interrupt(int number)
{
    prof_report_abandon();
    raise(number);
}

void cli_leave_no_half_report(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        struct sigaction old,
            action = {.sa_handler = on_report_interrupt, .sa_flags = (int)SA_RESETHAND};
        sigemptyset(&action.sa_mask);
        if (!sigaction(signals[i], NULL, &old) && old.sa_handler == SIG_DFL)
            sigaction(signals[i], &action, NULL); /* what is ignored, as under nohup, stays so */
    }
}
