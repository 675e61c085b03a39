"""The op table: how rows are merged, judged, written and read. README.md says what the columns mean.

A row of the file is one operator; its columns are separated by " | ". A list is separated by commas, "-" is an empty one.
"""
import dataclasses
import pathlib
import re

COLUMNS = ("op", "kernels", "schema writes", "hook writes", "accesses", "temporaries", "disagreements", "treatment", "from")
SEPARATOR = " | "
AT_TIMES = "~"  # behind an argument whose hook fires in some calls only
# Running statistics are written where the schema says nothing (R2); not every branch of these can be sampled.
NAME_RULES = ((re.compile(r"batch_norm|instance_norm"), "normalisation"), (re.compile(r"_cudnn_rnn|miopen"), "library"))
WRITTEN_TOO, NOT_GIVEN = "written too: ", "not given: "  # clauses of a treatment
# By what a probe sees writes (write_watch.cc), and what the reader of a table has to know of it.
WATCHES = {
    "materialize hook": "It fires whenever an operator asks for an address by the mutable accessor.",
    "copy-on-write": "This torch has no materialize hook; a block that is shared is copied when it is asked for in the same way.",
}
LIST_OP = re.compile(r"aten::(_foreach_|_fused_|_amp_foreach_)")


@dataclasses.dataclass
class Row:
    op: str
    kernels: str
    writes: list           # names of arguments: what the schema marks
    hook: list             # whose materialize hook fired, or what stands for it on this torch (write_watch.h)
    accesses: list         # what threw while flagged; "self.values" is a part that the schema does not list
    temporaries: str
    disagreements: list
    treatment: str
    sources: list

    def text(self) -> str:
        def names(items):
            return ",".join(items) or "-"

        cells = (self.op, self.kernels, names(self.writes), names(self.hook), names(self.accesses), self.temporaries,
                 "; ".join(self.disagreements) or "-", self.treatment, "; ".join(self.sources) or "-")
        return SEPARATOR.join(cells)


def parse_row(line: str) -> Row:
    def names(cell):
        return [] if cell == "-" else cell.split(",")

    cells = line.split(SEPARATOR)
    if len(cells) != len(COLUMNS):
        raise ValueError(f"{len(cells)} columns, expected {len(COLUMNS)}: {line[:80]}")
    op, kernels, writes, hook, accesses, temporaries, disagreements, treatment, sources = cells
    return Row(op, kernels, names(writes), names(hook), names(accesses), temporaries,
               [] if disagreements == "-" else disagreements.split("; "), treatment,
               [] if sources == "-" else sources.split("; "))


# ---- merging what several sources showed

SETS = ("given", "fired", "silent", "tried", "refused", "inner", "layouts")
NUMBERS = ("temporaries", "kept", "share", "temporary_bytes")


def rounded(row: dict) -> dict:
    """A worker's row with the figures that the table shows."""
    return {**row, "share": round(row["share"], 1)}


def merged(rows: list) -> dict:
    whole = {name: set() for name in SETS} | {name: 0 for name in NUMBERS}
    for row in map(rounded, rows):
        for name in SETS:
            whole[name] |= set(row[name])
        for name in NUMBERS:
            whole[name] = max(whole[name], row[name])
    return whole


def facts(row: dict, whole: dict) -> set:
    """What a row contributes to the whole."""
    found = {(name, item) for name in SETS for item in row[name]}
    return found | {(name, whole[name]) for name in NUMBERS if rounded(row)[name] == whole[name]}


def needed_sources(by_source: dict) -> list:
    """Few sources whose rows together show all that every source showed (greedy cover, first names first)."""
    whole = merged(list(by_source.values()))
    offers = {source: facts(row, whole) for source, row in by_source.items()}
    missing, chosen = set().union(*offers.values()), []
    while missing:
        best = max(sorted(offers), key=lambda source: len(offers[source] & missing))
        chosen.append(best)
        missing -= offers[best]
    return sorted(chosen)


# ---- judging


def temporaries_text(whole: dict) -> str:
    if not whole["temporaries"]:
        return "0"
    kept = f", {whole['kept']} kept" if whole["kept"] else ""
    # Samples are a few hundred bytes: what is much larger has a size of its own, such as a workspace of cuBLAS.
    large = whole["share"] >= 100
    size = f"{whole['temporary_bytes']} B" if large else f"{whole['share']}x"
    return f"{whole['temporaries']} ({size}{kept})"


def parts_of(items, names: list) -> list:
    """"0", "0.values" of the probe as "self", "self.values"; arguments in the schema's order."""
    def key(item):
        number, _, part = item.partition(".")
        return int(number), part

    return [names[number] + ("." + part if part else "") for number, part in sorted(map(key, items))]


def disagreements_of(written: list, whole: dict, arguments: list) -> list:
    """Between the schema and what was measured; a list argument of which some tensor was written counts as written."""
    names = [name for name, _, _ in arguments]
    given = {names[int(i)] for i in whole["given"]}
    accessed = {names[int(i)] for i in whole["refused"]}
    fired = parts_of(whole["fired"], names)
    found = []
    stirred = {part.split(".")[0] for part in fired}
    silent = {names[int(i)] for i in whole["silent"]}
    marked = [name for name in written if name in given & accessed]
    never = [name for name in marked if name not in stirred]
    if never:
        found.append("hook misses " + ",".join(never))
    at_times = [name for name in marked if name in fired and name in silent]
    if at_times:
        found.append("hook misses at times " + ",".join(at_times))
    more = [part for part in fired if part.split(".")[0] not in written]
    if more:
        found.append("hook adds " + ",".join(more))
    inner = sorted({names[int(item.split(".")[0])] for item in whole["inner"]})
    if inner:
        found.append("reads inside " + ",".join(inner))
    return found


def not_given(written: list, whole: dict, arguments: list) -> list:
    """Arguments that never had memory on the card in any call: nothing is known of them."""
    given = {int(i) for i in whole["given"]}
    return [name for number, (name, kind, _) in enumerate(arguments)
            if "Tensor" in kind and number not in given and name not in written]


def treatment_of(op: str, disagreements: list, unknown: list = ()) -> str:
    rules = [reason for pattern, reason in NAME_RULES if pattern.search(op)]
    inside = [text.removeprefix("reads inside ") for text in disagreements if text.startswith("reads inside ")]
    unwrapped = f"; unwrapped: {inside[0]}" if inside else ""
    if LIST_OP.match(op):
        return "all written: list op" + unwrapped
    if rules:
        return f"all written: {rules[0]}" + unwrapped
    adds = [text.removeprefix("hook adds ") for text in disagreements if text.startswith("hook adds ")]
    more = [name for name in ",".join(adds).split(",") if name and "." not in name]  # parts always count as written
    clauses = ["audited"] + ([WRITTEN_TOO + ",".join(more)] if more else [])
    return "; ".join(clauses + ([NOT_GIVEN + ",".join(unknown)] if unknown else [])) + unwrapped


def judged(op: str, about: dict, by_source: dict, reason: str = "") -> Row:
    """The row of one operator. `about`: kernels and arguments; `by_source`: rows that ran."""
    written = [name for name, _, writes in about["arguments"] if writes]
    if not by_source:
        rules = treatment_of(op, [])
        rule = rules if rules.startswith("all written") else f"all written: not run: {reason}"
        if rule == rules:
            rule += f"; not run: {reason}"
        return Row(op, about["kernels"] or "-", written, [], [], "-", [], rule, [])
    whole = merged(list(by_source.values()))
    names = [name for name, _, _ in about["arguments"]]
    silent = {names[int(i)] for i in whole["silent"]}
    fired = [part + AT_TIMES * (part in silent) for part in parts_of(whole["fired"], names)]
    accesses = parts_of(whole["refused"] | whole["inner"], names)
    disagreements = disagreements_of(written, whole, about["arguments"])
    treatment = treatment_of(op, disagreements, not_given(written, whole, about["arguments"]))
    return Row(op, about["kernels"] or "-", written, fired, accesses, temporaries_text(whole), disagreements, treatment,
               needed_sources(by_source))


def is_audited(row: Row) -> bool:
    return row.treatment.startswith("audited")


def hooked_arguments(row: Row) -> set:
    """Names of the dense arguments whose hook fires in every call."""
    return {name for name in row.hook if "." not in name and not name.endswith(AT_TIMES)}


def written_arguments(row: Row) -> set:
    """Names of the dense arguments that an audited operator counts as writing."""
    unknown = [clause.removeprefix(NOT_GIVEN) for clause in row.treatment.split("; ") if clause.startswith(NOT_GIVEN)]
    fired = {name.removesuffix(AT_TIMES) for name in row.hook if "." not in name}
    return set(row.writes) | fired | {name for clause in unknown for name in clause.split(",")}


# ---- the file


def write(path: pathlib.Path, torch: str, rows: list, watched_by: str) -> None:
    rows = sorted(rows, key=lambda row: row.op)
    head = ["# Every aten operator with a CUDA kernel, and what its real host code does to its arguments.",
            f"# torch {torch}; made by tools/op_table/generate.py, which explains the columns in its README.md. Do not edit.",
            f"# Writes were seen by: {watched_by}. {WATCHES[watched_by]}", f"# {summary(rows)}", "# " + SEPARATOR.join(COLUMNS)]
    path.write_text("\n".join(head + [row.text() for row in rows]) + "\n")


def read(path: pathlib.Path) -> dict:
    lines = path.read_text().splitlines()
    return {row.op: row for row in (parse_row(line) for line in lines if line and not line.startswith("#"))}


def summary(rows: list) -> str:
    counts = (("operators", len(rows)), ("audited", sum(map(is_audited, rows))),
              ("not run", sum("not run" in row.treatment for row in rows)),
              ("with disagreements", sum(bool(row.disagreements) for row in rows)))
    return ", ".join(f"{number} {what}" for what, number in counts)
