/* What the host's network ports carried, which perfkit read beside the target. Only for distributed
 * runs: for others it would be what the machine did besides. */
#include <math.h>

#include "libprof/store/ingest_private.h"
#include "libprof/store/ingest_record.h"

enum prof_status ingest_network(struct prof_ingest *ingest, const struct prof_network_port *ports,
                                size_t count, uint64_t begin_ns, uint64_t end_ns)
{
    sqlite3_stmt *sql = ingest->insert[SCHEMA_network_port];
    int64_t process; /* 0 = the run has no ranks */
    PROF_TRY(ingest_exec(ingest, "BEGIN"));
    PROF_TRY(ingest_query_number(ingest, INGEST_SQL_FIRST_OF_RANKS, &process));
    for (size_t i = 0; process && i < count; i++) {
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
        PROF_TRY(ingest_insert(ingest, SCHEMA_network_port));
    }
    return ingest_exec(ingest, "COMMIT");
}
