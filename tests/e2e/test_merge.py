"""A run of several ranks, as launchers start it: all under one perfkit, or a perfkit for each and one
capture made of theirs afterwards."""
import shutil
import subprocess
import unittest

import e2e

LAUNCHERS = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK",
             "MV2_COMM_WORLD_RANK", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID",
             "FLUX_JOB_ID", "TORCHELASTIC_RUN_ID", "PMIX_NAMESPACE", "PMI_JOBID")


def environment(**more):
    return {k: v for k, v in e2e.clean_environment(**more).items() if k not in LAUNCHERS or k in more}


class Merge(e2e.Case):
    def test_under_one_perfkit(self):
        script = "for r in 0 1 2; do RANK=$r LOCAL_RANK=$r WORLD_SIZE=3 %s reuse $((r + 1))0 & done; wait" % e2e.target("names")
        result = self.record("sh", "-c", script, env=environment(SLURM_JOB_ID="4711"))
        db = self.open(result.capture)
        self.assert_conserved(db)
        self.assertEqual(db.execute("SELECT rank, local_rank, world_size, job FROM process WHERE spool NOT NULL "
                                    "ORDER BY rank").fetchall(), [(r, r, 3, "4711") for r in range(3)])
        self.assertEqual(db.execute("SELECT p.rank, count(*) FROM marker m JOIN thread t ON t.id = m.thread JOIN process p "
                                    "ON p.id = t.process GROUP BY 1 ORDER BY 1").fetchall(), [(0, 10), (1, 20), (2, 30)])

    def test_a_perfkit_for_each(self):
        runs = [subprocess.Popen([e2e.PERFKIT, "run", "-q", "-o", self.path("%q{NAME}-%r.sqlite"), "--", e2e.target("names"),
                                  "reuse", str(100 * (r + 1))], cwd=self.folder, stdout=subprocess.DEVNULL,
                                 env=environment(RANK=str(r), WORLD_SIZE="3", NAME="run")) for r in range(3)]
        self.assertEqual([run.wait(e2e.TIMEOUT) for run in runs], [0, 0, 0])
        files = [self.path("run-%d.sqlite" % r) for r in range(3)]
        done = self.perfkit("merge", *files, "-o", self.path("all.sqlite"))
        self.assertEqual(done.status, 0, done.err)
        self.assertIn(b"clocks: 3 files of one clock: exact", done.err)
        db = self.open(self.path("all.sqlite"), states=("merged",))
        self.assert_conserved(db)
        # The same moments as in the files, by the clock that they share.
        for rank, file in enumerate(files):
            part = self.open(file)
            moments = ("SELECT c.start_mono_ns + m.start, s.value FROM marker m JOIN string s ON s.id = m.name JOIN thread t ON "
                       "t.id = m.thread JOIN process p ON p.id = t.process, capture c WHERE p.rank = ? ORDER BY 1, m.id")
            wanted = part.execute(moments, (rank,)).fetchall()
            self.assertEqual(len(wanted), 100 * (rank + 1))
            self.assertEqual(db.execute(moments, (rank,)).fetchall(), wanted)
        missing = self.perfkit("merge", files[0], files[2], "-o", self.path("two.sqlite"))
        self.assertEqual(missing.status, 3, missing.err)
        self.assertIn(b"rank 1 of 3 is in none of the files", missing.err)

    @unittest.skipUnless(shutil.which("mpirun"), "no mpirun here")
    def test_mpirun(self):
        mpirun = ["mpirun", "-n", "3"]
        alone = environment(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1",
                            OMPI_MCA_hwloc_base_binding_policy="none")
        result = self.record(*mpirun, e2e.target("names"), "reuse", "10", env=alone)
        rows = self.open(result.capture).execute("SELECT rank, local_rank, world_size, job NOT NULL FROM process WHERE rank NOT "
                                                 "NULL ORDER BY rank").fetchall()
        self.assertEqual([(row[0], row[2]) for row in rows], [(r, 3) for r in range(3)])
        if b"Open MPI" in subprocess.run(["mpirun", "--version"], capture_output=True, check=True).stdout:
            self.assertEqual([(row[1], row[3]) for row in rows], [(r, 1) for r in range(3)])
        self.plain([*mpirun, e2e.PERFKIT, "run", "-q", "-o", self.path("mpi-%r.sqlite"), "--", e2e.target("names"), "reuse", "10"],
                   env=alone)
        done = self.perfkit("merge", *[self.path("mpi-%d.sqlite" % r) for r in range(3)], "-o", self.path("mpi.sqlite"))
        self.assertEqual(done.status, 0, done.err)
        self.assertIn(b" events of 3 files", done.err)

    def test_gate_refuses_what_is_missing(self):
        for name, r in (("base", 0), ("base", 1), ("next", 0)):
            self.plain([e2e.PERFKIT, "run", "-q", "-o", self.path(name + "-%r.sqlite"), "--", e2e.target("names"), "reuse", "10"],
                       env=environment(RANK=str(r), WORLD_SIZE="2"))
        self.perfkit("merge", self.path("base-0.sqlite"), self.path("base-1.sqlite"), "-o", self.path("whole.sqlite"))
        self.perfkit("merge", self.path("next-0.sqlite"), "-o", self.path("half.sqlite"))
        saved = self.perfkit("baseline", "save", "ranks", self.path("whole.sqlite"))
        self.assertEqual(saved.status, 0, saved.err)
        judged = self.perfkit("gate", "--baseline", "ranks", self.path("half.sqlite"))
        self.assertEqual(judged.status, 3, judged.err)
        self.assertIn(b"rank 1 of 2", judged.out + judged.err)


if __name__ == "__main__":
    e2e.main()
