"""The allocator as torch sees it: figures, refusals by name, out-of-memory, streams, the end of the process."""
import os
import subprocess
import sys
import unittest

import torch

from harness import DEVICE, PluginTest

STATISTICS = ("allocation", "segment", "active", "inactive_split", "allocated_bytes", "reserved_bytes",
              "active_bytes", "inactive_split_bytes", "requested_bytes")


class Allocator(PluginTest):
    def test_MemoryStats_Asked_EveryKeyIsThere(self):
        stats = torch.cuda.memory_stats()
        for name in STATISTICS:
            for pool in ("all", "small_pool", "large_pool"):
                for figure in ("current", "peak", "allocated", "freed"):
                    self.assertIn(f"{name}.{pool}.{figure}", stats)
        for name in ("num_alloc_retries", "num_ooms", "num_sync_all_streams", "num_device_alloc", "num_device_free"):
            self.assertIn(name, stats)
        self.assertIn("Allocated memory", torch.cuda.memory_summary())

    def test_MemoryAllocated_AfterTensor_Grows(self):
        before = torch.cuda.memory_allocated()
        x = torch.empty(1000, device=DEVICE)
        self.assertEqual(torch.cuda.memory_allocated() - before, x.nbytes)
        self.assertEqual(torch.accelerator.memory_allocated(), torch.cuda.memory_allocated())

    def test_PeakAndCache_Reset_Work(self):
        torch.cuda.reset_peak_memory_stats()
        torch.cuda.reset_accumulated_memory_stats()
        torch.cuda.empty_cache()
        torch.accelerator.empty_cache()

    def test_NotSupported_IsRefusedByName(self):  # C22
        refused = {
            "caching_allocator_enable": lambda: torch.cuda.caching_allocator_enable(False),
            "graphs": lambda: torch.cuda.CUDAGraph().capture_begin(),
            "IPC": lambda: torch.ones(4, device=DEVICE).untyped_storage()._share_cuda_(),
        }
        for name, use in refused.items():
            with self.subTest(name), self.assertRaisesRegex(NotImplementedError,
                                                            rf"Weir does not support .*{name}.*WEIR_DISABLE=1"):
                if name == "graphs":
                    with torch.cuda.stream(torch.cuda.Stream()):
                        use()
                else:
                    use()

    def test_MemoryFraction_Set_IsWhatIsAsked(self):
        self.assertEqual(torch.cuda.get_per_process_memory_fraction(), 1.0)
        torch.cuda.set_per_process_memory_fraction(0.5)
        self.assertEqual(torch.cuda.get_per_process_memory_fraction(), 0.5)
        torch.cuda.set_per_process_memory_fraction(1.0)
        with self.assertRaises(ValueError):
            torch.cuda.set_per_process_memory_fraction(1.5)

    def test_HistoryOff_Asked_IsNoError(self):
        torch.cuda.memory._record_memory_history(None)

    def test_TooLarge_Allocation_OutOfMemoryAndObserverCalled(self):
        seen = []
        torch._C._cuda_attach_out_of_memory_observer(lambda *figures: seen.append(figures))
        with self.assertRaisesRegex(torch.OutOfMemoryError, "CUDA out of memory"):
            torch.empty(1 << 45, dtype=torch.uint8, device=DEVICE)
        self.assertEqual(len(seen), 1)
        self.assertEqual(seen[0][1], 1 << 45)

    def test_RecordStream_PoolStreamAndExternal_AreToldApart(self):
        x = self.used(16)
        self.core.log()
        x.record_stream(torch.cuda.Stream())
        x.record_stream(torch.cuda.default_stream())
        self.assertEqual([line for line in self.core.log() if "external" in line], ["record_stream external=0"] * 2)
        handle = torch.cuda.Stream().cuda_stream
        x.record_stream(torch.cuda.ExternalStream(handle))
        self.assertIn("record_stream external=1", self.core.log())

    def test_EmptyTensor_MadeAndFreed_NoBlock(self):
        before = self.core.blocks()
        x = torch.empty(0, device=DEVICE)
        self.assertEqual(self.core.blocks(), before)
        del x

    def test_AllocatorBackend_Asked_IsNative(self):
        self.assertEqual(torch.cuda.get_allocator_backend(), "native")

    def test_RawAllocation_AllocatedAndDeleted_BlocksBalance(self):
        before = self.core.blocks()
        pointer = torch.cuda.caching_allocator_alloc(4096)
        self.assertEqual(self.core.blocks(), before + 1)
        torch.cuda.caching_allocator_delete(pointer)
        self.assertEqual(self.core.blocks(), before)


class Process(unittest.TestCase):
    def run_script(self, script, **environment):
        return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120,
                              env={**os.environ, **environment})

    def test_TensorsAlive_AtInterpreterExit_NoCrash(self):  # C26
        done = self.run_script("import torch; keep = [torch.ones(64, device='cuda') for _ in range(8)]; "
                               "import builtins; builtins.keep = keep")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_ForkedChild_FreesInheritedTensors_NoCrash(self):
        done = self.run_script(
            "import torch, os, gc\n"
            "x = torch.ones(64, device='cuda'); x.add_(1)\n"
            "pid = os.fork()\n"
            "if pid == 0:\n"
            "    del x; gc.collect(); torch.ones(4) + 1; os._exit(0)\n"
            "assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0\n"
            "x.add_(1)\n")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_CudaMallocAsync_Named_WeirStaysOut(self):
        done = self.run_script("import torch; torch.ones(4, device='cuda'); print(torch.cuda.get_allocator_backend())",
                               PYTORCH_ALLOC_CONF="backend:cudaMallocAsync")
        self.assertEqual((done.returncode, done.stdout), (0, "cudaMallocAsync\n"), done.stderr)
        self.assertIn("cudaMallocAsync", done.stderr)
        self.assertIn("weir:", done.stderr)

    def test_Disabled_NativeAllocatorIsThere(self):
        done = self.run_script("import torch; torch.ones(4, device='cuda'); torch.cuda.memory_snapshot(); "
                               "print(torch.cuda.memory_reserved())", WEIR_DISABLE="1")
        self.assertEqual(done.stdout.strip(), str(2 << 20), done.stderr)

    def test_NoVmm_AtInit_NativeAllocatorTakesOver(self):
        script = ("import torch\n"
                  "x = [torch.ones(1000, device='cuda') for _ in range(3)]\n"
                  "torch._foreach_add_(x, 1.0); x[0] + x[1]\n"
                  "torch.cuda.memory_snapshot(); print(torch.cuda.memory_reserved())\n")
        done = self.run_script(script, FAKE_NO_VMM="1")
        self.assertEqual(done.stdout.strip(), str(2 << 20), done.stderr)
        self.assertIn("weir: the fake core finds no VMM", done.stderr)
        done = self.run_script(script, FAKE_NO_VMM="1", WEIR_REQUIRED="1")
        self.assertEqual((done.stdout, done.returncode), ("", 4))

    def test_NoVmm_PluggableRoute_IsCudaMalloc(self):
        done = self.run_script(
            "import os, torch\n"
            "path = os.environ['WEIR_TEST_LOADER']\n"
            "allocator = torch.cuda.memory.CUDAPluggableAllocator(path, 'weir_malloc', 'weir_free')\n"
            "torch.cuda.memory.change_current_allocator(allocator)\n"
            "x = [torch.ones(1000, device='cuda') for _ in range(3)]; torch._foreach_add_(x, 1.0); del x; print('good')",
            FAKE_NO_VMM="1")
        self.assertEqual((done.stdout.strip(), done.returncode), ("good", 0), done.stderr)

    def test_PluggableRoute_Named_SameBlocksOnce(self):
        script = ("import os, ctypes, torch\n"
                  "path = os.environ['WEIR_TEST_LOADER']\n"
                  "allocator = torch.cuda.memory.CUDAPluggableAllocator(path, 'weir_malloc', 'weir_free')\n"
                  "torch.cuda.memory.change_current_allocator(allocator)\n"
                  "x = torch.ones(1000, device='cuda'); x.add_(1)\n"
                  "core = ctypes.CDLL('libweir_core.so')\n"
                  "core.fake_blocks.restype = ctypes.c_uint64\n"
                  "assert core.fake_blocks() >= 1\n"
                  "core.fake_evict_all()\n"
                  "assert core.fake_is_resident(ctypes.c_void_p(x.untyped_storage()._cdata)) == 0\n"
                  "x + 1\n"
                  "x.record_stream(torch.cuda.Stream())\n"
                  "core.fake_fail_touches(1); core.fake_evict_all()\n"
                  "try:\n    x + 1\n    raise SystemExit('no error')\n"
                  "except torch.OutOfMemoryError as error: assert 'told to fail' in str(error)\n"
                  "before = core.fake_blocks(); del x; assert core.fake_blocks() == before - 1\n"
                  "print('good')\n")
        preloads = (os.environ["LD_PRELOAD"], os.environ["LD_PRELOAD"].split()[1])
        for preload in preloads:  # with the loader preloaded as well, and by ctypes alone
            with self.subTest(preload):
                done = self.run_script(script, LD_PRELOAD=preload)
                self.assertEqual((done.stdout.strip(), done.returncode), ("good", 0), done.stderr)


if __name__ == "__main__":
    unittest.main()
