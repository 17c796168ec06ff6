#!/usr/bin/env python3
"""Time and memory of `perfkit export --format parquet` on a capture of any number of kernels.

    bench/export_parquet.py PERFKIT [--kernels 10000000] [--folder /tmp] [--keep]

The capture is made of an imported trace whose kernels (400 names) are repeated with times that go on. Prints a line of JSON:
rows, bytes before and after, seconds by the clock and of CPU, peak memory. DuckDB is not needed.
"""
import argparse
import json
import os
import shutil
import sqlite3
import subprocess

from import_trace import measure, write_trace


def grow(capture, kernels):
    """Repeats the kernels' rows until there are that many."""
    db = sqlite3.connect(capture)
    columns = [row[1] for row in db.execute("PRAGMA table_info(kernel)") if row[1] != "id"]
    have, span = db.execute("SELECT count(*), max(start) + 1000 FROM kernel").fetchone()
    picked = ", ".join(f"start + {span} * n.i" if c == "start" else c for c in columns)
    db.execute(f"INSERT INTO kernel({', '.join(columns)}) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < "
               f"{kernels // have}) SELECT {picked} FROM n, (SELECT * FROM kernel WHERE id <= {have}) k")
    db.execute("DELETE FROM kernel WHERE id > ?", (kernels,))
    db.commit()
    db.close()


def size_of(folder):
    return sum(os.stat(os.path.join(folder, f)).st_size for f in os.listdir(folder))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("perfkit")
    parser.add_argument("--kernels", type=int, default=10_000_000)
    parser.add_argument("--folder", default="/tmp")
    parser.add_argument("--keep", action="store_true", help="leave the files")
    asked = parser.parse_args()
    trace, capture, output = [os.path.join(asked.folder, "export_parquet" + end) for end in (".json", ".sqlite", ".parquet")]
    try:
        write_trace(trace, 30e6)
        subprocess.run([asked.perfkit, "import", trace, "-o", capture, "--force", "-q"], check=True)
        grow(capture, asked.kernels)
        wall, cpu, peak = measure([asked.perfkit, "export", capture, "--format", "parquet", output, "--force", "-q"])
        print(json.dumps({"kernels": asked.kernels, "capture_bytes": os.stat(capture).st_size, "parquet_bytes": size_of(output),
                          "kernel_bytes_a_row": round(os.stat(os.path.join(output, "kernel.parquet")).st_size / asked.kernels, 1),
                          "seconds": round(wall, 1), "cpu_seconds": round(cpu, 1), "peak_mib": round(peak)}))
    finally:
        if not asked.keep:
            for path in (trace, capture):
                if os.path.exists(path):
                    os.unlink(path)
            shutil.rmtree(output, ignore_errors=True)


if __name__ == "__main__":
    main()
