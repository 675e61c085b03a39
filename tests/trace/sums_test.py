"""WEIR_TRACE_SUMS: equal runs have equal sums, and of two runs that differ in one number the sums tell the first op that had it."""
import unittest

from traced_job import TracedJobTest

# VALUE is first seen in what fill_ returns, then in `f` and `g`; `h` is later and does not depend on it.
JOB = """
import torch
a = torch.arange(4096, device="cuda", dtype=torch.float32)
b = a * 2
c = (a + b).relu()
d = c.view(64, 64) @ c.view(64, 64).t()
e = torch.stack([b, c])
changed = torch.full((4096,), VALUE, device="cuda")
f = d.flatten() + changed
g = f.neg()
h = e.sum()
"""


class SumsTest(TracedJobTest):
    def sums(self, value: str) -> list:
        """(op, which result, sum) in the order of the run."""
        self.run_job(JOB.replace("VALUE", value), kernels="cpu", WEIR_TRACE_SUMS="1")
        sums, ended = [], None
        for record in self.records():
            ended = record.name if record.kind == "op end" else ended
            if record.kind == "sum":
                sums.append((ended, record.number, record.amount))
        return sums

    def test_runs_that_differ_in_a_value_differ_from_its_op_on(self):
        first, again, other = self.sums("1.0"), self.sums("1.0"), self.sums("2.0")
        self.assertEqual(first, again)
        self.assertEqual([sum[:2] for sum in first], [sum[:2] for sum in other])
        differ = [a[0] for a, b in zip(first, other) if a[2] != b[2]]
        same = [a[0] for a, b in zip(first, other) if a[2] == b[2]]
        self.assertEqual(differ[0], "aten::fill_.Scalar")
        self.assertEqual(set(differ), {"aten::fill_.Scalar", "aten::full", "aten::add.Tensor", "aten::neg"})
        self.assertLessEqual({"aten::arange", "aten::mul.Tensor", "aten::relu", "aten::mm", "aten::stack", "aten::sum"}, set(same))
        self.assertEqual(same[-1], "aten::sum")  # of what did not change, after what did


if __name__ == "__main__":
    unittest.main()
