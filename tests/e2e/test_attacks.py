"""Each attack of attacks.py, shortly; bench/attacks runs them a hundred times."""
import attacks
import e2e


class Attacks(e2e.Case):
    def attack(self, name):
        if not attacks.possible(name):
            self.skipTest("not possible here (no OpenCL device, not root)")
        for _ in range(100 if e2e.LONG else 1):
            run = attacks.run(name, 100 if e2e.LONG else 10)
            self.assertEqual((run.uncounted, run.hangs, run.differences), (0, 0, []))


for _name in attacks.ATTACKS:
    setattr(Attacks, "test_" + _name.replace("-", "_"),
            lambda self, name=_name: self.attack(name))


if __name__ == "__main__":
    e2e.main()
