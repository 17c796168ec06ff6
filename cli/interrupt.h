/* Signals and the reports that they interrupt. */
#ifndef PERFKIT_CLI_INTERRUPT_H
#define PERFKIT_CLI_INTERRUPT_H

/* From now on Ctrl-C, SIGTERM and the like remove the unfinished file of a report before they end
 * perfkit, as they would have. For commands that call prof_report_save. */
void cli_leave_no_half_report(void);

#endif
