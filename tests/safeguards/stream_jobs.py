"""R9, R11: on which stream things happen, and who may run while a thread waits."""
import os
import sys
import threading

import torch

from jobs import (custom_op, evicted, expect, expect_value, fill_card, is_resident, made, raw_address, registry, write_raw)

JOBS, notices = registry()


@notices("TouchOnStreamOfOp")
def op_on_a_side_stream():
    x, side = evicted(3.0), torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = x * 2
    side.synchronize()
    expect_value(y, 6.0)


@notices("AllocationOnStreamOfThread")
def block_of_a_side_stream_freed():
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        x = made(1.0)
        del x
    y = made(2.0)  # the default stream may not have x's bytes: nothing orders it after the side stream
    torch.cuda.synchronize()
    expect_value(y, 2.0)


def used_elsewhere_and_freed():
    x, side = made(1.0), torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = x + 1
    x.record_stream(side)
    del x
    z = made(5.0)  # not in x's bytes before the side stream has read them
    torch.cuda.synchronize()
    expect_value(y, 2.0)
    expect_value(z, 5.0)


@notices("RecordedStreamReachesCore")
def block_recorded_on_a_side_stream():
    used_elsewhere_and_freed()


@notices("RecordedStreamOfPluggable")
def block_recorded_by_the_pluggable_allocator():
    allocator = torch.cuda.memory.CUDAPluggableAllocator(os.environ["TEST_LOADER"], "weir_malloc", "weir_free")
    torch.cuda.memory.change_current_allocator(allocator)
    used_elsewhere_and_freed()


@notices()
def custom_op_with_a_stream_of_its_own():
    """Its kernel runs on, after the op, on a stream that Weir has not seen; the caller waits for it before the next use."""
    side = torch.cuda.Stream()

    def body(x):
        side.wait_stream(torch.cuda.current_stream())
        write_raw(raw_address(x), stream=side)
        return x.new_empty(1)

    op = custom_op("on_its_stream(Tensor x) -> Tensor", body)
    x = made(3.0)
    address = raw_address(x)
    op(x)
    fill_card()
    expect(not is_resident(address), "the job's tensor was not evicted")
    torch.cuda.current_stream().wait_stream(side)
    expect_value(x, 0.0)


@notices("WaitGivesGilAway")
def wait_for_a_thread_that_needs_the_gil():
    """An allocation under the GIL waits for pins, whose holder needs the GIL to let them go."""
    sys.setswitchinterval(1000)  # the GIL changes hands only where it is given away
    waiting = threading.Event()

    def allocate():
        waiting.set()
        torch.UntypedStorage(24 << 20, device="cuda")

    other = threading.Thread(target=allocate)

    def body(x):
        other.start()
        waiting.wait()
        return x + 1

    op = custom_op("waited_for(Tensor x) -> Tensor", body)
    expect_value(op(made(1.0, 12)), 2.0)
    other.join()
