"""R6: when watching begins again, an op that began unseen may still be on its way, with an address in hand."""
import ctypes
import functools
import operator
import os

import torch

from jobs import CAP, FLOATS, expect, expect_value, fill_card, is_resident, made, raw_address, registry

JOBS, notices = registry()


def switch(on: int) -> int:
    """Weir's own (pytorch_plugin/observer_switch.h)."""
    return plugin_switch()(on)


def plugin_switch():
    with open("/proc/self/maps", encoding="utf-8") as maps:
        path = next(line.split(maxsplit=5)[5].strip() for line in maps if "/libweir_torch_" in line)
    return ctypes.CDLL(path, mode=os.RTLD_NOLOAD).weir_plugin_switch


def as_one_op(*calls):
    """One after the other with no instruction of Python in between, as the parts of an op in C++ run."""
    return list(map(operator.methodcaller("__call__"), calls))


@notices("SafePointsPassed")
def op_that_began_unseen():
    x = made(5.0)
    others = [made(0.0) for _ in range(CAP // 4 - 2)]
    expect(switch(0) == 0, "watching did not end")
    host = torch.zeros(4 * FLOATS)
    read = functools.partial(ctypes.CDLL(None).cudaMemcpy, ctypes.c_void_p(host.data_ptr()), ctypes.c_void_p(raw_address(x)),
                             ctypes.c_size_t(host.nbytes), 2)
    try:
        made_inside = as_one_op(functools.partial(plugin_switch(), 1), functools.partial(torch.mul, x, 1.0, out=others[0]),
                                functools.partial(torch.empty, 8 * FLOATS, device="cuda"), read)
        expect(made_inside[-1] == 0 and bool((host == 5.0).all()), "what the op had the address of has left")
        expect(False, "there was room")
    except torch.OutOfMemoryError as error:
        expect("just begun to watch" in str(error), f"the error does not say why: {error}")
    # It has ended: what is seen from here on may leave.
    address = raw_address(x)
    expect_value(x + 0, 5.0)
    del others
    fill_card()
    expect(not is_resident(address), "nothing leaves any more")
    expect_value(x, 5.0)
