"""R1: an op's tensors are there from its start to its end, and what no op was given stays where it is."""
import torch

from jobs import evicted, custom_op, expect, expect_value, fill_card, made, raw_address, read_raw, registry, write_raw

JOBS, notices = registry()


@notices("ArgumentsBroughtBack")
def arguments_of_an_op():
    x = evicted(3.0)
    expect_value(x * 2, 6.0)


@notices("PinsUntilOpEnds", policy="youngest")
def op_that_allocates_its_result():
    others = fill_card()
    a, b = made(1.0), made(2.0)
    expect_value(a + b, 3.0)  # room for the result: others leave, not the youngest two
    del others


@notices("NestedIsNoEvidence")
def cache_of_a_custom_op():
    """A buffer that C++ code makes inside its op, and keeps by its address."""
    cache = []

    def body(x):
        if not cache:
            cache.append(torch.zeros_like(x).add_(5.0))
            cache.append(raw_address(cache[0]))
        read_raw(cache[1], 5.0)
        return x + 1

    op = custom_op("cached(Tensor x) -> Tensor", body)
    op(made(1.0))
    fill_card()
    expect_value(op(made(1.0)), 2.0)


@notices("FactoryIsNoEvidence")
def workspace_that_is_no_argument():
    workspace = torch.empty_like(made(0.0))
    address = raw_address(workspace)
    write_raw(address)
    fill_card()
    read_raw(address, 0.0)


@notices("OverloadWithKernelTouches")
def kernel_under_the_name_of_a_composite_op():
    x = evicted(7.0)
    expect_value(x.std(), 0.0)


@notices("PinsOfFailedTouch", policy="youngest")
def op_whose_other_argument_does_not_fit():
    """The op fails, but until it does, it may use the arguments that are there."""
    there, gone, other = made(1.0, 16), made(2.0, 20), made(3.0, 20)

    def body(x, y):
        address = raw_address(x)
        other.add_(1)  # needs the room that x has
        read_raw(address, 1.0, 16)
        return torch.empty_like(x)

    op = custom_op("fails(Tensor x, Tensor y) -> Tensor", body)
    there.add_(0)
    try:
        op(there, gone)
    except torch.OutOfMemoryError:
        expect_value(there, 1.0)
        return
    expect(False, "16 and 20 MiB fit under the cap")
