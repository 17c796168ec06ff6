/* Ports of the network out of a made /sys/class. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "libprof/gpu/network.h"
#include "tests/check_main.h"

static char root[] = "/tmp/check-network-XXXXXX";

/* root/path holds text; folders on the way are made. */
static void put(const char *path, const char *text)
{
    char full[300];
    snprintf(full, sizeof full, "%s/%s", root, path);
    for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(full, 0700);
        *slash = '/';
    }
    FILE *file = fopen(full, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static void put_interface(const char *name, const char *type, const char *state, const char *speed)
{
    const char *const files[][2] = {{"type", type},
                                    {"operstate", state},
                                    {"speed", speed},
                                    {"statistics/rx_bytes", "5000000000\n"},
                                    {"statistics/tx_bytes", "18446744073709551615\n"}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[100];
        snprintf(path, sizeof path, "net/%s/%s", name, files[i][0]);
        if (files[i][1])
            put(path, files[i][1]);
    }
}

static const struct prof_network_port *find(const struct prof_network_port *ports, size_t count,
                                            const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(ports[i].name, name) == 0)
            return &ports[i];
    }
    return NULL;
}

START_TEST(ports_and_what_they_carried)
{
    struct prof_network_port ports[PROF_NETWORK_PORTS];
    ck_assert_ptr_nonnull(mkdtemp(root));
    ck_assert_uint_eq(prof_network_read(root, ports), 0); /* neither kind is there */
    put_interface("eth0", "1\n", "up\n", "25000\n");
    put("net/eth0/device/vendor", "0x15b3\n");
    put_interface("veth1", "1\n", "unknown\n", "-1\n");
    put_interface("lo", "772\n", "unknown\n", NULL);
    put_interface("ib0", "32\n", "up\n", "-1\n");
    put_interface("eth1", "1\n", "down\n", "10\n");
    put_interface("odd", "one\n", "up\n", NULL);
    put("infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
    put("infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n");
    put("infiniband/mlx5_0/ports/1/rate", "200 Gb/sec (4X HDR)\n");
    put("infiniband/mlx5_0/ports/1/counters/port_rcv_data", "1000\n");
    put("infiniband/mlx5_0/ports/1/counters/port_xmit_data", "250\n");
    put("infiniband/mlx5_0/ports/2/state", "1: DOWN\n");
    put("infiniband/mlx5_0/ports/2/counters/port_rcv_data", "1\n");
    put("infiniband/mlx5_0/ports/2/counters/port_xmit_data", "1\n");
    put("infiniband/mlx5_1/ports/1/state", "4: ACTIVE\n");
    put("infiniband/mlx5_1/ports/1/link_layer", "Ethernet\n");
    put("infiniband/mlx5_1/ports/1/rate", "fast\n");
    put("infiniband/mlx5_1/ports/1/counters/port_rcv_data", "4\n");
    put("infiniband/mlx5_1/ports/1/counters/port_xmit_data", "5\n");
    put("infiniband/mlx5_2/ports/1/state", "4: ACTIVE\n"); /* no counters */
    size_t count = prof_network_read(root, ports);
    ck_assert_uint_eq(count, 4);

    const struct prof_network_port *port = find(ports, count, "eth0");
    ck_assert_str_eq(port->kind, "ethernet");
    ck_assert_uint_eq(port->received, 5000000000u);
    ck_assert_uint_eq(port->sent, UINT64_MAX);
    ck_assert(port->link_rate > 3.1249e9 && port->link_rate < 3.1251e9);
    port = find(ports, count, "veth1");
    ck_assert_str_eq(port->kind, "virtual");
    ck_assert(isnan(port->link_rate));
    port = find(ports, count, "mlx5_0/1");
    ck_assert_str_eq(port->kind, "infiniband");
    ck_assert_uint_eq(port->received, 4000);
    ck_assert_uint_eq(port->sent, 1000);
    ck_assert(port->link_rate > 2.499e10 && port->link_rate < 2.501e10);
    port = find(ports, count, "mlx5_1/1");
    ck_assert_str_eq(port->kind, "roce");
    ck_assert(isnan(port->link_rate));
    char command[80];
    snprintf(command, sizeof command, "rm -rf %s", root);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

CHECK_MAIN("network", ports_and_what_they_carried)
