"""Two emulated cards: copies between them, and a model whose halves are on one each. On the CPU both are the CPU."""
import torch


def cards(device):
    return ("cuda:0", "cuda:1") if device == "cuda" else ("cpu", "cpu")


def case_copies_between_devices(device):
    one, other = cards(device)
    x = torch.randn(4, 6, device=one)
    there = x.to(other)
    columns = torch.zeros(6, 4, device=other).t()  # another order of bytes
    columns.copy_(x)
    converted = torch.zeros(4, 6, device=other, dtype=torch.float64)
    converted.copy_(x)
    return [there, there.to(one), columns, converted, (x.to(other, torch.bfloat16) * 2).float(), x[:, ::2].to(other)]


def case_streams_of_both_devices(device):
    one, other = cards(device)
    if device == "cpu":
        x = torch.arange(1000.0)
        return [x * 2 + 1, x * 3]
    streams = [torch.cuda.Stream(name) for name in (one, other)]
    ready = torch.cuda.Event()
    with torch.cuda.stream(streams[0]):
        x = torch.arange(1000.0, device=one)
        doubled = x * 2
        ready.record()
    with torch.cuda.stream(streams[1]):
        streams[1].wait_event(ready)
        there = doubled.to(other, non_blocking=True)
        result = there + 1
    streams[1].synchronize()
    assert torch.cuda.current_device() == 0 and result.get_device() == 1
    return [result, x * 3]


def case_pipeline_of_two_halves(device):
    one, other = cards(device)
    first = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU()).to(one)
    second = torch.nn.Sequential(torch.nn.LayerNorm(32), torch.nn.Dropout(0.1), torch.nn.Linear(32, 4)).to(other)
    optimizer = torch.optim.AdamW([*first.parameters(), *second.parameters()], 1e-2)
    losses = []
    for _ in range(3):
        x, labels = torch.randn(8, 16).to(one), torch.randint(0, 4, (8,)).to(other)
        loss = torch.nn.functional.cross_entropy(second(first(x).to(other)), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return [*losses, *first.parameters(), *second.parameters()]


def alone_each_device_has_its_memory(device):
    torch.cuda.synchronize()
    free = [torch.cuda.mem_get_info(i)[0] for i in range(2)]
    held = torch.empty(64 << 20, dtype=torch.uint8, device="cuda:1")
    assert torch.cuda.mem_get_info(0)[0] == free[0]
    assert torch.cuda.mem_get_info(1)[0] == free[1] - held.nbytes
    assert held.device.index == 1 and torch.cuda.memory_allocated(1) >= held.nbytes


def alone_devices_of_the_profile(device):
    assert torch.cuda.device_count() == 2 and torch.cuda.can_device_access_peer(0, 1)
    uuids = {str(torch.cuda.get_device_properties(i).uuid) for i in range(2)}
    assert len(uuids) == 2


def alone_tensors_of_two_devices_do_not_mix(device):
    one, other = torch.ones(3, device="cuda:0"), torch.ones(3, device="cuda:1")
    try:
        one + other
    except RuntimeError as error:
        assert "two devices, cuda:0 and cuda:1" in str(error)
    else:
        raise AssertionError("added tensors of two devices")
