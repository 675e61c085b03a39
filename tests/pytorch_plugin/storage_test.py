"""R4, R5: accesses that no op announces, while the tensor is evicted."""
import copy
import io
import pickle
import unittest

import torch

from harness import DEVICE, PluginTest


class Storage(PluginTest):
    def evicted(self, *shape):
        tensor = self.used(*shape)
        self.core.evict(tensor)
        return tensor

    def test_UnannouncedAccess_WhileEvicted_Raises(self):  # C44
        x = self.evicted(64)
        with self.assertRaisesRegex(RuntimeError, "evicted by the fake core"):
            torch._C.TensorBase.data_ptr(x)

    def test_DataPtr_WhileEvicted_BringsBackAndPins(self):
        x = self.evicted(64)
        self.assertNotEqual(x.data_ptr(), 0)
        self.assertTrue(self.core.resident(x))
        self.assertTrue(self.core.escaped(x))

    def test_Profiler_WhileItRecords_ReadsAddressesFreely(self):
        self.assertEqual(self.core.address_readers(), 0)
        with torch.profiler.profile(record_shapes=True):
            self.assertEqual(self.core.address_readers(), 1)
            torch.ones(4, device=DEVICE).add_(1)
        self.assertEqual(self.core.address_readers(), 0)
        with self.assertRaises(ZeroDivisionError):
            with torch.autograd.profiler.profile():
                self.assertEqual(self.core.address_readers(), 1)
                raise ZeroDivisionError
        self.assertEqual(self.core.address_readers(), 0)

    def test_DataPtr_OfView_IsBasePlusOffset(self):
        x = self.evicted(64)
        self.assertEqual(x[16:].data_ptr(), x.data_ptr() + 64)

    def test_StorageDataPtr_WhileEvicted_BringsBackAndPins(self):
        x = self.evicted(64)
        self.assertNotEqual(x.untyped_storage().data_ptr(), 0)
        self.assertTrue(self.core.escaped(x))

    def test_IdentityCaller_DataPtr_NeitherPinsNorBringsBack(self):
        x = self.evicted(64)
        scope = {"__name__": "safetensors.torch"}
        exec("def ask(x):\n    return x.data_ptr(), x.untyped_storage().data_ptr(), x[4:].data_ptr()", scope)
        tensor, storage, view = scope["ask"](x)
        self.assertFalse(self.core.resident(x))
        self.assertFalse(self.core.escaped(x))
        self.assertEqual((tensor, storage, view - 16), (x.data_ptr(),) * 3)

    def test_EmptyTensor_DataPtr_IsZero(self):
        self.assertEqual(torch.empty(0, device=DEVICE).data_ptr(), 0)

    def test_CpuTensor_DataPtr_IsUntouched(self):
        x = torch.ones(4)
        self.assertEqual(x.data_ptr(), x.untyped_storage().data_ptr())

    def test_DlpackAndCudaArrayInterface_WhileEvicted_Pin(self):
        for export in (lambda t: torch.from_dlpack(t), lambda t: torch.utils.dlpack.to_dlpack(t),
                       lambda t: t.__dlpack__(), lambda t: t.__cuda_array_interface__):
            x = self.evicted(64)
            export(x)
            self.assertTrue(self.core.escaped(x))

    def test_Resize_WhileEvicted_NewBlockIsUsable(self):
        x = self.evicted(64)
        x.untyped_storage().resize_(1024)
        x + 1
        self.core.evict(x)
        x.untyped_storage().resize_(0)
        x.untyped_storage().resize_(256)
        x.add_(1)

    def test_Save_WhileEvicted_RoundTrips(self):
        x = self.evicted(8, 8)
        for options in ({}, {"_use_new_zipfile_serialization": False}):
            self.core.evict_all()
            file = io.BytesIO()
            torch.save({"x": x, "view": x[2]}, file, **options)
            file.seek(0)
            loaded = torch.load(file, weights_only=True)
            self.assertEqual(loaded["x"].shape, (8, 8))
        self.assertFalse(self.core.escaped(x))

    def test_DeepcopyPickleCpuTolist_WhileEvicted_Work(self):
        parameter = torch.nn.Parameter(torch.ones(8, device=DEVICE))
        for use in (copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t)), lambda t: t.cpu(), lambda t: t.tolist(),
                    lambda t: t.untyped_storage().clone(), lambda t: t.untyped_storage().cpu(), repr):
            parameter + 1
            self.core.evict(parameter)
            use(parameter)
        self.assertFalse(self.core.escaped(parameter))

    def test_StateDict_WhileEvicted_StaysEvicted(self):
        linear = torch.nn.Linear(8, 8).to(DEVICE)
        linear(self.used(1, 8))
        self.core.evict(linear.weight)
        state = linear.state_dict()
        self.assertFalse(self.core.resident(linear.weight))
        linear.load_state_dict(state)

    def test_Numpy_OfEvicted_TypeErrorAsEver(self):
        with self.assertRaisesRegex(TypeError, "can't convert cuda"):
            self.evicted(8).numpy()

    def test_SetAndData_OfEvicted_Work(self):
        x, y = self.evicted(8), self.used(8)
        x.data = y
        x + 1
        self.core.evict(y)
        x.set_(y)
        x + 1

    def test_LazyClone_OfEvicted_IsCopiedOnWrite(self):
        x = self.evicted(8)
        clone = torch._lazy_clone(x)
        clone.add_(1)
        x + clone

    def test_PinFails_DataPtr_OutOfMemory(self):
        x = self.evicted(64)
        self.core.fail_touches(1)
        with self.assertRaises(torch.OutOfMemoryError):
            x.untyped_storage().resize_(0)
        x.untyped_storage().resize_(0)


if __name__ == "__main__":
    unittest.main()
