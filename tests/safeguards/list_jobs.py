"""R1, R7: list ops bring back what they are about to use, piece by piece or whole, and keep it meanwhile."""
import torch

from jobs import (custom_op, evicted, expect, expect_value, fill_card, is_resident, made, raw_address, read_raw, registry)

JOBS, notices = registry()


@notices("WholeListTouched", kernels="none")
def list_that_is_not_cut():
    x = evicted(1.0)
    torch._foreach_add_([x, x], 1.0)  # the same tensor twice: the order of pieces would show


@notices("PieceTouched", kernels="none")
def list_that_is_cut():
    lists = [made(1.0) for _ in range(3)]
    fill_card()
    torch._foreach_add_(lists, 1.0)


@notices("ResidentListPinned", kernels="none", policy="youngest")
def list_whose_results_need_room():
    others = fill_card()
    x = made(4.0)
    torch._foreach_sqrt([x])
    del others


@notices("PinsUntilPieceEnds", kernels="none", policy="youngest")
def list_that_comes_back_and_needs_room():
    others = fill_card()
    x = made(4.0)
    address = raw_address(x)
    others[-1].add_(0)  # which had left for x
    expect(not is_resident(address), "the youngest did not leave")
    torch._foreach_sqrt([x])


@notices("ForeignKernelOfListTouched")
def list_op_that_somebody_else_overrides():
    """Its kernel is C++ code that asks for addresses and calls no other op."""
    def body(tensors, scalar):
        for tensor in tensors:
            read_raw(raw_address(tensor), 2.0)

    library = torch.library.Library("aten", "IMPL")
    torch.zeros(1, device="cuda")  # Weir's own kernels are in place
    library.impl("_foreach_add_.Scalar", body, "CUDA")
    custom_op.libraries.append(library)
    x = evicted(2.0)
    torch._foreach_add_([x], 1.0)
    expect_value(x, 2.0)
