/* What goes between ranks, on captures whose answers are known by how they are made: messages, the
 * share of the links that they reach, ports of the network. */
#include <math.h>

#include "tests/analysis/rank_fixture.h"

static void exchange(int r, int name, int peer, long start, long end)
{
    int call = scene_range(r, name, NCCL, start - 20, start - 10);
    scene_field(call, F_COMMUNICATOR, (long long)COMMUNICATOR);
    scene_field(call, F_BYTES, 8 * MEBI);
    scene_field(call, F_PEER, peer);
    scene_kernel(r, SEND_RECV_CONFIG, start - 15, start, end);
}

/* Rank 1 of 4 sends to rank 2 what was waited for, what nobody waited for yet, and what lies ready
 * when it is asked for. The ranks of the communicator are the launcher's in reverse. */
static void scene_sends(void)
{
    static const long sends[][2] = {{300, 400}, {500, 800}, {900, 910}};
    static const long receives[][2] = {{100, 400}, {700, 800}, {950, 960}};
    scene_begin();
    for (int r = 0; r < 4; r++) {
        scene_rank(r);
        int call = scene_range(r, INIT, NCCL, 1, 2);
        scene_field(call, F_COMMUNICATOR, (long long)COMMUNICATOR);
        scene_field(call, F_RANKS, 4);
        scene_field(call, F_RANK, 3 - r);
    }
    for (int i = 0; i < 3; i++) {
        exchange(2, SEND, 2, sends[i][0], sends[i][1]);
        exchange(1, RECV, 1, receives[i][0], receives[i][1]);
    }
}

START_TEST(sends_and_receives_wait_for_each_other)
{
    scene_sends();
    struct prof_capture *capture = scene_made();
    const struct prof_ranks *ranks = ranks_of(capture);
    ck_assert_uint_eq(ranks->count, 2);
    ck_assert_int_eq(ranks->matched, 6);
    ck_assert_int_eq(ranks->rows[0].wait_ns, 200 * US); /* receives */
    ck_assert_int_eq(ranks->rows[1].wait_ns, 200 * US);
    ck_assert_int_eq(ranks->rows[0].analysed + ranks->rows[1].analysed, 0); /* nobody is late */
    ck_assert_uint_eq(ranks->collective_count, 2);
    for (size_t i = 0; i < 2; i++) {
        const struct prof_collective_row *row = &ranks->collectives[i];
        ck_assert_int_eq(row->matched, 3);
        ck_assert_int_eq(row->wait_ns, 200 * US);
        ck_near(row->transfer_ns, 100.0 * US);
        ck_near(row->bus_rate, 8 * MEBI / 100e-6);
    }
    ranks_done(capture, ranks);
    /* A send that is not there: nothing says which receive goes with which. */
    scene_sends();
    scene_add("DELETE FROM kernel WHERE id = 1");
    capture = scene_made();
    ranks = ranks_of(capture);
    ck_assert_int_eq(ranks->matched, 0);
    ck_assert_int_eq(ranks->rows[0].wait_ns + ranks->rows[1].wait_ns, 0);
    ranks_done(capture, ranks);
}
END_TEST

/* Bus bandwidth is held against the slowest link of the ranks, where all are known and on one host.
 */
START_TEST(the_share_of_the_links)
{
    const double bus = 1.5 * 8 * MEBI / 100e-6;
    static const struct {
        const char *change;
        bool known;
    } cases[] = {
        {"SELECT 1", true},
        {"DELETE FROM ceiling WHERE device = 3", false},
        {"UPDATE process SET host = 'two' WHERE rank = 3", false},
        {"UPDATE process SET boot_id = 'before' WHERE rank = 0", false},
        {"UPDATE range_field SET value = 8 WHERE name = (SELECT id FROM string WHERE value = 'No. "
         "of "
         "ranks')",
         false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        scene_training(4, (long[]){200, 200, 200, 200}, (long[]){0, 0, 0, 0}, COMMUNICATOR);
        for (int r = 0; r < 4; r++)
            scene_comm_init(r, (long long)COMMUNICATOR, 4);
        scene_add(
            "INSERT INTO ceiling(device, name, value, measured_at) VALUES (1, 'peer_copy', 4.5e11, "
            "1), "
            "(2, 'peer_copy', 4e11, 1), (3, 'peer_copy', 4.5e11, 1), (4, 'peer_copy', 4.5e11, 1), "
            "(2, 'dram_copy', 1, 1)");
        scene_add("%s", cases[i].change);
        struct prof_capture *capture = scene_made();
        const struct prof_ranks *ranks = ranks_of(capture);
        const struct prof_collective_row *all = &ranks->collectives[0];
        ck_assert_uint_eq(ranks->link_count, 1);
        if (cases[i].known) {
            ck_near(all->bus_rate, bus);
            ck_near(all->link_rate, 4e11);
            ck_near(all->link_share, bus / 4e11);
            ck_near(ranks->links[0].link_rate, 4e11);
        } else {
            ck_assert(isnan(all->link_rate) && isnan(all->link_share));
            ck_assert(isnan(ranks->links[0].link_rate));
        }
        ranks_done(capture, ranks);
    }
}
END_TEST

/* Every rank's perfkit saw the ports of its host: a port is there once, by whoever looked longest.
 */
START_TEST(ports_of_the_hosts)
{
    scene_training(4, (long[]){200, 200, 200, 200}, (long[]){0, 0, 0, 0}, COMMUNICATOR);
    scene_add("UPDATE process SET host = CASE WHEN rank < 2 THEN 'one' ELSE 'two' END");
    scene_add("INSERT INTO network_port(process, name, kind, start, duration, link_rate, received, "
              "sent) VALUES "
              "(1, 'mlx5_0/1', 'infiniband', 0, 1000000000, 25e9, 2500000000, 5000000000), "
              "(2, 'mlx5_0/1', 'infiniband', 0, 2000000000, 25e9, 5000000000, 20000000000), "
              "(3, 'mlx5_0/1', 'infiniband', 0, 1000000000, 25e9, 1, 2), "
              "(3, 'eth0', 'ethernet', 0, 1000000000, NULL, 10, 20), "
              "(3, 'eth1', 'ethernet', 0, 0, NULL, 10, 20), (99, 'eth0', 'ethernet', 0, 1, NULL, "
              "10, 20), "
              "(1, NULL, NULL, NULL, NULL, NULL, NULL, NULL)");
    struct prof_capture *capture = scene_made();
    const struct prof_ranks *ranks = ranks_of(capture);
    ck_assert_uint_eq(ranks->port_count, 3);
    const struct prof_rank_port *port = &ranks->ports[0];
    ck_assert_str_eq(port->host, "one");
    ck_assert_str_eq(port->name, "mlx5_0/1");
    ck_assert_int_eq(port->sent, 20000000000);
    ck_near(port->send_rate, 1e10);
    ck_near(port->receive_rate, 2.5e9);
    ck_near(port->link_share, 0.4);
    ck_assert_str_eq(ranks->ports[1].name, "eth0");
    ck_assert_str_eq(ranks->ports[1].host, "two");
    ck_assert(isnan(ranks->ports[1].link_share));
    ck_assert_str_eq(ranks->ports[2].name, "mlx5_0/1");
    ranks_done(capture, ranks);
}
END_TEST

/* Three pairs of ranks, of which one takes four times as long. */
START_TEST(a_slow_link_is_first)
{
    scene_pairs(400);
    struct prof_capture *capture = scene_made();
    const struct prof_ranks *ranks = ranks_of(capture);
    ck_assert_uint_eq(ranks->link_count, 3);
    ck_assert_uint_eq(ranks->links[0].communicator, 1001);
    ck_assert_int_eq(ranks->links[0].ranks, 2);
    ck_assert_int_eq(ranks->links[0].count, 4);
    ck_near(ranks->links[0].bus_rate, floor(8 * MEBI / 400e-6));
    ck_near(ranks->links[0].usual_rate, floor(8 * MEBI / 100e-6));
    ranks_done(capture, ranks);
}
END_TEST

CHECK_MAIN("rank links", the_share_of_the_links, sends_and_receives_wait_for_each_other,
           ports_of_the_hosts, a_slow_link_is_first)
