"""The statistics of bench/overhead."""
import os
import random
import statistics
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench"))
import pairs  # noqa: E402


class Interval(unittest.TestCase):
    def test_ranks_and_coverage_as_in_the_tables(self):
        # Conover's table A3: n = 9 takes ranks 2 and 8, n = 31 ranks 10 and 22.
        for n, low, high, coverage in ((6, 1, 6, 0.96875), (9, 2, 8, 0.9609375),
                                       (20, 6, 15, 0.958610), (31, 10, 22, 0.970549)):
            values = list(range(1, n + 1))
            random.Random(n).shuffle(values)
            found = pairs.interval(values)
            self.assertEqual(found[:2], (low, high), n)
            self.assertAlmostEqual(found[2], coverage, 5)

    def test_too_few_values_give_none(self):
        for n in range(6):
            self.assertIsNone(pairs.interval(list(range(n))))
        self.assertIsNone(pairs.summary([]))
        self.assertIsNone(pairs.summary([1.0, 2.0])["low"])

    def test_holds_the_median_of_a_skewed_distribution_as_often_as_it_says(self):
        dice, hits, draws = random.Random(3), 0, 2000
        median = 0.6931471805599453  # of the exponential distribution
        for _ in range(draws):
            low, high, _ = pairs.interval([dice.expovariate(1) for _ in range(31)])
            hits += low <= median <= high
        self.assertGreater(hits / draws, 0.955)
        self.assertLess(hits / draws, 0.985)


class Pairs(unittest.TestCase):
    ROUNDS = [{"bare": 100, "floor": 150, "perfkit": 160}, {"bare": 200, "perfkit": 270},
              {"bare": 90, "floor": 130, "perfkit": 150}]

    def test_only_rounds_that_have_both(self):
        self.assertEqual(pairs.paired(self.ROUNDS, "perfkit", "floor"), [10, 20])
        self.assertEqual(pairs.paired(self.ROUNDS, "perfkit", "bare"), [60, 70, 60])
        self.assertEqual(pairs.paired(self.ROUNDS, "nsys", "bare"), [])
        self.assertEqual(pairs.quotients(self.ROUNDS, "perfkit", "bare"), [1.6, 1.35, 150 / 90])

    def test_a_drift_common_to_a_round_does_not_reach_the_difference(self):
        dice = random.Random(1)
        rounds = []
        for i in range(31):
            drift = 1000 * i + dice.random()
            rounds.append({"floor": drift, "perfkit": drift + 50})
        self.assertAlmostEqual(statistics.median(pairs.paired(rounds, "perfkit", "floor")), 50)

    def test_ratio_of_what_is_added(self):
        rounds = [{"bare": b, "nsys": b + 1000, "perfkit": b + 800} for b in range(3000, 3031)]
        middle, low, high = pairs.added_ratio(rounds, "perfkit", "nsys", "bare")
        self.assertEqual((middle, low, high), (0.8, 0.8, 0.8))
        noisy = [{**r, "perfkit": r["perfkit"] + 10 * (i % 5)} for i, r in enumerate(rounds)]
        middle, low, high = pairs.added_ratio(noisy, "perfkit", "nsys", "bare")
        self.assertTrue(0.8 <= low <= middle <= high <= 0.84, (low, middle, high))

    def test_no_ratio_to_something_that_adds_nothing(self):
        rounds = [{"bare": 10, "nsys": 9, "perfkit": 12}] * 9
        self.assertIsNone(pairs.added_ratio(rounds, "perfkit", "nsys", "bare"))
        self.assertIsNone(pairs.added_ratio([], "perfkit", "nsys", "bare"))

    def test_no_ratio_without_an_upper_bound(self):
        # Nsight Systems adds nothing in more than 2.5 % of the draws, in fewer than 5 %.
        dice = random.Random(99)
        rounds = [{"bare": 0, "perfkit": 10, "nsys": dice.gauss(2, 3)} for _ in range(15)]
        self.assertIsNone(pairs.added_ratio(rounds, "perfkit", "nsys", "bare"))


class Order(unittest.TestCase):
    def test_everybody_plays_once_and_follows_others(self):
        names = ["bare", "floor", "perfkit", "nsys"]
        before, first = {n: set() for n in names}, set()
        for turn in range(16):
            found = pairs.order(names, turn)
            self.assertEqual(sorted(found), sorted(names))
            first.add(found[0])
            for one, other in zip(found, found[1:]):
                before[other].add(one)
        self.assertEqual(first, set(names))
        for name in names:
            self.assertGreaterEqual(len(before[name]), 2, name)


if __name__ == "__main__":
    unittest.main()
