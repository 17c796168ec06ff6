/* What the host's network ports have carried since it started. */
#ifndef PERFKIT_GPU_NETWORK_H
#define PERFKIT_GPU_NETWORK_H

#include <stddef.h>
#include <stdint.h>

#define PROF_NETWORK_NAME 48
#define PROF_NETWORK_PORTS 64

struct prof_network_port {
    char name[PROF_NETWORK_NAME]; /* "eth0", "mlx5_0/1" */
    const char *kind;             /* "ethernet", "virtual", "infiniband", "roce": static */
    double link_rate;             /* bytes/s in each direction; NaN = unknown */
    uint64_t received, sent;      /* bytes */
};

/* Ports that are up, of `sys_class` ("/sys/class"), at most PROF_NETWORK_PORTS; returns how many.
 * Interfaces of /net but loopback and those over InfiniBand, whose bytes are those of its ports
 * too; ports of /infiniband. Bytes: net/NAME/statistics (Linux, Documentation/ABI/testing/
 * sysfs-class-net-statistics), and port_rcv_data, port_xmit_data, which count four bytes each
 * (Documentation/ABI/stable/sysfs-class-infiniband). */
size_t prof_network_read(const char *sys_class, struct prof_network_port ports[PROF_NETWORK_PORTS]);

#endif
