/* Ports of the network, from /sys: what goes between hosts has no other witness when the transport
 * library moves it past the kernel (InfiniBand, RoCE). */
#include "libprof/base/regular.h"
#include "libprof/gpu/network.h"

#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TYPE_INFINIBAND 32 /* include/uapi/linux/if_arp.h */
#define TYPE_LOOPBACK 772
#define WORD_BYTES 4 /* that the data counters of InfiniBand count */

/* The first line of a file, without its end; false where there is none. */
static bool read_first_line(const char *folder, const char *name, char line[64])
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    return length > 0 && length < (int)sizeof path && prof_first_line(path, line, 64);
}

static bool read_counter_file(const char *folder, const char *name, uint64_t *number)
{
    char line[64], *end;
    if (!read_first_line(folder, name, line) || *line < '0' || *line > '9')
        return false;
    *number = strtoull(line, &end, 10);
    return end != line && !*end;
}

static bool file_exists_in(const char *folder, const char *name)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    return length > 0 && length < (int)sizeof path && access(path, F_OK) == 0;
}

struct list {
    struct prof_network_port *ports;
    size_t count;
};

static void add_network_port(struct list *list, const struct prof_network_port *port,
                             const char *name)
{
    if (list->count == PROF_NETWORK_PORTS || strlen(name) >= PROF_NETWORK_NAME)
        return;
    struct prof_network_port *slot = &list->ports[list->count++];
    *slot = *port;
    memcpy(slot->name, name, strlen(name) + 1);
}

static void add_interface(struct list *list, const char *folder, const char *name)
{
    struct prof_network_port port = {.link_rate = NAN};
    uint64_t type, megabits;
    char state[64];
    if (!read_counter_file(folder, "type", &type) || type == TYPE_LOOPBACK ||
        type == TYPE_INFINIBAND ||
        (read_first_line(folder, "operstate", state) && strcmp(state, "down") == 0) ||
        !read_counter_file(folder, "statistics/rx_bytes", &port.received) ||
        !read_counter_file(folder, "statistics/tx_bytes", &port.sent))
        return;
    port.kind = file_exists_in(folder, "device") ? "ethernet" : "virtual";
    if (read_counter_file(folder, "speed", &megabits) && megabits > 0 && megabits < INT32_MAX)
        port.link_rate = (double)megabits * 1e6 / 8;
    add_network_port(list, &port, name);
}

/* "200 Gb/sec (4X HDR)" */
static double read_link_rate(const char *folder)
{
    char line[64], *end;
    if (!read_first_line(folder, "rate", line))
        return NAN;
    double gigabits = strtod(line, &end);
    return end != line && strncmp(end, " Gb/sec", 7) == 0 && gigabits > 0 ? gigabits * 1e9 / 8
                                                                          : NAN;
}

static void add_infiniband_port(struct list *list, const char *folder, const char *name)
{
    struct prof_network_port port = {.link_rate = read_link_rate(folder)};
    char layer[64] = "", state[64];
    if ((read_first_line(folder, "state", state) && !strstr(state, "ACTIVE")) ||
        !read_counter_file(folder, "counters/port_rcv_data", &port.received) ||
        !read_counter_file(folder, "counters/port_xmit_data", &port.sent))
        return;
    port.received *= WORD_BYTES;
    port.sent *= WORD_BYTES;
    read_first_line(folder, "link_layer", layer);
    port.kind = strcmp(layer, "Ethernet") == 0 ? "roce" : "infiniband";
    add_network_port(list, &port, name);
}

/* Calls `found` with each entry of a folder, in the order of names. */
static void each(struct list *list, const char *folder,
                 void (*found)(struct list *list, const char *path, const char *name))
{
    struct dirent **entries;
    int count = scandir(folder, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        char path[PATH_MAX];
        const char *name = entries[i]->d_name;
        int length = snprintf(path, sizeof path, "%s/%s", folder, name);
        if (name[0] != '.' && length > 0 && length < (int)sizeof path)
            found(list, path, name);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
}

static void add_numbered_port(struct list *list, const char *path, const char *number)
{
    char name[NAME_MAX * 2 + 2];
    const char *ports = strstr(path, "/ports/"), *device = ports;
    while (device && device > path && device[-1] != '/')
        device--;
    if (!device)
        return;
    snprintf(name, sizeof name, "%.*s/%s", (int)(ports - device), device, number);
    add_infiniband_port(list, path, name);
}

static void add_adapter(struct list *list, const char *path, const char *name)
{
    char ports[PATH_MAX];
    int length = snprintf(ports, sizeof ports, "%s/ports", path);
    (void)name;
    if (length > 0 && length < (int)sizeof ports)
        each(list, ports, add_numbered_port);
}

size_t prof_network_read(const char *sys_class, struct prof_network_port ports[PROF_NETWORK_PORTS])
{
    struct list list = {.ports = ports};
    char folder[PATH_MAX];
    if (snprintf(folder, sizeof folder, "%s/infiniband", sys_class) < (int)sizeof folder)
        each(&list, folder, add_adapter);
    if (snprintf(folder, sizeof folder, "%s/net", sys_class) < (int)sizeof folder)
        each(&list, folder, add_interface);
    return list.count;
}
