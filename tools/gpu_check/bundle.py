"""Makes a folder that runs Weir on another machine: no installation, no network, wherever it is put.

bin/ and lib/ hold the programs and libraries, stripped, with the Debian libraries that they need; they find each other
through $ORIGIN. libstdc++, libgcc, glibc, torch and the driver are the other machine's. Exit code 1, and no folder, when a
file would need more than GLIBC_2.34 or GLIBCXX_3.4.29, or all of it is larger than 60 MiB.
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys

from elf import Elf, is_elf

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MOST_BYTES = 60 << 20
LIMITS = {"GLIBC": (2, 34), "GLIBCXX": (3, 4, 29), "CXXABI": (1, 3, 13), "GCC": (11, 0, 0)}  # those of GCC 11, glibc 2.34
PROGRAMS = ("weir", "weir_gpu_probe", "weir_conformance")
LIBRARIES = ("libweir_core.so", "libweir_preload.so", "libweir_torch_*.so", "emulated_gpu/libweir_emulated_gpu.so",
             "emulated_gpu/libcuda.so.1", "emulated_gpu/libnvidia-ml.so.1", "emulated_gpu/libweir_emulated_kernels_*.so")
# Of the machine that the bundle goes to, never of this one.
BASE = re.compile(r"(libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+|ld-linux-x86-64)\.so.*")
THEIRS = re.compile(BASE.pattern + r"|(libtorch|libc10)(_\w+)?\.so")
SYSTEM = ("/usr/lib/x86_64-linux-gnu", "/lib/x86_64-linux-gnu", "/usr/lib64", "/lib64")
SCRIPTS = {"tools/demo_job": ("*.py", "README.md"), "tools/gpu_check": ("*.py", "README.md"), "tests/conformance": ("README.md",)}
ONLY_HERE = ("bundle.py", "elf.py")
START = '#!/bin/sh\n# {what}\nhere=$(cd "$(dirname "$0")" && pwd)\nexec {command} "$@"\n'


class Refused(Exception):
    """Why no bundle was made."""


def too_new(versions: list) -> list:
    """Those of (library, version) that are beyond the limits. What is no number, such as GLIBC_PRIVATE or
    GLIBC_ABI_DT_RELR, belongs to one build of the library or to a newer one."""
    beyond = []
    for library, version in versions:
        kind, _, number = version.rpartition("_")
        known = kind in LIMITS and re.fullmatch(r"\d+(\.\d+)*", number)
        if BASE.fullmatch(library) and not (known and tuple(map(int, number.split("."))) <= LIMITS[kind]):
            beyond.append(version)
    return beyond


def copy_stripped(source: pathlib.Path, target: pathlib.Path):
    target.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["strip", "--strip-unneeded", "-o", str(target), str(source)], check=True)
    target.chmod(0o755)


def copy_parts(build: pathlib.Path, bundle: pathlib.Path):
    for program in PROGRAMS:
        if not (build / "bin" / program).exists():
            raise Refused(f"{build}/bin/{program} is not built (cmake --build {build} --target bundle_parts)")
        copy_stripped(build / "bin" / program, bundle / "bin" / program)
    for pattern in LIBRARIES:
        found = sorted((build / "lib").glob(pattern))
        if not found:
            raise Refused(f"{build}/lib/{pattern} is not built (cmake --build {build} --target bundle_parts)")
        for library in found:
            copy_stripped(library, bundle / "lib" / library.relative_to(build / "lib"))


def elf_files(bundle: pathlib.Path) -> list:
    return [path for path in sorted(bundle.rglob("*")) if path.is_file() and is_elf(path)]


def copy_needed(bundle: pathlib.Path):
    """Debian's libraries, until nothing is missing; their terms of use with them."""
    waiting = elf_files(bundle)
    while waiting:
        for name in Elf(waiting.pop()).needed:
            target = bundle / "lib" / name
            if THEIRS.fullmatch(name) or target.exists() or (bundle / "lib" / "emulated_gpu" / name).exists():
                continue
            source = next((path for folder in SYSTEM if (path := pathlib.Path(folder, name)).exists()), None)
            if source is None:
                raise Refused(f"{name} is needed and in none of {', '.join(SYSTEM)}")
            copy_stripped(source.resolve(), target)
            waiting.append(target)
    for terms in pathlib.Path("/usr/share/doc").glob("libabsl2*/copyright"):
        shutil.copy(terms, bundle / "lib" / "ABSEIL-COPYRIGHT")


def one_file(source: pathlib.Path) -> str:
    """A C++ file with the parts that lie beside it put in."""
    def part(found):
        text = one_file(source.parent / found[1])
        return re.sub(r"#ifndef (\w+)\n#define \1\n|#endif\n\Z", "", text).strip() + "\n"
    return re.sub(r'^#include "(\w+\.h)"\n', part, source.read_text(), flags=re.M)


def copy_scripts(bundle: pathlib.Path):
    for folder, patterns in SCRIPTS.items():
        (bundle / folder).mkdir(parents=True)
        for path in (path for pattern in patterns for path in (ROOT / folder).glob(pattern) if path.name not in ONLY_HERE):
            shutil.copy(path, bundle / folder / path.name)
    (bundle / "tools" / "gpu_check" / "probe.cc").write_text(one_file(HERE / "probe.cc"))
    shutil.copy(ROOT / "README.md", bundle / "README.md")
    starts = {"weir": ("The weir command.", '"$here/bin/weir"'),
              "gpu_check": ("First contact with this machine's GPU; --help.", '"${PYTHON:-python3}" "$here/tools/gpu_check/gpu_check.py"')}
    for name, (what, command) in starts.items():
        (bundle / name).write_text(START.format(what=what, command=command))
        (bundle / name).chmod(0o755)


def problems(bundle: pathlib.Path) -> list:
    """What would keep the bundle from working elsewhere."""
    found = []
    for path in elf_files(bundle):
        file = Elf(path)
        name = path.relative_to(bundle)
        found += [f"{name} needs {version}" for version in too_new(file.versions)]
        found += [f"{name} looks for libraries in {folder}" for folder in file.path if not folder.startswith("$ORIGIN")]
        if re.fullmatch(r"lib(stdc\+\+|gcc_s)\.so.*", path.name):
            found.append(f"{name} must be the other machine's")
    size = sum(path.stat().st_size for path in bundle.rglob("*") if path.is_file())
    if size >= MOST_BYTES:
        found.append(f"all of it is {size / 2**20:.1f} MiB, more than {MOST_BYTES >> 20}")
    return found


def make(build: pathlib.Path, target: pathlib.Path) -> pathlib.Path:
    """The finished bundle at `target`, which must not be there yet. Raises Refused; then nothing is left."""
    if target.exists():
        raise Refused(f"{target} is there already")
    aside = target.with_name(target.name + ".new")
    shutil.rmtree(aside, ignore_errors=True)
    try:
        copy_parts(build, aside)
        copy_needed(aside)
        copy_scripts(aside)
        if found := problems(aside):
            raise Refused("; ".join(found))
        aside.rename(target)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return target


def main() -> int:
    parser = argparse.ArgumentParser(prog="tools/bundle", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=pathlib.Path, default=pathlib.Path("weir-bundle"))
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="the build folder")
    parser.add_argument("--needed", action="store_true", help="only put the Debian libraries that the folder's lib/ and bin/ need "
                        "into its lib/, as the wheel's build does")
    options = parser.parse_args()
    try:
        if options.needed:
            copy_needed(options.folder)
            return 0
        bundle = make(options.build, options.folder)
    except Refused as reason:
        print(f"tools/bundle: {reason}", file=sys.stderr)
        return 1
    size = sum(path.stat().st_size for path in bundle.rglob("*") if path.is_file())
    plugins = sorted(path.name for path in (bundle / "lib").glob("libweir_torch_*.so"))
    print(f"{bundle}: {size / 2**20:.1f} MiB, {', '.join(plugins)}; there: {bundle.name}/gpu_check")
    return 0


if __name__ == "__main__":
    sys.exit(main())
