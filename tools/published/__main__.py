"""`python tools/published steps` or `peaks`: steps.py, peaks.py."""
import argparse
import pathlib
import sys

import peaks
import steps

ROOT = pathlib.Path(__file__).resolve().parents[2]
KINDS = {"steps": steps, "peaks": peaks}


def main() -> int:
    parser = argparse.ArgumentParser(description="Predicts what was published of training jobs, and prints both as the tables of docs/: "
                                                 + "; ".join(f"{name}: {kind.__doc__.splitlines()[0]}" for name, kind in KINDS.items()))
    parser.add_argument("kind", choices=tuple(KINDS))
    parser.add_argument("--check", action="store_true", help="exit code 1 when the documentation has other figures")
    parser.add_argument("--weir", type=pathlib.Path, default=ROOT / "build" / "bin" / "weir")
    parser.add_argument("--python", default=str(ROOT / ".venv" / "bin" / "python"))
    options = parser.parse_args()
    kind = KINDS[options.kind]
    print(kind.HEAD)
    documented, missing = (ROOT / "docs" / kind.PAGE).read_text().splitlines(), 0
    for line in kind.lines(options.weir, options.python):
        print(line, flush=True)
        missing += line not in documented
    if options.check and missing:
        print(f"docs/{kind.PAGE} has other figures in {missing} of these lines")
    return 1 if options.check and missing else 0


if __name__ == "__main__":
    sys.exit(main())
