"""Which programs there are, and under what each of them has to give the same result."""
import dataclasses
import random

MIB = 1 << 20
POLICIES = ("lru", "youngest")  # youngest: the most recently used extent first, the worst choice that is still legal


@dataclasses.dataclass(frozen=True)
class Cell:
    """One run of one program.

    kind: `natural` (without Weir), `uncapped` (Weir, WEIR_VRAM=off), `capped` (a share of the natural peak, or a
    fixed cap), `small card` (no option of Weir, the emulated card is smaller than the job).
    """
    kind: str
    kernels: str = "cpu"
    share: float = 0.0
    policy: str = "lru"

    def __str__(self):
        cap = f" {self.share:.2f} {self.policy}" if self.kind == "capped" else ""
        return f"{self.kind}{cap} {self.kernels}"


@dataclasses.dataclass(frozen=True)
class Program:
    """name: as on the command line; script: file in this folder, or a built program (no `.py`).

    gpu: for `weir run`; card: size of the emulated card, else that of an H200; cap: bytes, else a share of the natural peak; ram: RAM budget.
    steady: has steps enough that without a cap the second half of its allocations needs no driver call.
    packages: imports what requirements.txt names; torch 2.15 only.
    expects: `same` digest; `refused` ops; `ram` budget exhausted; `lowered` cap; `card` (job larger than the card); `fits` (figures);
    `kept` (nothing may leave, so a cap ends the job). runtime_errors: refused ops that may raise a plain RuntimeError.
    """
    name: str
    script: str
    args: tuple = ()
    shares: tuple = (1 / 2, 1 / 3)
    kernels: tuple = ("cpu", "none")
    gpu: str = "emulated"
    card: str = ""
    cap: int = 0
    ram: str = ""
    packages: bool = False
    expects: str = "same"
    steady: bool = False
    seconds: int = 120
    runtime_errors: tuple = ()

    def cells(self) -> list:
        """All cells but the natural one, which every program has."""
        if self.expects == "card":
            return [Cell("small card")]
        if self.expects == "fits":
            return [Cell("uncapped", "none")]
        return [Cell("uncapped", kernels) for kernels in self.kernels] + [
            Cell("capped", kernels, share, policy)
            for kernels in self.kernels for share in self.shares for policy in POLICIES]


PROGRAMS = [
    Program("adamw", "optimizers.py", ("adamw",), steady=True),
    Program("adamw_fused", "optimizers.py", ("adamw_fused",), steady=True),
    Program("adamw_single", "optimizers.py", ("adamw_single",), steady=True),
    Program("sgd", "optimizers.py", ("sgd",), steady=True),
    Program("adafactor", "optimizers.py", ("adafactor",), steady=True),
    Program("lamb", "lamb.py"),
    Program("autocast_scaler", "autocast_scaler.py"),
    Program("activation_checkpoint", "activation_checkpoint.py"),
    Program("accumulation", "accumulation.py"),
    Program("varying_shapes", "varying_shapes.py"),
    Program("evaluation", "evaluation.py"),
    Program("two_models", "two_models.py"),
    Program("data_loader", "data_loader.py"),
    Program("forked", "forked.py"),
    Program("spawned", "spawned.py"),
    Program("resume", "resume.py"),
    Program("lstm", "lstm.py"),
    Program("sparse_gradients", "sparse_gradients.py"),
    Program("hidden_accesses", "hidden_accesses.py"),
    Program("generation", "generation.py", shares=(2 / 3, 1 / 2, 1 / 3)),
    Program("side_stream", "side_stream.py"),
    Program("free_elsewhere", "free_elsewhere.py"),
    Program("two_threads", "two_threads.py"),
    Program("two_devices", "two_devices.py", gpu="emulated:h200x2"),
    Program("profiled", "profiled.py"),
    Program("pytest_workers", "pytest_workers.py", packages=True),
    Program("accelerated", "accelerated.py", packages=True),
    Program("plain_loop", "example.py", ("plain_loop",)),
    Program("hf_trainer", "example.py", ("hf_trainer",), packages=True),
    Program("lightning_fit", "example.py", ("lightning_fit",), packages=True),
    Program("lora", "example.py", ("lora",), packages=True, kernels=("cpu",)),  # generation goes by values
    Program("retry_after_oom", "retry_after_oom.py", card="768MiB", kernels=("cpu",)),
    Program("op_larger_than_cap", "op_larger_than_cap.py", shares=(0.0,), cap=16 * MIB, expects="refused",
            kernels=("cpu",)),
    Program("ram_budget", "ram_budget.py", shares=(1 / 3,), ram="24MiB", expects="ram", kernels=("cpu",)),
    Program("cap_changes", "cap_changes.py", shares=(0.0,), cap=40 * MIB, expects="lowered", kernels=("cpu",)),
    Program("larger_than_card", "larger_than_card.py", expects="card"),
    Program("llama7b", "llama7b.py", expects="fits"),
    Program("libtorch", "libtorch_training", steady=True),
]


# On torch 2.11 a program that links torch is foreign code, beside which nothing leaves (R3), and an op that allocates nothing
# has no place to raise OutOfMemoryError from (R12).
CHANGES = {"2.11": {"libtorch": {"expects": "kept"}, "op_larger_than_cap": {"runtime_errors": ("in_place",)}}}


def on_torch(minor: str, program: Program) -> Program:
    """What `program` has to show on that torch; None is the default one."""
    return dataclasses.replace(program, **CHANGES.get(minor, {}).get(program.name, {}))


def choose(stage: str, seed: int, kernels: str, names: list) -> list:
    """(program, cells) for a stage: `full` all cells; `ci` for each program one without a cap and one capped cell for
    each kind of kernels, drawn by the seed; `quick` so for one program. `kernels` keeps only one kind, or `both`."""
    chosen = []
    for program in PROGRAMS:
        if names and program.name not in names or not names and stage == "quick" and program.name != "adamw":
            continue
        cells = [cell for cell in program.cells() if kernels in ("both", cell.kernels)]
        if stage != "full":
            draw = random.Random(f"{seed} {program.name}")
            cells = [cell for cell in cells if cell.kind != "capped"][:1] + [
                draw.choice(capped) for kind in program.kernels
                if (capped := [cell for cell in cells if cell.kind == "capped" and cell.kernels == kind])]
        if cells:
            chosen.append((program, cells))
    return chosen
