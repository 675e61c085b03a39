"""Arguments made from an operator's schema alone: a handful of shapes and types is tried until some run."""
import itertools

import torch

SHAPES = ((4, 4), (4,), (2, 3, 8, 8), (2, 4, 4), (2, 3, 4, 4, 4), (16, 16), ())
DTYPES = (torch.float32, torch.int64, torch.complex64, torch.bfloat16, torch.bool, torch.uint8, torch.float64)
WANTED = 4    # calls that return
TRIES = 400
INTEGERS = ("index", "indices", "target", "offsets", "offset2bag", "bag_size", "max_indices", "lengths", "ind", "sorter",
            "crow_indices", "col_indices", "ccol_indices", "row_indices", "compressed_indices", "plain_indices", "pivots",
            "LU_pivots", "repeats", "batch_sizes")
MASKS = ("mask", "condition", "found_inf_mask")
DIMENSIONS = {"dim": 0, "dim0": 0, "dim1": 1, "axis": 0, "start_dim": 0, "dim1_": 1}


def tensor(name: str, shape: tuple, dtype: torch.dtype) -> torch.Tensor:
    if name in INTEGERS:
        return torch.zeros(shape or (1,), dtype=torch.int64).cuda()
    if name in MASKS:
        return torch.ones(shape, dtype=torch.bool).cuda()
    return torch.ones(shape, dtype=dtype).cuda()


def integers(name: str, size: int | None, shape: tuple) -> list:
    """For a list of ints: spatial sizes, a shape, dimensions."""
    if name in ("size", "output_size", "sizes", "self_size", "input_size", "input_sizes", "shape", "sizes_"):
        return list(shape[-size:]) if size else list(shape)
    if name in ("dim", "dims", "axes"):
        return [0]
    count = size or max(1, len(shape) - 2)
    return [0 if "padding" in name else 1] * count


def value(argument, shape: tuple, dtype: torch.dtype, optional: bool):
    """A value for one argument; raises KeyError for a type that is not made here."""
    kind, name = str(argument.type), argument.name
    if kind.startswith("Optional["):
        if not optional or kind in ("Optional[Generator]", "Optional[Layout]", "Optional[MemoryFormat]", "Optional[bool]"):
            return None
        kind = kind.removeprefix("Optional[").removesuffix("]")
    if argument.has_default_value() and not (optional and "Tensor" in kind):
        return argument.default_value
    length = getattr(argument, "N", None)
    if kind == "Tensor":
        return tensor(name, shape, dtype)
    if kind in ("List[Tensor]", "List[Optional[Tensor]]"):
        return [tensor(name, shape, dtype) for _ in range(2)]
    if kind in ("List[int]", "List[SymInt]"):
        return integers(name, length, shape)
    if kind == "List[float]":
        return [1.0] * (length or 2)
    if kind in ("List[number]", "List[Scalar]"):
        return [1.0, 1.0]
    return {"int": DIMENSIONS.get(name, 1), "SymInt": DIMENSIONS.get(name, 1), "float": 0.5, "bool": False, "number": 1,
            "Scalar": 1, "str": "mean", "Device": torch.device("cuda"), "List[bool]": [True] * (length or 3)}[kind]


def arguments(schema, shape: tuple, dtype: torch.dtype, optional: bool) -> tuple:
    positional, named = [], {}
    for argument in schema.arguments:
        made = value(argument, shape, dtype, optional)
        if argument.name == "device" and made is None:
            made = torch.device("cuda")
        if argument.kwarg_only:
            named[argument.name] = made
        else:
            positional.append(made)
    return positional, named


def run(name: str) -> None:
    """Calls `name` ("aten::add.out") with what its schema suggests. The first error is raised if no call returns."""
    namespace, _, rest = name.partition("::")
    base, _, overload = rest.partition(".")
    op = getattr(getattr(getattr(torch.ops, namespace), base), overload or "default")
    returned, first_error = 0, None
    tries = itertools.product(DTYPES, (False, True), SHAPES)
    for dtype, optional, shape in itertools.islice(tries, TRIES):
        try:
            positional, named = arguments(op._schema, shape, dtype, optional)
            op(*positional, **named)
            returned += 1
        except KeyError as error:
            raise TypeError(f"no value for an argument of type {error}") from None
        except Exception as error:  # the next shape may suit it
            first_error = first_error or error
        if returned == WANTED:
            return
    if not returned and first_error is not None:
        raise first_error
