"""Makes the wheel torch-weir, tagged py3-none-manylinux_2_34_x86_64, and checks that the tag is true.

pip builds it (pyproject.toml) in build-wheel/, with scikit-build-core from the registry that pip is set to. Exit code 1, and no
wheel, when a file in it needs more than GLIBC_2.34 or GLIBCXX_3.4.29, or a library that is neither in it nor torch's nor the
system's base.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "gpu_check"))
import bundle  # noqa: E402
from elf import Elf  # noqa: E402

TAG = "py3-none-manylinux_2_34_x86_64"


class Refused(Exception):
    """Why no wheel was made."""


def problems(package: pathlib.Path) -> list:
    """What keeps the libraries and programs of an unpacked wheel from being what the tag says."""
    files = bundle.elf_files(package)
    inside = {path.name for path in files}
    found = [] if files else ["there is no library in it"]
    for path in files:
        file = Elf(path)
        found += [f"{path.name} needs {version}" for version in bundle.too_new(file.versions)]
        found += [f"{path.name} needs {name}" for name in file.needed
                  if name not in inside and not bundle.THEIRS.fullmatch(name)]
        found += [f"{path.name} looks for libraries in \"{folder}\"" for folder in file.path if not folder.startswith("$ORIGIN")]
    return found


def build(folder: pathlib.Path, *more: str) -> pathlib.Path:
    """pip's wheel in `folder`. The compiler by the names that the other builds use, which the compile cache looks at."""
    environment = {"CC": "cc", "CXX": "c++", **os.environ}
    done = subprocess.run([sys.executable, "-m", "pip", "wheel", "--no-deps", "--disable-pip-version-check", "--wheel-dir",
                           str(folder), "--config-settings", f"wheel.tags={TAG}", *more, str(ROOT)], env=environment,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise Refused(f"pip could not build it:\n{done.stdout}")
    return next(folder.glob("torch_weir-*.whl"))


def make(folder: pathlib.Path, *more: str) -> pathlib.Path:
    """The checked wheel in `folder`; one of the same name is replaced. `more`: for pip. Raises Refused; then nothing is left."""
    with tempfile.TemporaryDirectory() as scratch:
        wheel = build(pathlib.Path(scratch), *more)
        with zipfile.ZipFile(wheel) as packed:
            packed.extractall(pathlib.Path(scratch, "unpacked"))
        if found := problems(pathlib.Path(scratch, "unpacked")):
            raise Refused("; ".join(found))
        folder.mkdir(parents=True, exist_ok=True)
        return pathlib.Path(shutil.copy(wheel, folder / wheel.name))


def main() -> int:
    parser = argparse.ArgumentParser(prog="tools/wheel", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=pathlib.Path, default=pathlib.Path("dist"))
    options = parser.parse_args()
    try:
        wheel = make(options.folder)
    except Refused as reason:
        print(f"tools/wheel: {reason}", file=sys.stderr)
        return 1
    with zipfile.ZipFile(wheel) as packed:
        plugins = sorted(pathlib.Path(name).name for name in packed.namelist() if "/libweir_torch_" in name)
    print(f"{wheel}: {wheel.stat().st_size / 2**20:.1f} MiB, {', '.join(plugins)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
