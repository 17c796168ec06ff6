/* What the host's network ports carried, which perfkit read beside the target. Only for distributed
 * runs: for others it would be what the machine did besides. */
#include <math.h>

#include "libprof/store/ingest_private.h"
#include "libprof/store/ingest_record.h"

#define SQL                                                                                        \
    "INSERT INTO network_port(process,name,kind,start,duration,link_rate,received,sent) "          \
    "SELECT (SELECT min(id) FROM process),?1,?2,?3,?4,?5,?6,?7 WHERE EXISTS(SELECT 1 FROM "        \
    "process WHERE rank NOT NULL) OR EXISTS(SELECT 1 FROM string WHERE value = 'NCCL')"

static bool write_ports(struct prof_ingest *ingest, const struct prof_network_port *ports,
                        size_t count, uint64_t begin_ns, uint64_t end_ns)
{
    sqlite3_stmt *sql;
    if (sqlite3_prepare_v2(ingest->db, SQL, -1, &sql, NULL) != SQLITE_OK)
        return false;
    for (size_t i = 0; i < count; i++) {
        const struct prof_network_port *port = &ports[i];
        ingest_bind_text(ingest, sql, 1, port->name);
        ingest_bind_text(ingest, sql, 2, port->kind);
        ingest_bind(sql, 3, (int64_t)(begin_ns - ingest->zero_ns));
        ingest_bind(sql, 4, (int64_t)(end_ns - begin_ns));
        if (isnan(port->link_rate))
            sqlite3_bind_null(sql, 5);
        else
            sqlite3_bind_double(sql, 5, port->link_rate);
        ingest_bind(sql, 6, (int64_t)port->received);
        ingest_bind(sql, 7, (int64_t)port->sent);
        sqlite3_step(sql);
        if (sqlite3_reset(sql) != SQLITE_OK)
            break;
    }
    return sqlite3_finalize(sql) == SQLITE_OK && !ingest->failed;
}

bool ingest_network(struct prof_ingest *ingest, const struct prof_network_port *ports, size_t count,
                    uint64_t begin_ns, uint64_t end_ns)
{
    return sqlite3_exec(ingest->db, "BEGIN", NULL, NULL, NULL) == SQLITE_OK &&
           write_ports(ingest, ports, count, begin_ns, end_ns) &&
           sqlite3_exec(ingest->db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK;
}
