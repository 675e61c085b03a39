"""R1, R2: what the plugin says of writes and of collectives, by the tests of tests/pytorch_plugin on their fake core."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "pytorch_plugin"))
import writes_test  # noqa: E402

from jobs import expect, registry  # noqa: E402

JOBS, notices = registry()


def passes(case, *names) -> None:
    result = unittest.TestResult()
    unittest.TestSuite(case(name) for name in names).run(result)
    broken = result.failures + result.errors
    expect(not broken and result.testsRun == len(names), broken[0][1] if broken else "the tests did not run")


@notices("UnauditedWritesAll")
def arguments_of_what_is_not_audited():
    passes(writes_test.Writes, "test_CustomOp_AllArgumentsAreWritten", "test_BatchNorm_AllArgumentsAreWritten")


@notices("TableWrites")
def what_the_table_says():
    passes(writes_test.Writes, "test_Audited_InPlace_OnlySelfIsWritten")


@notices("ListOpWritesAll")
def lists_of_a_list_op():
    passes(writes_test.Writes, "test_ListOp_AllListsAreWritten", "test_FusedOptimizer_AllListsAreWritten")


@notices("SparsePartsWritten")
def parts_of_a_sparse_tensor():
    passes(writes_test.Writes, "test_SparseArgument_OfAuditedOp_ItsPartsAreWritten")


@notices("NestedTensorWritten")
def buffer_of_a_nested_tensor():
    passes(writes_test.Writes, "test_NestedTensor_OfAuditedOp_ItsBufferIsWritten")


@notices("CollectivesStay")
def tensors_of_a_collective():
    passes(writes_test.Collectives, "test_Collective_ItsTensors_AreWrittenAndStay")
