"""R2: what the plugin says of writes, by the audited list and without it."""
import unittest

import torch
import torch.nn.functional as F

from harness import DEVICE, PluginTest

aten = torch.ops.aten


class Writes(PluginTest):
    """`ran` runs an op and asks which of its tensors were said to be written."""
    library = None

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        Writes.library = torch.library.Library("weir_test", "DEF")
        Writes.library.define("reads(Tensor x, Tensor y) -> Tensor")
        Writes.library.impl("reads", lambda x, y: x + y, "CUDA")
        Writes.library.define("peeks(Tensor x) -> Tensor")
        Writes.library.impl("peeks", _copy_unseen, "CUDA")

    def ran(self, op, *tensors) -> list:
        self.core.forget_writes()
        op()
        return [self.core.written(tensor) for tensor in tensors]

    def test_Audited_ReadArguments_AreClean(self):
        x, y = self.used(8, 8), self.used(8, 8)
        for op in (lambda: x + y, lambda: torch.mm(x, y), lambda: torch.cat([x, y]), lambda: torch.where(x > 0, x, y),
                   lambda: F.layer_norm(x, (8,), y[0])):
            self.assertEqual(self.ran(op, x, y), [False, False])

    def test_Audited_EmbeddingAndIndex_TableIsClean(self):
        table, index = self.used(8, 4), torch.zeros(3, dtype=torch.long, device=DEVICE)
        self.assertEqual(self.ran(lambda: F.embedding(index, table), table, index), [False, False])
        self.assertEqual(self.ran(lambda: table[index], table, index), [False, False])

    def test_Audited_InPlace_OnlySelfIsWritten(self):
        x, y = self.used(8), self.used(8)
        self.assertEqual(self.ran(lambda: x.add_(y), x, y), [True, False])
        self.assertEqual(self.ran(lambda: x.copy_(y), x, y), [True, False])

    def test_Audited_IndexPut_OnlySelfIsWritten(self):
        x, values, index = self.used(8, 4), self.used(3, 4), torch.zeros(3, dtype=torch.long, device=DEVICE)
        for accumulate in (False, True):
            written = self.ran(lambda: x.index_put_((index,), values, accumulate), x, values, index)
            self.assertEqual(written, [True, False, False])

    def test_Audited_Out_OnlyOutIsWritten(self):
        x, y, out = self.used(8), self.used(8), self.used(8)
        self.assertEqual(self.ran(lambda: torch.add(x, y, out=out), x, y, out), [False, False, True])

    def test_ListOp_AllListsAreWritten(self):
        x, y = [self.used(8), self.used(8)], [self.used(8), self.used(8)]
        self.assertEqual(self.ran(lambda: torch._foreach_add_(x, y), *x, *y), [True] * 4)
        self.assertEqual(self.ran(lambda: torch._foreach_add(x, y), *x, *y), [True] * 4)

    def test_FusedOptimizer_AllListsAreWritten(self):
        weight = torch.nn.Parameter(self.used(64))
        weight.grad = self.used(64)
        optimizer = torch.optim.AdamW([weight], fused=True)
        self.assertEqual(self.ran(optimizer.step, weight, weight.grad), [True, True])
        state = optimizer.state[weight]
        self.assertEqual(self.ran(optimizer.step, state["exp_avg"], state["exp_avg_sq"], state["step"]), [True] * 3)

    def test_BatchNorm_AllArgumentsAreWritten(self):
        x, mean, variance = self.used(4, 3), self.used(3), self.used(3)
        op = lambda: aten.native_batch_norm(x, None, None, mean, variance, True, 0.1, 1e-5)  # noqa: E731
        self.assertEqual(self.ran(op, x, mean, variance), [True] * 3)
        module = torch.nn.BatchNorm1d(3).to(DEVICE)
        self.assertEqual(self.ran(lambda: module(x), module.running_mean, module.running_var), [True, True])

    def test_CustomOp_AllArgumentsAreWritten(self):
        x, y = self.used(8), self.used(8)
        self.assertEqual(self.ran(lambda: torch.ops.weir_test.reads(x, y), x, y), [True, True])

    def test_SparseArgument_OfAuditedOp_ItsPartsAreWritten(self):
        indices, values = torch.tensor([[0, 1], [1, 0]], device=DEVICE), self.used(2)
        sparse = torch.sparse_coo_tensor(indices, values, (2, 2), check_invariants=False)
        self.assertEqual(self.ran(lambda: sparse * 2.0, sparse._values()), [True])

    def test_NestedTensor_OfAuditedOp_ItsBufferIsWritten(self):
        nested = torch.nested.nested_tensor([torch.ones(2, 2, device=DEVICE)] * 2)
        self.assertEqual(self.ran(lambda: torch.relu(nested), nested), [True])

    def test_CustomOp_PageInFails_ItsReadStillRaises(self):
        """A hook in place of the flag would stop only a write: the kernel would read what is not there."""
        x = self.used(64)
        self.core.evict(x)
        self.core.fail_touches(1)
        with self.assertRaisesRegex(RuntimeError, "told to fail"):
            torch.ops.weir_test.peeks(x)
        torch.ops.weir_test.peeks(x)


@unittest.skipUnless(torch.distributed.is_available() and torch.distributed.is_gloo_available(), "torch without gloo")
class Collectives(PluginTest):
    """A group of one process; the schema of c10d ops marks no tensor."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)

    @classmethod
    def tearDownClass(cls):
        torch.distributed.destroy_process_group()

    def test_Collective_ItsTensors_AreWrittenAndStay(self):
        for collective in (torch.distributed.all_reduce, lambda t: torch.distributed.broadcast(t, 0)):
            x = self.used(64)
            self.core.forget_writes()
            collective(x)
            self.assertTrue(self.core.written(x))
            self.assertTrue(self.core.escaped(x))
            self.core.evict_all()
            self.assertTrue(self.core.resident(x))

    def test_AllGather_WritesBothLists(self):
        x, gathered = self.used(64), [self.used(64)]
        self.core.forget_writes()
        torch.distributed.all_gather(gathered, x)
        self.assertTrue(self.core.written(gathered[0]))
        self.assertTrue(self.core.written(x))


def _copy_unseen(x):
    """Reads `x` and allocates nothing on the card, without an event of its own."""
    torch._C._autograd._enable_record_function(False)
    try:
        return x.cpu()
    finally:
        torch._C._autograd._enable_record_function(True)


if __name__ == "__main__":
    unittest.main()
