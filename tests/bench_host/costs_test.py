"""How tools/bench_host judges what it has measured."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools" / "bench_host"))
import costs  # noqa: E402

PROFILE = costs.constants_of_profile()


def run_with(constants: dict, *, slowed=(1, 1)) -> dict:
    """A run of the programs where the pieces cost that; `slowed`: how much more of each reference they seem to take."""
    def told(microseconds):
        return [1000 * microseconds * factor / reference for factor, reference in zip(slowed, costs.REFERENCES_NS.values())]
    telling = 0.01
    pieces = {what: sum(count * constants[key] for key, count in parts.items()) for what, parts in costs.MADE_OF.items()}
    return {what: told(piece + telling * costs.TELLS.get(what, 0)) for what, piece in pieces.items()} | {"telling": told(telling)}


def slower(runs: list) -> list:
    return [what for what, _, _, too_slow in costs.check(costs.median_of(runs), PROFILE) if too_slow]


class CostsTest(unittest.TestCase):
    def test_constants_are_found_again(self):
        self.assertEqual(set(PROFILE), {"weir_plan_us", "weir_mapper_us"} | {key for parts in costs.MADE_OF.values() for key in parts})
        found = costs.constants_of(costs.median_of([run_with(PROFILE)]))
        for key, value in found.items():
            self.assertAlmostEqual(value, PROFILE[key], places=6)

    def test_slower_code_is_found(self):
        self.assertEqual(slower([run_with(PROFILE)]), [])
        for key, pieces in {"weir_malloc_us": ["weir_malloc"], "weir_op_us": ["op_of_1", "op_of_3"],
                            "weir_candidate_us": ["moves_of_64", "moves_of_1024"], "torch_malloc_us": []}.items():
            runs = [run_with(PROFILE | {key: PROFILE[key] * factor}) for factor in (1, 1.3, 1.5, 1.5, 1.5)]
            self.assertEqual(slower(runs), pieces)
            self.assertEqual(slower([run_with(PROFILE | {key: PROFILE[key] * 1.15})]), [])

    def test_load_that_slows_one_reference_less_is_not_slower_code(self):
        self.assertEqual(slower([run_with(PROFILE, slowed=(1.5, 0.9))]), [])
        self.assertEqual(slower([run_with(PROFILE, slowed=(1, 2))]), [])
        self.assertNotEqual(slower([run_with(PROFILE, slowed=(1.3, 1.5))]), [])


if __name__ == "__main__":
    unittest.main()
