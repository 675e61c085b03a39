"""Where the parts lie: in a bundle, or in a checkout that has been built."""
import pathlib
import sysconfig

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = ROOT if (ROOT / "bin" / "weir").exists() else ROOT / "build"
WEIR = BUILD / "bin" / "weir"
PROBE = BUILD / "bin" / "weir_gpu_probe"
CONFORMANCE = BUILD / "bin" / "weir_conformance"
EMULATED_DRIVER = BUILD / "lib" / "emulated_gpu" / "libcuda.so.1"
TRAIN = ROOT / "tools" / "demo_job" / "train.py"


def cudart():
    """The runtime library of the torch of this Python; None where there is none."""
    for folder in {sysconfig.get_paths()[key] for key in ("purelib", "platlib")}:
        for found in sorted(pathlib.Path(folder, "nvidia").glob("*/lib/libcudart.so.1[0-9]")):
            return found
    return None
