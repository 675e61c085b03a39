"""One process that runs sources under the probe: a line of JSON in (source, names to skip), a line of JSON out (rows).

    worker.py PROBE CURRENT     PROBE: the library; CURRENT: a file of 256 bytes where the operator being called is kept
    worker.py --operators       every aten operator with the kernels it has
    worker.py --list            the same, and the sources
"""
import ctypes
import gc
import json
import mmap
import sys

import torch

KERNELS = {"CUDA": "C", "SparseCUDA": "S", "SparseCsrCUDA": "R", "NestedTensorCUDA": "N", "QuantizedCUDA": "Q",
           "CompositeExplicitAutograd": "E", "CompositeExplicitAutogradNonFunctional": "F",
           "CompositeImplicitAutograd": "I"}
FIELDS = ("op", "runs", "given", "fired", "silent", "tried", "refused", "inner", "layouts", "temporaries",
          "temporary_bytes", "kept", "kept_bytes", "share")
LISTS = {"given", "fired", "silent", "tried", "refused", "inner", "layouts"}
FRACTIONS = {"share"}


def operators() -> dict:
    """Every aten operator by name: its schema's arguments and letters for its kernels."""
    found = {}
    for name in torch._C._dispatch_get_all_op_names():
        if not name.startswith("aten::"):
            continue
        kernels = "".join(letter for key, letter in KERNELS.items()
                          if torch._C._dispatch_has_kernel_for_dispatch_key(name, key))
        base, _, overload = name.partition(".")
        schema = torch._C._get_schema(base, overload)
        arguments = [[a.name, str(a.type), bool(a.alias_info and a.alias_info.is_write)] for a in schema.arguments]
        found[name] = {"kernels": kernels, "arguments": arguments}
    return found


def parse(line: str) -> dict:
    row = {}
    for field, value in zip(FIELDS, line.split("\t"), strict=True):
        if field in LISTS:
            row[field] = [item for item in value.split(",") if item]
        elif field in FRACTIONS:
            row[field] = float(value)
        else:
            row[field] = value if field == "op" else int(value)
    return row


def clean_card() -> None:
    """Ends what an earlier source left on the card: new memory holds zeros, and some host code reads a size that no kernel wrote."""
    gc.collect()
    torch._C._cuda_clearCublasWorkspaces()
    torch.cuda.empty_cache()


def serve(library: str, current: str) -> None:
    import sources
    # Torch keeps one dropout state for cuDNN, and gives it to every recurrent call after the first that needs it.
    torch.nn.GRU(1, 1, 2, dropout=0.5).cuda()(torch.ones(1, 1, 1, device="cuda"))
    probe = ctypes.CDLL(library)
    probe.weir_probe_rows.restype = ctypes.c_char_p
    with open(current, "r+b") as file:
        memory = mmap.mmap(file.fileno(), 256)
    probe.weir_probe_start.restype = ctypes.c_char_p
    watched_by = probe.weir_probe_start((ctypes.c_char * 256).from_buffer(memory)).decode()
    print(json.dumps({"watched_by": watched_by, "torch": torch.__version__}), flush=True)
    sources.op_infos()
    gc.freeze()  # torch's own objects are not searched before every source
    for line in sys.stdin:
        request = json.loads(line)
        probe.weir_probe_reset()
        clean_card()
        failure = ""
        try:
            sources.run(request["source"])
        except Exception as error:  # what ran before it still counts
            failure = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        probe.weir_probe_replay(" ".join(request["skip"]).encode())
        rows = [parse(row) for row in probe.weir_probe_rows().decode().splitlines()]
        probe.weir_probe_reset()
        print(json.dumps({"source": request["source"], "rows": rows, "failure": failure}), flush=True)


def main() -> None:
    if sys.argv[1] == "--operators":
        print(json.dumps({"torch": torch.__version__, "operators": operators(), "sources": []}))
    elif sys.argv[1] == "--list":
        import sources
        print(json.dumps({"torch": torch.__version__, "operators": operators(), "sources": sources.all_names()}))
    else:
        answers = sys.stdout
        sys.stdout = sys.stderr  # samples may print
        globals()["print"] = lambda text, flush: answers.write(text + "\n") and answers.flush()
        serve(sys.argv[1], sys.argv[2])


if __name__ == "__main__":
    main()
