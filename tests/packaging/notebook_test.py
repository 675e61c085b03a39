"""A notebook's kernel, started and restarted by jupyter_client as Jupyter does it, that puts Weir in place with install().

Run by the Python of .venv-programs (tests/programs/requirements.txt).
"""
import fcntl
import json
import os
import pathlib
import struct
import tempfile
import unittest

from installation import CAP, InstallationTestCase
from jupyter_client.manager import KernelManager

LEDGER = pathlib.Path(f"/dev/shm/weir-ram-{os.geteuid()}")
BUDGET_MIB = 160  # of RAM, for all Weir processes of this user: the training needs more than half of it
INSTALL = f"import torch_weir\ntorch_weir.install(vram='64MiB', ram='{BUDGET_MIB}MiB/node')\n"
USE_CUDA = "import torch\nfirst = torch.ones(1, device='cuda')\n"
# What it makes stays alive, as in a notebook.
TRAIN = """
import torch
torch.manual_seed(5)
model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(8)]).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(4):
    inputs = torch.randn(16, 1024, generator=torch.Generator().manual_seed(step)).cuda()
    loss = (model(inputs) - inputs.flip(1)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(loss.item())
"""
FIGURES = "import json, os\nprint(json.dumps({**torch_weir.stats(), 'process': os.getpid()}))"


def holders_of_ram() -> set:
    """Processes with an entry in the table of this user's budgets of RAM (offload/ram_ledger.h), this one left out."""
    try:
        file = os.open(LEDGER, os.O_RDWR)
    except FileNotFoundError:
        return set()
    flock, found, start = "hhqqi4x", set(), 1
    try:
        while True:
            asked = struct.pack(flock, fcntl.F_WRLCK, os.SEEK_SET, start, 0, 0)
            kind, _, start, length, process = struct.unpack(flock, fcntl.fcntl(file, fcntl.F_GETLK, asked))
            if kind == fcntl.F_UNLCK:
                return found
            found.add(process)
            start += length
    finally:
        os.close(file)


class Kernel:
    """A kernel of this Python, in a folder and a home of its own."""

    def __init__(self, environment: dict, folder: pathlib.Path):
        self._manager = KernelManager()
        self._manager.start_kernel(env=environment, cwd=str(folder))
        self._client = self._manager.client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=120)

    def run(self, cell: str) -> str:
        """What the cell printed; RuntimeError with the name and the text of the exception that it raised."""
        printed = []

        def see(message):
            if message["msg_type"] == "stream" and message["content"]["name"] == "stdout":
                printed.append(message["content"]["text"])

        reply = self._client.execute_interactive(cell, timeout=300, output_hook=see)["content"]
        if reply["status"] != "ok":
            raise RuntimeError(f"{reply.get('ename')}: {reply.get('evalue')}")
        return "".join(printed)

    def restart(self, killed: bool = False) -> None:
        self._manager.restart_kernel(now=killed)
        self._client.wait_for_ready(timeout=120)

    def stop(self) -> None:
        if self._manager.has_kernel:
            self._manager.shutdown_kernel()
        self._client.stop_channels()
        self._manager.cleanup_resources()


class Notebook(InstallationTestCase):
    def start(self) -> Kernel:
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.scratch))
        os.environ["JUPYTER_RUNTIME_DIR"] = str(folder)  # of this process, which writes the file that says where the kernel listens
        kernel = Kernel(self.emulated(HOME=str(folder), WEIR_EMULATED_REPORTS="abort"), folder)
        self.addCleanup(kernel.stop)
        return kernel

    def train(self, kernel: Kernel) -> tuple:
        """Under the cap: what the training printed, and what Weir says after it."""
        losses = kernel.run(TRAIN)
        figures = json.loads(kernel.run(FIGURES))
        self.assertEqual(figures["weir/cap"], CAP)
        self.assertLessEqual(figures["weir/peak_resident"], CAP)
        # Two such kernels at once would exceed the budget.
        self.assertGreater(figures["weir/spilled_ram"], BUDGET_MIB << 19)
        self.assertIn(figures["process"], holders_of_ram())
        return losses, figures["process"]

    def test_Install_CudaStartedInTheKernel_RefusedUntilRestarted(self):
        """C23, and docs/run-anywhere.md: restart the kernel and make it the first cell. Restarted, it computes the same each time."""
        kernel = self.start()
        kernel.run(USE_CUDA)
        with self.assertRaisesRegex(RuntimeError, "^RuntimeError: CUDA has started already in this process.*restart the kernel"):
            kernel.run(INSTALL)
        without_weir = kernel.run(TRAIN)  # the kernel goes on as before
        self.assertEqual(without_weir.count("\n"), 4)
        before = set()
        for killed in (False, True):
            kernel.restart(killed)
            self.assertFalse(before & holders_of_ram(), "a kernel that is gone counts still")
            kernel.run(INSTALL)
            losses, process = self.train(kernel)
            self.assertEqual(losses, without_weir)
            self.assertNotIn(process, before)
            before.add(process)
        kernel.stop()
        self.assertFalse(before & holders_of_ram())
        # The last one removes the file: unless it is in use by other jobs of this user.
        self.assertTrue(holders_of_ram() or not LEDGER.exists(), f"{LEDGER} is left over")


if __name__ == "__main__":
    unittest.main()
