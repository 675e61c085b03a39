"""R12: a page-in that fails ends in torch.OutOfMemoryError, and the op's end leaves everything as it was."""
import unittest

import torch

from harness import DEVICE, PluginTest


# What an op raises that writes an argument and allocates nothing: torch before 2.13 has no hook to raise it from.
HAS_HOOK = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 13)
IN_PLACE_ERROR = torch.OutOfMemoryError if HAS_HOOK else RuntimeError


class OutOfMemory(PluginTest):
    def evicted(self, *shape):
        tensor = self.used(*shape)
        self.core.evict(tensor)
        return tensor

    def assertFlagBack(self, tensor):
        """The storage throws again for accesses that nobody announces."""
        self.assertFalse(self.core.resident(tensor))
        with self.assertRaisesRegex(RuntimeError, "evicted by the fake core"):
            torch._C.TensorBase.data_ptr(tensor)

    def test_OpThatAllocates_PageInFails_OutOfMemoryFromAllocation(self):
        a = self.evicted(64)
        self.core.fail_touches(1)
        with self.assertRaisesRegex(torch.OutOfMemoryError, "CUDA out of memory. fake core: told to fail"):
            torch.mul(a, 2)
        self.assertFlagBack(a)

    def test_WrittenArgument_PageInFails_OutOfMemoryFromHook(self):
        a, source = self.evicted(64), torch.ones(64)
        self.core.fail_touches(1)
        with self.assertRaisesRegex(IN_PLACE_ERROR, "CUDA out of memory. fake core: told to fail"):
            a.fill_(0)
        self.assertFlagBack(a)
        a.copy_(source)
        self.assertTrue(self.core.resident(a))

    def test_ResultGiven_PageInOfReadArgumentFails_ErrorWithSameText(self):
        for op in (lambda a, out: torch.mul(a, 2, out=out), lambda a, out: out.copy_(a)):
            a, out = self.evicted(64), self.used(64)
            self.core.fail_touches(1)
            with self.assertRaisesRegex(RuntimeError, "told to fail"):  # the overlap check reads first
                op(a, out)
            self.assertFlagBack(a)
            self.assertTrue(self.core.resident(out))
            op(a, out)

    def test_ReadOnlyOp_PageInFails_RuntimeErrorWithSameText(self):
        a = self.evicted(1)
        self.core.fail_touches(1)
        with self.assertRaisesRegex(RuntimeError, "told to fail"):
            a.item()
        self.assertFlagBack(a)
        a.item()

    def test_ListOp_PageInFails_OutOfMemoryDirectly(self):
        tensors = [self.used(64) for _ in range(4)]
        self.core.evict(*tensors)
        self.core.fail_touches(1)
        with self.assertRaisesRegex(torch.OutOfMemoryError, "told to fail"):
            torch._foreach_add_(tensors, 1.0)

    def test_FailedOp_Retried_Works(self):  # C05
        for op, error in ((lambda t: t + 1, torch.OutOfMemoryError), (lambda t: t.add_(1), IN_PLACE_ERROR),
                          (lambda t: torch._foreach_mul([t, t], 2.0), torch.OutOfMemoryError)):
            a = self.evicted(64)
            self.core.fail_touches(1)
            with self.assertRaises(error):
                op(a)
            op(a)
            self.assertTrue(self.core.resident(a))

    def test_FailedOp_NextAllocation_IsNotAffected(self):
        a = self.evicted(64)
        self.core.fail_touches(1)
        with self.assertRaises(torch.OutOfMemoryError):
            a + 1
        self.assertEqual(torch.empty(32, device=DEVICE).numel(), 32)

    def test_NestedOp_PageInFails_OuterOpRaises(self):
        a, b = self.evicted(8, 8), self.evicted(8, 8)
        self.core.fail_touches(1)
        with self.assertRaises(torch.OutOfMemoryError):
            torch.nn.functional.linear(a, b)
        torch.nn.functional.linear(a, b)

    def test_ResidentArguments_PageInOfAnotherFails_StayUsable(self):
        gone, here = self.evicted(64), self.used(64)
        self.core.fail_touches(1)
        with self.assertRaises(torch.OutOfMemoryError):
            gone + here
        self.assertTrue(self.core.resident(here))
        here + 1

    def test_Backward_PageInFails_OutOfMemoryReachesTheCaller(self):
        weight = self.used(16, 16).requires_grad_()
        loss = (torch.ones(2, 16, device=DEVICE) @ weight).pow(2).sum()
        self.core.evict(weight)
        self.core.fail_touches(1)
        with self.assertRaises(torch.OutOfMemoryError):
            loss.backward()


if __name__ == "__main__":
    unittest.main()
