"""pytest-xdist: two workers share the test functions of pytest_cases.py, each of which trains (`requirements.txt`)."""
import json
import os
import pathlib
import sys
import tempfile

import pytest

from common import finish_for

HERE = pathlib.Path(__file__).resolve().parent


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.environ["RESULTS"], os.environ["DEVICE"] = folder, sys.argv[-1]
        code = pytest.main(["-q", "-n", "2", "-p", "no:cacheprovider", str(HERE / "pytest_cases.py")])
        lines = [json.loads(path.read_text()) for path in sorted(pathlib.Path(folder).iterdir())]
    if code != 0 or len({line["process"] for line in lines}) != 2:
        sys.exit(f"pytest ended with {code}, {len(lines)} results")
    finish_for(lines)


if __name__ == "__main__":
    main()
