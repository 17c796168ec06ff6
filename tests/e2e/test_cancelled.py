"""Threads with a cancellation pending: our own files are no place for them to end in."""
import e2e


class Cancelled(e2e.Case):
    def marks(self, how):
        result = self.record(e2e.target("cancelled"), how, status=17)
        return self.one(self.open(result.capture), "SELECT count(*) FROM marker")

    def test_in_the_first_event(self):
        self.assertEqual(self.marks("mark"), 21)

    def test_in_the_exit(self):
        self.assertEqual(self.marks("exit"), 1)

    def test_in_exec(self):
        self.assertEqual(self.marks("exec"), 1)


if __name__ == "__main__":
    e2e.main()
