"""Single launches that are counted exactly (--counters=exact): what a kernel's source tells, several
kernels one after the other, and programs that would hang whoever waits for the GPU."""
from checking import did, recorded, trusted

OPTIONS = ("--counters=exact:.",)


def counted(report, recorder):
    """Three kernels, each of which is complete before the next one comes: the counters are given back
    and taken anew in between. A fourth one runs in graphs only."""
    result = recorded(recorder, "counted", "cuda_exact_counts", 1, options=OPTIONS)
    made, db = did(report, result), result.capture
    if not made:
        return
    report.equal("kernels by name", db.kernels(), made["kernels"])
    by_kernel = lambda what, name: db.table(
        f"SELECT k.value, {what} FROM exact_count e JOIN launch_config c ON c.id = e.config "
        f"JOIN string k ON k.id = c.name WHERE e.name = '{name}' GROUP BY 1")
    wanted = {"count_alpha", "count_beta", "count_driver"}
    report.equal("complete", by_kernel("count(*)", "complete"), dict.fromkeys(wanted, 1))
    report.equal("additions of a launch", by_kernel("min(e.value), max(e.value)", "fp32_add"),
                 {"count_alpha": [32, 32], "count_beta": [0, 0], "count_driver": [32, 32]})
    report.equal("different counts of instructions",
                 by_kernel("count(DISTINCT e.value)", "instructions"), dict.fromkeys(wanted, 1))
    report.observed("what the trust block says", [s for s in db.statements() if "counters" in s])
    report.equal("degraded", [s for s in db.statements() if "counters degraded" in s], [])
    trusted(report, db)


def waits(what, counts):
    """Ends, with all its kernels; `counts`: some of them were counted."""
    def check(report, recorder):
        result = recorded(recorder, f"counted_{what}", "cuda_exact_waits", what, options=OPTIONS,
                          timeout=300)
        made, db = did(report, result), result.capture
        if not made:
            return
        report.equal("kernels", db.count("kernel"), made["launches"])
        report.equal("counted", db.count("exact_count") > 0, counts)
        report.observed("what the trust block says", [s for s in db.statements() if "counters" in s])
        trusted(report, db)
    return check
