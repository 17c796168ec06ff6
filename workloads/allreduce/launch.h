/* Starting ranks on this machine, and what the started ones inherit. */
#ifndef WORKLOADS_ALLREDUCE_LAUNCH_H
#define WORKLOADS_ALLREDUCE_LAUNCH_H

#include "workloads/allreduce/meet.h"

/* Takes the sockets that meet_launch left for this rank; false where another launcher started it.
 */
bool launch_inherited(struct meet *meet);

#endif
