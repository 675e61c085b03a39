"""A row of the op table does not depend on which sources ran before in the same worker.

    order_test.py PYTHON BUILD PROBE

masked.prod of a sparse_csr tensor allocates as many elements as a number on the card says, which no kernel has written.
"""
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tools" / "op_table"))
import run_workers  # noqa: E402

READS_A_SIZE, LEAVES_NUMBERS = "sparse_csr masked.prod", "opinfo _foreach_copy"


class Order(unittest.TestCase):
    def test_RowsOfASource_AfterAnother_AreTheSame(self):
        python, build, probe = sys.argv[1:]
        worker = run_workers.Worker(python, pathlib.Path(build), pathlib.Path(probe))
        self.addCleanup(worker.close)
        first = worker.run(READS_A_SIZE)
        self.assertIn("aten::_sparse_csr_prod.dim_dtype_out", {row["op"] for row in first["rows"]})
        worker.run(LEAVES_NUMBERS)
        self.assertEqual(worker.run(READS_A_SIZE), first)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
