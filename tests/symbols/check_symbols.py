"""check_symbols.py LIBRARY LIST: the library exports what the list names (globs allowed), all of it and nothing else.
check_symbols.py --needs-only-libc LIBRARY: the library needs libc.so.6 (and the loader) alone, and has no run path."""
import fnmatch
import pathlib
import re
import subprocess
import sys


def output_of(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def exported(library):
    """Names of the symbols that the library defines for others."""
    lines = output_of("nm", "-D", "--defined-only", "--format=posix", library).splitlines()
    return {line.split()[0].split("@")[0] for line in lines if line.strip()}


def export_problems(symbols, names):
    problems = [f"exported, but not in the list: {symbol}" for symbol in sorted(symbols)
                if not any(fnmatch.fnmatchcase(symbol, name) for name in names)]
    return problems + [f"in the list, but not exported: {name}" for name in names if not fnmatch.filter(symbols, name)]


def need_problems(dynamic_section):
    needs = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic_section)
    problems = [f"needs {name}" for name in needs if name not in ("libc.so.6", "ld-linux-x86-64.so.2")]
    return problems + [f"has a run path: {path}" for path in re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", dynamic_section)]


def main():
    if sys.argv[1] == "--needs-only-libc":
        problems = need_problems(output_of("readelf", "--dynamic", "--wide", sys.argv[2]))
    else:
        names = pathlib.Path(sys.argv[2]).read_text().split()
        problems = export_problems(exported(sys.argv[1]), names)
    print("\n".join(problems) if problems else "as listed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
