"""Programs that shut themselves in: seccomp filters that kill or trap what our own thread and our
way out do, another user, another root folder. The program ends as it would; what its children did
out of our sight is said."""
import json

import e2e


class Sandbox(e2e.Case):
    def marks(self, db):
        return self.one(db, "SELECT count(*) FROM marker")

    def shut_in(self, how):
        command = [e2e.target("sandbox"), how]
        if self.plain(command).status == 77:
            self.skipTest("not permitted here")
        return self.record(*command, status=17)

    def test_an_open_is_deadly(self):
        self.assertEqual(self.marks(self.open(self.shut_in("deadly").capture)), 20)

    def test_every_call_is_deadly_before_the_first_mark(self):
        """To make a spool would kill the program: it lives on, and the capture says what it lacks."""
        db = self.open(self.shut_in("early").capture)
        self.assertEqual(self.marks(db), 0)
        notes = [note for note, in db.execute("SELECT note FROM capture_health WHERE item = 'spool refused'")]
        self.assertEqual(len(notes), 2, "its own, and its child's: %s" % notes)
        self.assertTrue(all("could make no spool" in note for note in notes), notes)

    def test_calls_are_answered_by_a_signal(self):
        db = self.open(self.shut_in("trap").capture)
        self.assertEqual(self.marks(db) + self.health(db, "range", "dropped"), 10 + 20000)
        self.assertGreaterEqual(self.marks(db), 10)

    def test_its_signal_is_pending(self):
        self.assertEqual(self.marks(self.open(self.shut_in("blocked").capture)), 10)

    def test_its_file_is_out_of_reach(self):
        """perfkit makes room for a process that cannot open its spool any more; what does not fit
        meanwhile is dropped, counted, and told with the right reason."""
        result = self.shut_in("left")
        db = self.open(result.capture)
        dropped = self.health(db, "range", "dropped")
        self.assertEqual(self.marks(db) + dropped, 10 + 40 * 5000)
        self.assertGreater(self.marks(db), 100000, "no more than was reserved ahead")
        if dropped:
            self.assertIn("could not open its spool any more", self.one(
                db, "SELECT note FROM capture_health WHERE item = 'room'"))
        e2e.say("spool out of reach: %d of 200,010 marks dropped and counted" % dropped)

    def out_of_sight(self, how, why):
        result = self.shut_in(how)
        db = self.open(result.capture)
        self.assertEqual(self.marks(db), 10)
        notes = dict(db.execute("SELECT item, note FROM capture_health JOIN process ON process.id = "
                                "process WHERE note NOT NULL AND subject = 'collector'"))
        for item, words in (("spool refused", "a process that it started made GPU or NVTX calls"),
                            ("host refused", "it started processes that cannot reach the spool folder")):
            self.assertIn(words, notes.get(item, ""))
            self.assertIn(why, notes[item])
        report = json.loads(self.perfkit("report", "--json", result.capture).out)
        self.assertFalse(report["trust"]["complete"])

    def test_children_of_another_user(self):
        self.out_of_sight("user", "Permission denied")

    def test_children_in_another_root_folder(self):
        self.out_of_sight("root", "No such file or directory")


if __name__ == "__main__":
    e2e.main()
