/* What the host's network ports carried, which perfkit read beside the target. Only for distributed
 * runs: for others it would be what the machine did besides. */
#include <math.h>

#include "libprof/store/ingest_private.h"
#include "libprof/store/ingest_record.h"

/* The first process of a run with ranks; 0 = it has none. */
static int64_t first_of_ranks(struct prof_ingest *ingest)
{
    sqlite3_stmt *row = ingest->sql[INGEST_SQL_FIRST_OF_RANKS];
    int64_t process = sqlite3_step(row) == SQLITE_ROW ? sqlite3_column_int64(row, 0) : 0;
    ingest_check(ingest, sqlite3_reset(row));
    return process;
}

static bool write_ports(struct prof_ingest *ingest, const struct prof_network_port *ports,
                        size_t count, uint64_t begin_ns, uint64_t end_ns)
{
    sqlite3_stmt *sql = ingest->insert[SCHEMA_network_port];
    int64_t process = first_of_ranks(ingest);
    bool ok = !ingest->failed;
    for (size_t i = 0; ok && process && i < count; i++) {
        const struct prof_network_port *port = &ports[i];
        ingest_bind(sql, COLUMN_AT(network_port, process), process);
        ingest_bind_text(ingest, sql, COLUMN_AT(network_port, name), port->name);
        ingest_bind_text(ingest, sql, COLUMN_AT(network_port, kind), port->kind);
        ingest_bind(sql, COLUMN_AT(network_port, start), (int64_t)(begin_ns - ingest->zero_ns));
        ingest_bind(sql, COLUMN_AT(network_port, duration), (int64_t)(end_ns - begin_ns));
        if (isnan(port->link_rate))
            sqlite3_bind_null(sql, COLUMN_AT(network_port, link_rate));
        else
            sqlite3_bind_double(sql, COLUMN_AT(network_port, link_rate), port->link_rate);
        ingest_bind(sql, COLUMN_AT(network_port, received), (int64_t)port->received);
        ingest_bind(sql, COLUMN_AT(network_port, sent), (int64_t)port->sent);
        ok = ingest_insert(ingest, SCHEMA_network_port);
    }
    return ok;
}

bool ingest_network(struct prof_ingest *ingest, const struct prof_network_port *ports, size_t count,
                    uint64_t begin_ns, uint64_t end_ns)
{
    return sqlite3_exec(ingest->db, "BEGIN", NULL, NULL, NULL) == SQLITE_OK &&
           write_ports(ingest, ports, count, begin_ns, end_ns) &&
           sqlite3_exec(ingest->db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK;
}
