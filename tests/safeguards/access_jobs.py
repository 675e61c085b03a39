"""R4, R5: what an op's arguments hide, and what no op announces."""
import torch

from jobs import (FLOATS, custom_op, events_off, evicted, expect, expect_value, fill_card, is_resident, made, raw_address,
                  read_raw, registry)

JOBS, notices = registry()


@notices("ListsUnwrapped")
def list_of_tensors():
    x, y = made(2.0), evicted(1.0)
    expect_value(torch.cat([x, y]).sum(), 3.0 * x.numel())


@notices("SparseUnwrapped")
def values_of_a_sparse_tensor():
    values, dense = made(1.0).view(4096, 256), made(0.0).view(4096, 256)
    address = raw_address(values)
    sparse = torch.sparse_coo_tensor(torch.arange(4096, device="cuda")[None], values, (4096, 256), check_invariants=False)
    fill_card()
    expect(not is_resident(address), "the values were not evicted")
    expect_value(dense.add_(sparse), 1.0)


@notices("CompressedUnwrapped")
def values_of_a_compressed_tensor():
    rows = 2 * FLOATS
    values, dense = made(1.0, 2), made(0.0, 2).view(rows, 1)
    address = raw_address(values)
    crow, col = torch.arange(rows + 1, device="cuda"), torch.zeros(rows, dtype=torch.long, device="cuda")
    csr = torch.sparse_csr_tensor(crow, col, values, (rows, 1), check_invariants=False)
    fill_card()
    expect(not is_resident(address), "the values were not evicted")
    expect_value(dense.add_(csr), 1.0)


@notices("StoragesTouched")
def storage_as_an_argument():
    def body(storage, x):
        read_raw(torch._C.TensorBase.data_ptr(torch.empty(0, device="cuda").set_(storage)), 4.0)
        return x + 1

    op = custom_op("takes(Storage storage, Tensor x) -> Tensor", body)
    x = evicted(4.0)
    op(x.untyped_storage(), made(0.0))


@notices("AliasesTouched")
def storage_that_is_copied_on_write():
    x = made(6.0)
    clone = torch._lazy_clone(x)
    address = raw_address(x)
    fill_card()
    read = clone + x
    expect_value(read, 12.0)
    expect(address != 0, "no address")


@notices("BlindThreadStopsEviction", policy="youngest")
def thread_without_events():
    """Its op allocates: what would leave for it may be its own argument."""
    others = fill_card()
    x = made(3.0)
    with events_off():
        try:
            x + 1
            expect(False, "there was room")
        except torch.OutOfMemoryError:
            pass
    expect_value(x + 1, 4.0)
    del others


@notices("EvictedThrows")
def access_that_nobody_announces():
    x = evicted(3.0)
    with events_off():
        try:
            raw_address(x)
            expect(False, "an evicted tensor gave away its address")
        except RuntimeError as error:
            expect("Weir moved this tensor out of VRAM" in str(error), str(error))
    expect_value(x, 3.0)


@notices("StorageAccessHeld")
def storage_that_is_resized():
    x = evicted(5.0)
    x.untyped_storage().resize_(8 << 20)
    expect_value(x, 5.0)


@notices("EscapedStay")
def address_that_is_kept():
    for export in (lambda t: t.data_ptr(), lambda t: t.untyped_storage().data_ptr(),
                   lambda t: t.__cuda_array_interface__["data"][0],
                   lambda t: torch._C.TensorBase.data_ptr(torch.from_dlpack(t))):
        x = evicted(9.0)
        address = export(x)
        fill_card()
        read_raw(address, 9.0)
        del x


@notices()
def address_that_is_used_on_another_stream():
    """Nothing was queued that the other stream would have to wait for, but the copy in is."""
    x, side = evicted(3.0), torch.cuda.Stream()
    torch.cuda.synchronize()
    read_raw(x.data_ptr(), 3.0, stream=side)
