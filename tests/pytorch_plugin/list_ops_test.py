"""R14, R7: when list ops are cut, and that cutting does not show.

Runs with the kernels that WEIR_KERNELS names. Values are compared where kernels compute (`cpu`); in both modes the
log tells the route: the slow kernel makes one op per tensor, the fast one makes none.
"""
import os
import unittest

import torch

from harness import DEVICE, PluginTest

VALUES = os.environ.get("WEIR_KERNELS", "cpu") == "cpu"
KIB = 1024


class ListOps(PluginTest):
    def tensors(self, count=6, seed=0, dtype=torch.float32):
        """`count` tensors of 1 KiB (float32), evicted."""
        generator = torch.Generator().manual_seed(seed)
        made = [torch.randn(256, generator=generator).to(dtype).to(DEVICE) for _ in range(count)]
        for tensor in made:
            tensor.add_(0)
        return made

    def evict_all(self, *lists):
        self.core.evict(*[tensor for tensors in lists for tensor in tensors])
        self.core.log()

    def pieces(self):
        return self.core.log().count("chunk")

    def check(self, op, *lists):
        """Runs `op` on clones in one call and on the evicted lists in pieces of 4 KiB; returns the log of those."""
        copies = [[t.clone() for t in tensors] for tensors in lists]
        expected = op(*copies)
        self.evict_all(*lists)
        with self.chunks_of(4 * KIB):
            got = op(*lists)
        log = self.core.log()
        if VALUES:
            for ours, theirs in zip(lists, copies):
                for a, b in zip(ours, theirs):
                    self.assertTrue(torch.equal(a.cpu(), b.cpu()))
            for a, b in zip(got or (), expected or ()):
                self.assertTrue(torch.equal(a.cpu(), b.cpu()))
        return log

    def test_AllResident_InPlace_OneCall(self):
        tensors = self.tensors()
        self.core.log()
        with self.chunks_of(KIB):
            torch._foreach_add_(tensors, 1.0)
        self.assertEqual(self.pieces(), 0)

    def test_AllResident_LargeResults_Cut(self):
        tensors = self.tensors()
        self.core.log()
        with self.chunks_of(2 * KIB):
            results = torch._foreach_sqrt(tensors)
        self.assertEqual(self.pieces(), 6)
        self.core.evict(*results)  # each result was seen and may leave

    def test_Evicted_InPlace_CutByBytes(self):
        log = self.check(lambda a: torch._foreach_mul_(a, 3.0), self.tensors())
        self.assertEqual(log.count("chunk"), 2)  # 6 KiB, 4 at a time

    def test_TensorLargerThanPiece_IsAPieceOfItsOwn(self):
        tensors = self.tensors()
        self.evict_all(tensors)
        with self.chunks_of(1):
            torch._foreach_neg_(tensors)
        self.assertEqual(self.pieces(), len(tensors))

    def test_SeveralLists_CutTogether(self):
        op = lambda a, b, c: torch._foreach_addcdiv_(a, b, [t.abs() + 1 for t in c], 0.5)
        self.check(op, self.tensors(), self.tensors(seed=1), self.tensors(seed=2))

    def test_ScalarList_IsCutWithTheLists(self):
        scalars = [float(i + 1) for i in range(6)]
        log = self.check(lambda a: torch._foreach_mul_(a, scalars), self.tensors())
        self.assertEqual(log.count("chunk"), 2)

    def test_TensorOfScalars_IsCutWithTheLists(self):
        scalars = torch.arange(1.0, 7.0)
        log = self.check(lambda a, b: torch._foreach_addcmul_(a, b, b, scalars), self.tensors(),
                         self.tensors(seed=1))
        self.assertEqual(log.count("chunk"), 3)

    def test_Norm_OfEvicted_CutAndEqual(self):
        log = self.check(lambda a: torch._foreach_norm(a), self.tensors())
        self.assertEqual(log.count("chunk"), 2)

    def test_OneOddTensor_WholeListGoesTheSlowWay(self):
        tensors = self.tensors()
        tensors[-1] = self.tensors(1, dtype=torch.float64)[0]
        others = self.tensors(seed=1)
        log = self.check(lambda a, b: torch._foreach_add_(a, b, alpha=0.3), tensors, others)
        self.assertGreater(log.count("chunk"), 1)
        self.assertEqual(sum(line.strip() == "aten::add_" for line in log), 6)  # every tensor, not only the odd one

    def test_OneOddStride_WholeListGoesTheSlowWay(self):
        tensors = self.tensors()
        tensors = [t.view(16, 16) for t in tensors]
        others = [t.view(16, 16) for t in self.tensors(seed=1)]
        others[2] = others[2].t()
        self.evict_all(tensors, others)
        with self.chunks_of(4 * KIB):
            torch._foreach_mul_(tensors, others)
        self.assertEqual(sum(line.strip() == "aten::mul_" for line in self.core.log()), 6)

    def test_Alike_NoneGoesTheSlowWay(self):
        if VALUES:
            self.skipTest("the emulated kernels are the slow ones")
        tensors, others = self.tensors(), self.tensors(seed=1)
        self.evict_all(tensors, others)
        with self.chunks_of(4 * KIB):
            torch._foreach_mul_(tensors, others)
        self.assertEqual(sum(line.strip() == "aten::mul_" for line in self.core.log()), 0)

    def test_MixedScalarKinds_OneCall(self):
        tensors = self.tensors()
        self.evict_all(tensors)
        with self.chunks_of(KIB):
            torch._foreach_add_(tensors, [1, 2, 3, 4, 5, 6.5])
        self.assertEqual(self.pieces(), 0)

    def test_SameTensorTwice_OneCall(self):
        tensors = self.tensors()
        tensors[3] = tensors[0]
        self.evict_all(tensors)
        with self.chunks_of(KIB):
            torch._foreach_add_(tensors, 1.0)
        self.assertEqual(self.pieces(), 0)

    def test_OverlappingViews_OneCall(self):
        base = self.tensors(1)[0]
        views = [base[0:128], base[64:192], base[192:256]]
        self.evict_all([base])
        with self.chunks_of(256):
            torch._foreach_add_(views, 1.0)
        self.assertEqual(self.pieces(), 0)

    def test_SameTensorInTwoLists_AtOnePosition_IsCut(self):
        log = self.check(lambda a, b: torch._foreach_addcmul_(a, b, b), self.tensors(), self.tensors(seed=1))
        self.assertGreater(log.count("chunk"), 1)

    def test_Copy_BetweenTypes_IsCut(self):
        log = self.check(lambda a, b: torch._foreach_copy_(a, b), self.tensors(),
                         self.tensors(seed=1, dtype=torch.bfloat16))
        self.assertGreater(log.count("chunk"), 1)

    def test_ListsOfUnequalLength_RaiseBeforeAnyUpdate(self):
        tensors = self.tensors()
        before = [t.cpu() for t in tensors]
        with self.chunks_of(KIB), self.assertRaises(RuntimeError):
            torch._foreach_add_(tensors, self.tensors(5))
        self.assertUnchanged(tensors, before)

    def assertUnchanged(self, tensors, before):
        for tensor, was in zip(tensors, before):
            self.assertTrue(torch.equal(tensor.cpu(), was))


class FusedOps(PluginTest):
    def state(self, count=6, **odd):
        make = lambda seed: [torch.full((256,), float(seed + i + 1), device=DEVICE) for i in range(count)]
        lists = [make(seed) for seed in range(4)]
        steps = [torch.tensor(1.0, device=DEVICE) for _ in range(count)]
        for number, tensor in odd.items():
            lists[int(number[1:])][-1] = tensor
        for tensor in sum(lists, steps):
            tensor.add_(0)
        return lists, steps

    def step(self, lists, steps, **options):
        torch._fused_adamw_(*lists, [], steps, lr=0.1, beta1=0.9, beta2=0.99, weight_decay=0.01, eps=1e-8,
                            amsgrad=False, maximize=False, **options)

    def run_cut(self, lists, steps, **options):
        self.core.evict(*sum(lists, []))
        self.core.log()
        with self.chunks_of(8 * KIB):
            self.step(lists, steps, **options)
        return self.core.log().count("chunk")

    def test_FusedAdamW_Evicted_CutAndEqual(self):
        (ours, our_steps), (whole, whole_steps) = self.state(), self.state()
        self.step(whole, whole_steps)
        self.assertEqual(self.run_cut(ours, our_steps), 6)  # 4 KiB and a step of 4 bytes: one at a time
        if VALUES:
            for a, b in zip(sum(ours, []), sum(whole, [])):
                self.assertTrue(torch.equal(a.cpu(), b.cpu()))

    def test_FusedAdamW_ScaleAndInf_AreShared(self):
        lists, steps = self.state()
        scale, inf = torch.tensor(2.0, device=DEVICE), torch.tensor(0.0, device=DEVICE)
        self.assertGreater(self.run_cut(lists, steps, grad_scale=scale, found_inf=inf), 1)

    def test_FusedAdamW_OneOddTensor_RaisesBeforeAnyUpdate(self):
        odd = torch.ones(256, device=DEVICE, dtype=torch.float64)
        lists, steps = self.state(_3=odd)
        if VALUES:
            self.skipTest("the emulated kernel takes mixed types")
        before = [t.cpu() for t in lists[0]]
        with self.assertRaises(RuntimeError):
            self.run_cut(lists, steps)
        self.assertEqual(self.core.log().count("chunk"), 0)
        for tensor, was in zip(lists[0], before):
            self.assertTrue(torch.equal(tensor.cpu(), was))


if __name__ == "__main__":
    unittest.main()
