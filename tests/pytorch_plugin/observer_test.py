"""R1, R4: what the observer sees, touches and pins."""
import threading
import unittest

import torch
import torch.nn.functional as F

from harness import DEVICE, PluginTest


class Observer(PluginTest):
    def outermost(self):
        return [line for line in self.core.log() if not line.startswith(" ") and line != "chunk"]

    def test_CompositeOp_Called_HoldsNothing(self):
        x, w = self.used(4, 8), self.used(8, 8)
        self.core.log()
        F.linear(x, w)
        self.assertNotIn("aten::linear", self.outermost())

    def test_Lstm_Called_OnlyItsInnerOpsHold(self):
        with torch.backends.cudnn.flags(enabled=False):
            lstm = torch.nn.LSTM(4, 4).to(DEVICE)
            x = self.used(3, 1, 4)
            self.core.log()
            lstm(x)
        log = self.core.log()
        self.assertFalse([line for line in log if line.strip() == "aten::lstm"])
        self.assertTrue([line for line in log if "addmm" in line or "mm" in line])

    def test_AutogradFunction_Called_HoldsNothing(self):
        class Double(torch.autograd.Function):
            @staticmethod
            def forward(context, x):
                return x * 2

            @staticmethod
            def backward(context, grad):
                return grad * 2

        x = self.used(8).requires_grad_()
        self.core.log()
        Double.apply(x).sum().backward()
        log = self.core.log()
        self.assertFalse([line for line in log if "Double" in line or "evaluate_function" in line])
        self.assertIn("aten::mul", log)

    def test_UserRange_Entered_HoldsNothing(self):
        x = self.used(8)
        self.core.log()
        with torch.profiler.record_function("aten::mine"):
            x + 1
        self.assertIn("aten::add", self.outermost())

    def test_OverloadWithKernel_OfCompositeName_TouchesItsArguments(self):
        for op in (lambda x: x.std(), lambda x: torch.std_mean(x, 0), lambda x: F.interpolate(x, scale_factor=2),
                   lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
                   lambda x: torch.arange(16, out=x.view(-1)[:16])):
            x = self.used(1, 2, 4, 4)
            self.core.evict(x)
            op(x)
            self.assertTrue(self.core.resident(x))
        repeats = torch.ones(4, dtype=torch.long, device=DEVICE)
        repeats.add_(0)
        self.core.evict(repeats)
        torch.repeat_interleave(repeats)
        self.assertTrue(self.core.resident(repeats))

    def test_View_OfEvicted_StaysEvicted(self):
        x = self.used(4, 8)
        self.core.evict(x)
        x.detach().view(8, 4).t()[0]
        self.assertFalse(self.core.resident(x))

    def test_Result_NeverAnInput_MayLeave(self):
        _, mask = torch.native_dropout(self.used(64), 0.5, True)
        self.core.evict(mask)  # saved for backward, an argument of nothing until then

    def test_Result_OfCallThatRaised_IsNoProblem(self):
        with self.assertRaises(RuntimeError):
            self.used(4, 4) @ self.used(5, 5)
        self.used(4) + 1

    def test_NewTensor_OnlyViewed_MayLeave(self):
        product = torch.ones(8, 8, device=DEVICE) @ torch.ones(8, 8, device=DEVICE)
        gradient = product.detach()  # what autograd does with a gradient that it keeps
        del product
        self.core.evict(gradient)

    def test_Backward_GradientsOfParameters_MayLeaveBeforeTheyAreUsed(self):
        linear = torch.nn.Linear(8, 8).to(DEVICE)
        linear(torch.ones(2, 8, device=DEVICE)).sum().backward()
        self.core.evict(linear.weight.grad, linear.bias.grad)

    def test_ModelMovedToDevice_BeforeAnyUse_MayLeave(self):
        linear = torch.nn.Linear(8, 8).to(DEVICE)
        self.core.evict(linear.weight, linear.bias)

    def test_Factory_FromEvicted_StaysEvicted(self):
        x = self.used(4, 8)
        self.core.evict(x)
        torch.zeros_like(x)
        self.assertFalse(self.core.resident(x))

    def test_NewTensor_NeverAnInput_MayNotLeave(self):
        fresh = torch.empty(64, device=DEVICE)
        self.core.evict_all()
        self.assertNotEqual(torch._C.TensorBase.data_ptr(fresh), 0)  # would throw

    def test_SparseCoo_Coalesced_IndicesAndValuesAreTouched(self):
        i, v = torch.tensor([[0, 1, 1], [2, 0, 0]], device=DEVICE), self.used(3)
        s = torch.sparse_coo_tensor(i, v, (2, 3), check_invariants=False)
        s.add(s)
        values = s._values()
        self.core.evict(values)
        s.coalesce()
        self.assertTrue(self.core.resident(values))

    def test_SparseCsr_Multiplied_ItsThreeTensorsAreTouched(self):
        crow, col = torch.tensor([0, 1, 2], device=DEVICE), torch.tensor([0, 1], device=DEVICE)
        values = self.used(2)
        csr = torch.sparse_csr_tensor(crow, col, values, (2, 2), check_invariants=False)
        csr.add(csr)
        self.core.evict(values)
        csr.add(csr)
        for part in (csr.values(), csr.crow_indices(), csr.col_indices()):
            self.assertTrue(self.core.resident(part))

    def test_OptionalTensorList_AsIndex_IsTouched(self):
        x, index = self.used(8, 8), torch.zeros(3, dtype=torch.long, device=DEVICE)
        index.add_(0)
        self.core.evict(x, index)
        x[:, index]
        self.assertTrue(self.core.resident(index))

    def test_Alias_OfEvictedBlock_IsFoundByAddress(self):  # C44
        x = self.used(64)
        alias = torch.from_dlpack(x)
        self.assertTrue(self.core.escaped(x))
        alias + 1

    def test_TorchDispatchMode_On_OnlyInnerEventsHold(self):
        class Mode(torch.utils._python_dispatch.TorchDispatchMode):
            def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                return function(*args, **(kwargs or {}))

        x = self.used(8)
        self.core.log()
        with Mode():
            x + 1
        self.assertEqual(self.core.log().count("aten::add"), 1)

    def test_OtherDevice_Op_TouchesNothing(self):
        before = self.core.touched()
        torch.ones(4) + 1
        self.assertEqual(self.core.touched(), before)


class BlindThread(PluginTest):
    def test_RecordFunctionDisabled_ThreadAllocates_NothingIsEvicted(self):
        x = self.used(64)
        with _events_off():
            torch.empty(64, device=DEVICE)
            self.assertEqual(self.core.blind_threads(), 1)
            self.core.evict_all()
            self.assertTrue(self.core.resident(x))
        x + 1
        self.assertEqual(self.core.blind_threads(), 0)
        self.core.evict(x)

    def test_EventsOn_AllocationBetweenOps_ThreadIsNotBlind(self):
        torch.UntypedStorage(1024, device=DEVICE)
        self.assertEqual(self.core.blind_threads(), 0)

    def test_ThreadEnds_AfterOps_StateIsFreed(self):
        errors = []

        def work():
            try:
                (self.used(16) * 2).sum()
            except BaseException as error:  # shown by the assertion below
                errors.append(error)

        for _ in range(8):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        self.assertEqual(errors, [])


class _events_off:
    def __enter__(self):
        torch._C._autograd._enable_record_function(False)

    def __exit__(self, *_):
        torch._C._autograd._enable_record_function(True)


if __name__ == "__main__":
    unittest.main()
