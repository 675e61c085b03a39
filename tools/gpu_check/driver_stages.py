"""The stages that need no torch: the driver probe and the conformance suite."""
import json
import pathlib
import tempfile
import xml.etree.ElementTree

import places
import processes


def environment(gpu: str) -> dict:
    """What the programs of a stage run with. gpu: `real`, or `emulated[:PROFILE]`."""
    kept = processes.environment()
    if gpu != "real":
        kept["WEIR_GPU"] = gpu if ":" in gpu else "emulated:h200"
    elif places.cudart():
        kept["CUDART_LIBRARY"] = str(places.cudart())
    return kept


def probe(gpu: str, limit: float) -> tuple:
    """(lines, figures, passed) of the probe, which has its own limits inside `limit` seconds."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "probe.json")
        driver = [] if gpu == "real" else ["--driver", places.EMULATED_DRIVER]
        ended = processes.run([places.PROBE, "--json", path, "--limit", f"{max(limit - 2, 1):.0f}", *driver], limit,
                              environment(gpu))
        figures = json.loads(path.read_text()) if path.exists() and path.stat().st_size else {}
    lines = ended.output.splitlines()
    if ended.code != 0:
        lines += [f"the probe: {ended.describe()}", *ended.tail()]
    return lines, figures, ended.code == 0


def _results(report: pathlib.Path) -> list:
    """(name, "ok" | "failed" | "skipped", messages) of each test in a report of GoogleTest."""
    found = []
    for suite in xml.etree.ElementTree.parse(report).getroot():
        for test in suite:
            told = {kind: [entry.get("message", "") for entry in test.findall(kind)] for kind in ("failure", "skipped")}
            kind = "failed" if told["failure"] else "skipped" if test.get("result") == "skipped" else "ok"
            found.append((f"{suite.get('name')}.{test.get('name')}", kind, told["failure"] or told["skipped"]))
    return found


def _run_tests(gpu: str, only: list, limit: float) -> tuple:
    """(how the program ended, its results; none if it died)."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "report.xml")
        ended = processes.run([places.CONFORMANCE, f"--gtest_output=xml:{report}", f"--gtest_filter={':'.join(only) or '*'}"],
                              limit, environment(gpu))
        return ended, _results(report) if report.exists() else []


def _names(gpu: str) -> list:
    names, suite = [], ""
    for line in processes.run([places.CONFORMANCE, "--gtest_list_tests"], 20, environment(gpu)).output.splitlines():
        word = line.split("#")[0].strip()
        if not line.startswith(" "):
            suite = word if word.endswith(".") else ""
        elif suite:
            names.append(suite + word)
    return names


def _short(messages: list) -> str:
    """What a test said, without the line that names its source file."""
    lines = [line for message in messages for line in message.splitlines() if ".cc:" not in line]
    return " ".join(" ".join(lines).split())[:300]


def conformance(gpu: str, limit: float) -> tuple:
    """(lines, figures, passed): all rules in one process, then each that failed in one of its own, since an error that
    sticks fails what comes after it. Where the program died, every rule has a process of its own."""
    ended, results = _run_tests(gpu, [], limit * 0.6)
    lines, left = [], limit - ended.seconds
    if not results:
        lines += [f"in one process: {ended.describe()}", *ended.tail()]
        alone = _names(gpu)
    else:
        alone = [name for name, kind, _ in results if kind == "failed"]
    final = {name: (kind, messages) for name, kind, messages in results}
    for name in alone:
        again, result = _run_tests(gpu, [name], min(20, left)) if left > 1 else (None, [])
        left -= again.seconds if again else 0
        told = {tested: (kind, messages) for tested, kind, messages in result}
        final[name] = told.get(name, ("failed", [again.describe() if again else "no time was left"]))
    kinds = {kind: sorted(name for name in final if final[name][0] == kind) for kind in ("ok", "failed", "skipped")}
    for kind in ("failed", "skipped"):
        lines += [f"{kind}: {name}: {_short(final[name][1])}" for name in kinds[kind]]
    lines.append(", ".join(f"{len(names)} {kind}" for kind, names in kinds.items()))
    figures = {kind: {name: _short(final[name][1]) for name in names} for kind, names in kinds.items()}
    return lines, figures, bool(final) and not kinds["failed"]
