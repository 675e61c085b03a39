"""Ops that have a CUDA kernel and no CPU kernel: versions of the emulator, and refusals by name."""
import pathlib

import torch
from torch import nn
from training import train

LIST = pathlib.Path(__file__).parents[3] / "tools/emulated_gpu/torch_kernels/cuda_only_ops.txt"


def close_lstm(device):
    model, x = nn.LSTM(8, 16, 2, batch_first=True).to(device), torch.randn(4, 7, 8).to(device)
    return train(model, torch.optim.SGD(model.parameters(), 0.1), lambda: model(x)[0].square().mean())


def close_gru(device):
    model, x = nn.GRU(8, 16, 2, bidirectional=True).to(device), torch.randn(4, 7, 8).to(device)
    return train(model, torch.optim.SGD(model.parameters(), 0.1), lambda: model(x)[0].square().mean())


def close_cells(device):
    lstm, gru, x = nn.LSTMCell(4, 5).to(device), nn.GRUCell(4, 5).to(device), torch.randn(3, 4).to(device)
    hidden, cell = lstm(x)
    output = gru(x, hidden)
    (output.square().sum() + cell.sum()).backward()
    return [hidden, cell, output] + [p.grad for module in (lstm, gru) for p in module.parameters()]


def close_packed_sequence(device):
    model, x = nn.LSTM(4, 6, batch_first=True).to(device), torch.randn(3, 5, 4).to(device)
    packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([5, 3, 2]), batch_first=True)
    output, _ = nn.utils.rnn.pad_packed_sequence(model(packed)[0], batch_first=True)
    output.sum().backward()
    return [output] + [p.grad for p in model.parameters()]


def alone_wide_products(device):
    a, b = torch.randn(4, 4).to(device).bfloat16(), torch.randn(4, 4).to(device).bfloat16()
    wide = torch.mm(a, b, out_dtype=torch.float32)
    assert wide.dtype == torch.float32
    assert torch.equal(wide, a.float() @ b.float())


def alone_no_version_is_refused_by_name(device):
    x = torch.randn(4, 4).to(device)
    try:
        torch.batch_norm_stats(x, 1e-5)
    except NotImplementedError as error:
        assert "emulated GPU: aten::batch_norm_stats has no CPU version" in str(error), error
    else:
        raise AssertionError("batch_norm_stats computed something")


def alone_every_cuda_op_is_treated(device):
    """An op of a new torch that nobody thought of is either run on the CPU or refused, never a silent launch."""
    missing = [name for name in torch._C._dispatch_get_registrations_for_dispatch_key("CUDA")
               if name.startswith("aten::") and "libweir" not in registration(name, "CUDA") and name not in ORIGINAL]
    assert not missing, missing


# The list is of torch 2.15. What 2.11 does not have yet, and what has no CPU kernel there yet.
LATER = ("_cudnn_attention_forward_no_dropout_inplace", "_flash_attention_forward_no_dropout_inplace", "_scaled_addmm.out",
         "_scaled_grouped_mm_v2.out")
WITHOUT_CPU_IN_2_11 = {"_scaled_grouped_mm_v2": "refused", "_scaled_mm_v2": "refused", "_scaled_mm_v2.out": "refused"}


def alone_ops_without_cpu_kernel_are_those_listed(device):
    """cuda_only_ops.txt is what this torch has: a new op must be looked at before it is refused or written."""
    listed = dict(line.split() for line in LIST.read_text().splitlines() if not line.startswith("#"))
    if torch.__version__.startswith("2.11."):
        listed = {name: treatment for name, treatment in listed.items() if name not in LATER} | WITHOUT_CPU_IN_2_11
    found = {name[6:] for name in torch._C._dispatch_get_registrations_for_dispatch_key("CUDA")
             if name.startswith("aten::") and not torch._C._dispatch_has_computed_kernel_for_dispatch_key(name, "CPU")}
    assert found == set(listed), found ^ set(listed)
    wrong = [name for name, treatment in listed.items()
             if (registration(f"aten::{name}", "CUDA") == "libweir") != (treatment != "original")]
    assert not wrong, wrong


def registration(name, key):
    lines = [line for line in torch._C._dispatch_dump(name).splitlines() if line.startswith(f"{key}:")]
    # The last registration is the one in force; the emulator's carry its source file.
    return "libweir" if any("emulated_gpu/torch_kernels" in line for line in lines) else "torch"


# Left as torch has them: they handle shapes, storages and streams, and launch nothing (treatment.cc).
ORIGINAL = {f"aten::{name}" for name in (
    "empty.memory_format", "empty_strided", "resize_", "set_", "set_.source_Storage",
    "set_.source_Storage_storage_offset", "set_.source_Tensor", "view", "as_strided", "_reshape_alias", "unfold",
    "view_as_real", "view_as_complex", "_efficientzerotensor", "record_stream", "_local_scalar_dense", "_pin_memory",
    "is_pinned", "_use_cudnn_ctc_loss", "_use_cudnn_ctc_loss.Tensor", "_use_miopen_ctc_loss",
    "_use_miopen_ctc_loss.Tensor")}
