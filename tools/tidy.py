#!/usr/bin/env python3
"""Checks the shape of the source tree: layers, includes, sizes, names, READMEs, format.

    tools/tidy.py [CHECK...]      all checks, or these; one line per problem, exit code 1 if there are any
    tools/tidy.py --list          the names of the checks

Only files that git tracks are looked at. ctest runs each check as `tidy.CHECK`.
"""
import argparse
import ast
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# What a folder may include of Weir: itself and these. The most specific folder counts. (design.md, section 3)
LAYERS = {
    "allocator/base": [],
    "trace": ["allocator/base"],
    "allocator": ["allocator", "trace"],
    "policies": ["allocator/base"],
    "offload": ["allocator", "policies", "trace"],
    "pytorch_plugin": ["allocator", "policies", "offload", "trace"],
    "tools": ["allocator", "policies", "offload", "pytorch_plugin", "trace"],
    "tests": ["allocator", "policies", "offload", "pytorch_plugin", "tools", "trace"],
}

# Headers of others, and the only places that may include them.
BANNED_INCLUDES = [
    (r"(cuda|cublas\w*|cudaTypedefs)\.h",
     ["allocator/cuda/", "tools/emulated_gpu/", "tests/fakes/", "tests/allocator/cuda/", "tests/emulated_gpu/",
      "tests/conformance/"]),
    (r"(cuda_runtime|cuda_runtime_api|driver_types|library_types)\.h",
     ["pytorch_plugin/", "tools/emulated_gpu/", "tests/emulated_gpu/", "tests/conformance/"]),
    (r"(torch|ATen|c10|caffe2)/.*",
     ["pytorch_plugin/", "tools/emulated_gpu/torch_kernels/", "tools/bench_host/", "tests/pytorch_plugin/",
      "tests/programs/libtorch/", "tests/memory_history/", "tools/op_table/"]),
    (r"nvtx3/.*", ["allocator/base/nvtx_range.cc", "tests/allocator/base/fake_nvtx_tool.cc"]),
    (r"liburing.*", ["offload/uring_queue."]),
    (r"zstd.*", ["trace/frame_codec.cc"]),
    (r"xxh.*", ["trace/checksum.cc", "tests/programs/libtorch/"]),
    (r"(CLI|nlohmann)/.*", ["tools/weir_command/"]),
]

# Who reads the environment: the option table's reader, and what runs before the core is loaded or without it.
GETENV_ALLOWED = ["allocator/base/options.cc", "pytorch_plugin/loader/", "pytorch_plugin/install.cc",
                  "tools/emulated_gpu/", "tests/"]

MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 60
MAX_README_LINES = 60
RATCHET = "tests/tidy/ratchet.json"  # what is over a budget, and by how much it may be at most

CPP = (".h", ".cc", ".c", ".cpp")
FORMATTED = (".h", ".cc", ".cpp")
CODE = CPP + (".py", ".S", ".sh", ".cmake", ".txt")
VAGUE_NAMES = re.compile(r"(^|_)(manager|helpers?|utils?|misc)(_|$)|^data$")
LOCAL_PATHS = re.compile(r"/(?:work|root|home/[a-z])/|\.pyenv\b|https?://[\w.-]*(?:pypi|pythonhosted)\.")


class Tree:
    """The tracked files of a folder, by path relative to it."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        listing = subprocess.run(["git", "ls-files", "-z"], cwd=root, stdout=subprocess.PIPE, check=True).stdout.decode()
        self.paths = sorted(path for path in listing.split("\0") if path and (self.root / path).is_file())
        self._lines = {}

    def lines(self, path):
        if path not in self._lines:
            self._lines[path] = (self.root / path).read_text(errors="replace").splitlines()
        return self._lines[path]

    def with_suffix(self, suffixes):
        return [path for path in self.paths if path.endswith(suffixes)]


def includes(tree, path):
    """(line number, header, whether in quotes) of each include."""
    for number, line in enumerate(tree.lines(path), 1):
        found = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if found:
            yield number, found[2], found[1] == '"'


def layer_of(path):
    """The most specific layer that holds a path, or None."""
    holding = [layer for layer in LAYERS if path.startswith(layer + "/")]
    return max(holding, key=len, default=None)


def check_layers(tree):
    for path in tree.with_suffix(CPP + (".S",)):
        layer = layer_of(path)
        if layer is None:
            yield f"{path}: is in no layer (LAYERS in tools/tidy.py)"
            continue
        for number, header, quoted in includes(tree, path):
            target = layer_of(header)
            beside = (tree.root / path).parent / header
            if target is None:
                if quoted and not beside.exists() and header.split("/")[0] in {"src", "..", "."}:
                    yield f"{path}:{number}: \"{header}\": name the header from the top of the tree"
                continue
            if header.startswith(layer + "/") or any(header.startswith(below + "/") for below in LAYERS[layer]):
                continue
            yield f"{path}:{number}: {layer}/ may not include \"{header}\": it may include " \
                  f"{', '.join([layer, *LAYERS[layer]])}"


def check_banned_includes(tree):
    for path in tree.with_suffix(CPP):
        for number, header, _ in includes(tree, path):
            for pattern, allowed in BANNED_INCLUDES:
                if re.fullmatch(pattern, header) and not path.startswith(tuple(allowed)):
                    yield f"{path}:{number}: {header} may be included only in {', '.join(allowed)}"


def check_getenv(tree):
    for path in tree.with_suffix(CPP):
        if path.startswith(tuple(GETENV_ALLOWED)):
            continue
        for number, line in enumerate(tree.lines(path), 1):
            code = re.sub(r'"(?:\\.|[^"\\])*"', '""', line).split("//")[0]  # a word in a literal reads nothing
            if re.search(r"\b(secure_)?getenv\s*\(|\benviron\b", code) and \
                    path != "tools/weir_command/captured_output.cc":  # hands the whole environment to posix_spawn
                yield f"{path}:{number}: the environment is read only in {', '.join(GETENV_ALLOWED)}"


def without_comments_and_strings(text):
    """The text with comments and literals blanked, line breaks kept."""
    pattern = r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\''
    return re.sub(pattern, lambda found: re.sub(r"[^\n]", " ", found[0]), text, flags=re.DOTALL)


def cpp_functions(text):
    """(name, first line, lines) of each function body that is not inside another."""
    text = without_comments_and_strings(text)
    text = re.sub(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", lambda found: re.sub(r"[^\n]", " ", found[0]), text, flags=re.MULTILINE)
    depth_of_function, head_start, opened = None, 0, []
    for found in re.finditer(r"[{};]", text):
        position = found.start()
        if found[0] == "{":
            head = text[head_start:position]
            is_scope = re.search(r"\b(namespace|class|struct|union|enum|extern)\b[^()]*$", head) or "(" not in head or \
                re.search(r"=\s*$|\breturn\b", head)
            opened.append((head, head_start))
            if not is_scope and depth_of_function is None:
                depth_of_function = len(opened)
        elif found[0] == "}" and opened:
            head, start = opened.pop()
            if depth_of_function == len(opened) + 1:
                depth_of_function = None
                start += len(head) - len(head.lstrip())
                name = re.search(r"([\w:~]+|operator\S+)\s*\(", head)
                first = text.count("\n", 0, start) + 1
                yield name[1] if name else "?", first, text.count("\n", 0, position) + 2 - first
        head_start = position + 1


def python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.lineno, node.end_lineno - node.lineno + 1


def measured_sizes(tree):
    """Lines by "path" and "path:function", of everything."""
    sizes = {}
    for path in tree.with_suffix(CODE):
        lines = tree.lines(path)
        if not path.startswith(("tests/symbols/", "pytorch_plugin/op_tables/")) and pathlib.Path(path).name != "symbols.txt":
            sizes[path] = len(lines)
        functions = cpp_functions if path.endswith(CPP) else python_functions if path.endswith(".py") else None
        for name, _, count in functions("\n".join(lines)) if functions else ():
            key = f"{path}:{name}"
            sizes[key] = max(count, sizes.get(key, 0))
    return sizes


def check_sizes(tree):
    ratchet = json.loads((tree.root / RATCHET).read_text())
    sizes = measured_sizes(tree)
    for key, lines in sizes.items():
        budget = MAX_FUNCTION_LINES if ":" in key else MAX_FILE_LINES
        allowed = ratchet.get(key, budget)
        if lines > allowed:
            yield f"{key}: {lines} lines, at most {allowed}: divide it"
    for key, allowed in ratchet.items():
        budget = MAX_FUNCTION_LINES if ":" in key else MAX_FILE_LINES
        lines = sizes.get(key, 0)
        if lines <= budget:
            yield f"{RATCHET}: {key} is within the budget ({lines} lines): remove the entry"
        elif lines < allowed:
            yield f"{RATCHET}: {key} has shrunk to {lines} lines: lower the entry from {allowed}"


def check_names(tree):
    for path in tree.with_suffix(CPP + (".py",)):
        if VAGUE_NAMES.search(pathlib.Path(path).stem):
            yield f"{path}: name it after the one thing it holds"


def check_readmes(tree):
    described = {str(pathlib.PurePosixPath(path).parent) for path in tree.paths if path.endswith("/README.md")}
    for folder in sorted({pathlib.PurePosixPath(path).parent for path in tree.with_suffix(CPP + (".py",))}):
        # A part of a folder may be described with it; tests mirror what they test and have one README.
        places = {str(folder)}
        if folder.parts[0] in ("tools", "pytorch_plugin") and len(folder.parts) > 2 - (folder.parts[0] != "tools"):
            places.add(str(folder.parent))
        if folder.parts[0:1] == ("tests",):
            places.add("tests")
        if str(folder) != "." and not places & described:
            yield f"{folder}: has no README.md"
    for path in tree.paths:
        lines = len(tree.lines(path)) if path.endswith("/README.md") else 0
        if lines > MAX_README_LINES:
            yield f"{path}: {lines} lines, at most {MAX_README_LINES}"


def check_local_paths(tree):
    for path in tree.paths:
        if path == "tools/tidy.py":
            continue
        for number, line in enumerate(tree.lines(path), 1):
            found = LOCAL_PATHS.search(line)
            if found:
                yield f"{path}:{number}: \"{found[0]}\" belongs to one machine"


def check_format(tree):
    paths = tree.with_suffix(FORMATTED)
    if not paths:
        return
    done = subprocess.run(["clang-format-14", "--dry-run", "-Werror", "--style=file", *paths], cwd=tree.root,
                          stderr=subprocess.PIPE, text=True)
    for path in dict.fromkeys(re.findall(r"^(\S+?):\d+:\d+: error", done.stderr, flags=re.MULTILINE)):
        yield f"{path}: is not formatted (tools/tidy.py --fix)"
    if done.returncode != 0 and "error" not in done.stderr:
        yield f"clang-format-14: {done.stderr.strip()}"


CHECKS = {name.removeprefix("check_"): check for name, check in list(globals().items()) if name.startswith("check_")}


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print the names of the checks")
    parser.add_argument("--fix", action="store_true", help="format the code")
    parser.add_argument("--root", default=ROOT, help="another tree")
    parser.add_argument("checks", nargs="*", metavar="CHECK")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.checks if name not in CHECKS]
    if unknown:
        parser.error(f"no such check: {', '.join(unknown)}")
    if options.list:
        print("\n".join(CHECKS))
        return 0
    tree = Tree(options.root)
    if options.fix:
        return subprocess.run(["clang-format-14", "-i", *tree.with_suffix(FORMATTED)], cwd=tree.root).returncode
    problems = [f"{name}: {problem}" for name in options.checks or CHECKS for problem in CHECKS[name](tree)]
    print("\n".join(problems) if problems else f"{len(tree.paths)} files are tidy")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
