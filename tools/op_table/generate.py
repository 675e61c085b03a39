#!/usr/bin/env python3
"""Makes the op table of one torch version, or checks it: see README.md.

    tools/op_table/generate.py                        the table of torch 2.15, into pytorch_plugin/op_tables/2_15.txt
    tools/op_table/generate.py --check 40 --seed 7    runs again what at least 40 operators came from; 1 if a row differs
    tools/op_table/generate.py --check all            the same for every operator
    tools/op_table/generate.py --list                 no run: every operator of the installed torch has its row

Needs the targets weir_op_table_probe_X_Y, weir_emulated_kernels_X_Y, weir_emulated_gpu and weir_emulator in --build, and the
Python of that torch.
"""
import argparse
import pathlib
import random
import re
import sys

import run_workers
import table

ROOT = pathlib.Path(__file__).resolve().parents[2]
CUDA_KERNELS = set("CSRN")
# Why no call of an operator returns, by its name, where the schema's call fails for a lesser reason.
REASONS = (
    (re.compile("miopen"), "MIOpen is not in this build of torch"),
    (re.compile("_cslt_"), "cuSPARSELt does not start on the emulated GPU"),
    (re.compile("linalg_(eig|ldl_solve|lstsq|polar|qr)|ormqr"), "cuSOLVER does not start on the emulated GPU"),
    (re.compile("sspaddmm"), "torch has it for the CPU alone"),
    (re.compile("hspmm|_sparse_sparse_matmul"), "cuSPARSE does not start on the emulated GPU"),
)


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", default="2.15", metavar="X.Y", help="the version that --python has")
    parser.add_argument("--python", help="instead of .venv or .venv-X.Y")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--output", type=pathlib.Path, help="the table, instead of the checked-in one")
    parser.add_argument("--check", metavar="N|all", help="compare instead of writing")
    parser.add_argument("--seed", type=int, default=1, help="chooses what --check N runs")
    parser.add_argument("--list", action="store_true", help="compare names only")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("-v", "--verbose", action="store_true", help="a line per source")
    options = parser.parse_args(arguments)
    if options.check not in (None, "all") and not options.check.isdigit():
        parser.error("--check takes a number or `all`")
    beside = ROOT / f".venv-{options.torch}"
    options.python = options.python or str((beside if beside.exists() else ROOT / ".venv") / "bin" / "python")
    minor = options.torch.replace(".", "_")
    options.probe = options.build / "lib" / f"libweir_op_table_probe_{minor}.so"
    for needed in (options.probe, options.build / "lib" / "emulated_gpu" / f"libweir_emulated_kernels_{minor}.so"):
        if not needed.exists():  # what runs must not depend on what happens to be built
            parser.error(f"{needed} is not built")
    options.output = options.output or ROOT / "pytorch_plugin" / "op_tables" / f"{minor}.txt"
    return options


class Generator:
    def __init__(self, options):
        self._options = options
        self._known = run_workers.listing(
            options.python, options.build, "--operators" if options.list or options.check else "--list")
        self.torch = self._known["torch"]
        if not self.torch.startswith(options.torch + "."):
            sys.exit(f"op table: {options.python} has torch {self.torch}, --torch says {options.torch}")
        self.operators, self.sources = self._known["operators"], self._known["sources"]
        self.watched_by = ""

    def cuda_operators(self) -> list:
        return sorted(name for name, about in self.operators.items() if CUDA_KERNELS & set(about["kernels"]))

    def run(self, sources: list) -> dict:
        """Answers by source."""
        options = self._options

        def progress(answer, done, count):
            told = "; ".join(filter(None, [answer["failure"], "died in " + " ".join(answer["died"]) if answer["died"] else ""]))
            if told or options.verbose or done % 100 == 0:
                print(f"op table: {done}/{count} {answer['source']} {told}", file=sys.stderr, flush=True)

        answers, self.watched_by = run_workers.run_sources(sources, options.jobs, options.python, options.build,
                                                           options.probe, progress)
        return answers

    def by_operator(self, answers: dict) -> dict:
        """Rows that ran, by operator and source."""
        found = {}
        for source, answer in answers.items():
            for row in answer["rows"]:
                if row["runs"] and row["op"] in self.operators:
                    found.setdefault(row["op"], {})[source] = row
        return found

    def rows(self, answers: dict, failures: dict) -> list:
        found = self.by_operator(answers)
        names = set(self.cuda_operators()) | set(found)
        return [table.judged(name, self.operators[name], found.get(name, {}), failures.get(name, ""))
                for name in sorted(names)]


def reason_of(answer: dict) -> str:
    """Why a schema source has no row of its operator."""
    for pattern, reason in REASONS:
        if pattern.search(answer["source"]):
            return reason
    if answer["died"]:
        return "the host code crashes"
    text = answer["failure"].replace(table.SEPARATOR.strip(), "/").replace(";", ",")
    return text[:100] or "returns no CUDA tensor"


def generate(generator: Generator, options) -> int:
    answers = generator.run(generator.sources)
    ran = generator.by_operator(answers)
    left = [name for name in generator.cuda_operators() if name not in ran]
    print(f"op table: {len(left)} operators are left to their schemas", file=sys.stderr, flush=True)
    from_schema = generator.run([f"schema {name}" for name in left])
    # Only the operator itself: what else a schema's call happens to run has better sources.
    for name in left:
        answer = from_schema[f"schema {name}"]
        answers[f"schema {name}"] = {**answer, "rows": [row for row in answer["rows"] if row["op"] == name]}
    rows = generator.rows(answers, {name: reason_of(from_schema[f"schema {name}"]) for name in left})
    table.write(options.output, generator.torch, rows, generator.watched_by)
    print(f"op table: {options.output}: {table.summary(rows)}")
    return 0


def check_names(generator: Generator, options) -> int:
    """Every operator with a CUDA kernel has a row, and each row's operator is there with the same kernels and writes."""
    rows, wrong = table.read(options.output), []
    wrong += [f"{name}: has no row" for name in generator.cuda_operators() if name not in rows]
    for name, row in rows.items():
        about = generator.operators.get(name)
        if about is None:
            wrong.append(f"{name}: torch {generator.torch} has no such operator")
            continue
        writes = [argument for argument, _, writes in about["arguments"] if writes]
        if (about["kernels"] or "-", writes) != (row.kernels, row.writes):
            wrong.append(f"{name}: kernels {about['kernels']}, writes {writes}; the row says {row.kernels}, {row.writes}")
    return told(wrong, f"{len(rows)} rows match torch {generator.torch}")


def sampled(rows: dict, wanted: str, seed: int) -> tuple:
    """Operators to check and the sources to run: sources are drawn until they cover as many operators as wanted."""
    needs = {name: set(row.sources) for name, row in rows.items() if row.sources}
    if wanted == "all":
        return sorted(needs), sorted(set().union(*needs.values()))
    order = sorted(set().union(*needs.values()))
    random.Random(seed).shuffle(order)
    chosen, covered = [], []
    for source in order:
        chosen.append(source)
        covered = [name for name, sources in needs.items() if sources <= set(chosen)]
        if len(covered) >= int(wanted):
            break
    return sorted(covered), chosen


def check_rows(generator: Generator, options) -> int:
    rows = table.read(options.output)
    names, sources = sampled(rows, options.check, options.seed)
    found, wrong = generator.by_operator(generator.run(sources)), []
    for name in names:
        by_source = {source: row for source, row in found.get(name, {}).items() if source in rows[name].sources}
        now = table.judged(name, generator.operators[name], by_source)
        if now.text() != rows[name].text():
            wrong += [f"{name}: the row differs", f"  was {rows[name].text()}", f"  now {now.text()}"]
    return told(wrong, f"{len(names)} rows, from {len(sources)} sources, are as they were (seed {options.seed})")


def told(wrong: list, right: str) -> int:
    print("\n".join(wrong) if wrong else f"op table: {right}")
    return 1 if wrong else 0


def main(arguments=None) -> int:
    options = parse(arguments)
    generator = Generator(options)
    if options.list:
        return check_names(generator, options)
    return check_rows(generator, options) if options.check else generate(generator, options)


if __name__ == "__main__":
    sys.exit(main())
