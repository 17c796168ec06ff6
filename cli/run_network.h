/* `perfkit run` reads what the host's network ports carried while the program ran. */
#ifndef PERFKIT_CLI_RUN_NETWORK_H
#define PERFKIT_CLI_RUN_NETWORK_H

#include "libprof/base/network.h"
#include "libprof/store/ingest.h"

struct network_watch {
    struct prof_network_port before[PROF_NETWORK_PORTS];
    size_t count;
    uint64_t begin_ns;
};

void network_watch_begin(struct network_watch *watch);
/* Writes a row for each port that carried something, where the program had ranks. Trouble with the
 * capture file is the next step's to tell. */
void network_watch_end(const struct network_watch *watch, struct prof_ingest *ingest);

#endif
