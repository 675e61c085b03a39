"""Kernels `none`: what a card runs in cuDNN takes that path, with the sizes that are documented."""
import collections

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = 4 * width
        self.layers = nn.Sequential(
            nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs))
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        return torch.relu(self.layers(x) + self.shortcut(x))


def resnet50():
    """53 convolutions and as many batch norms: He et al. 2015, table 1, 50-layer."""
    layers, inputs = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            layers.append(Bottleneck(inputs, width, stride if block == 0 else 1))
            inputs = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000))


class Listed(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.ops = collections.Counter()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.ops[str(function)] += 1
        return function(*args, **(kwargs or {}))


def ops_of(function):
    """Names of all operators, those inside composite ones too, with counts."""
    with torch.profiler.profile() as profile:
        function()
    return collections.Counter(event.name for event in profile.events() if event.name.startswith("aten::"))


def peak_of(function):
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    result = function()
    return torch.cuda.max_memory_allocated() - before, result


def alone_cudnn_is_there(device):
    assert torch.backends.cudnn.is_available() and torch.backends.cudnn.enabled
    major, minor, patch = torch._C._cudnn.getCompileVersion()
    assert torch.backends.cudnn.version() == major * 10000 + minor * 100 + patch


def alone_resnet50_takes_the_path_of_a_card(device):
    for memory_format in (torch.contiguous_format, torch.channels_last):
        model = resnet50().to(device, memory_format=memory_format)
        images = torch.randn(2, 3, 64, 64).to(device, memory_format=memory_format)
        labels = torch.zeros(2, dtype=torch.long).to(device)
        ops = ops_of(lambda: F.cross_entropy(model(images), labels).backward())
        assert (ops["aten::cudnn_convolution"], ops["aten::convolution_backward"]) == (53, 53), ops
        assert (ops["aten::cudnn_batch_norm"], ops["aten::cudnn_batch_norm_backward"]) == (53, 53), ops
        other = [name for name in ops if any(part in name for part in (
            "im2col", "thnn", "slow_conv", "native_batch_norm", "_conv_depthwise"))]
        assert not other, other


def alone_evaluation_normalises_in_cudnn_too(device):
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)).to(device).eval()
    images = torch.randn(2, 3, 8, 8).to(device)
    with torch.no_grad():
        ops = ops_of(lambda: model(images))
    assert ops["aten::cudnn_convolution"] == 1
    assert ops["aten::cudnn_batch_norm"] == 1, ops


def alone_transposed_and_grouped_convolutions(device):
    images = torch.randn(2, 8, 9, 9).to(device)
    ops = ops_of(lambda: nn.ConvTranspose2d(8, 4, 3, stride=2).to(device)(images).sum().backward())
    assert ops["aten::cudnn_convolution_transpose"] == 1 and ops["aten::convolution_backward"] == 1, ops
    ops = ops_of(lambda: nn.Conv2d(8, 8, 3, groups=4).to(device)(images).sum().backward())
    assert ops["aten::cudnn_convolution"] == 1, ops
    ops = ops_of(lambda: nn.Conv2d(8, 8, 3, groups=8).to(device)(images).sum().backward())
    assert ops["aten::_conv_depthwise2d"] + ops["aten::cudnn_convolution"] == 1, ops
    ops = ops_of(lambda: nn.Conv3d(8, 4, 3).to(device)(torch.randn(1, 8, 5, 5, 5).to(device)).sum().backward())
    assert ops["aten::cudnn_convolution"] == 1, ops


def alone_a_convolution_keeps_no_workspace(device):
    """Forward holds its result, and while it runs at most copies of its three tensors (cudnn/workspaces.h)."""
    model, images = nn.Conv2d(64, 64, 3, padding=1, bias=False).to(device), torch.randn(8, 64, 32, 32).to(device)
    size = images.numel() * 4
    weight = model.weight.numel() * 4
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    peak, result = peak_of(lambda: model(images))
    assert torch.cuda.memory_allocated() - before == size
    assert size <= peak <= 3 * size + weight + 4096, (peak, size)
    innermost = images.contiguous(memory_format=torch.channels_last)
    model.to(memory_format=torch.channels_last)
    peak, result = peak_of(lambda: model(innermost))
    assert peak == size, (peak, size)


def alone_recurrent_networks(device):
    for cls, gates, options in ((nn.LSTM, 4, {}), (nn.GRU, 3, {"bidirectional": True}), (nn.RNN, 1, {"bias": False}),
                                (nn.LSTM, 4, {"proj_size": 8}), (nn.LSTM, 4, {"dropout": 0.5})):
        model, x = cls(16, 32, 2, **options).to(device), torch.randn(5, 3, 16).to(device)
        # The weights are views of one buffer (flatten_parameters), which holds nothing else unless there is no bias.
        assert len({p.untyped_storage().data_ptr() for p in model.parameters()}) == 1
        if options.get("bias", True):
            assert next(model.parameters()).untyped_storage().nbytes() == sum(p.numel() for p in model.parameters()) * 4
        ops = ops_of(lambda: model(x)[0].sum().backward())
        assert ops["aten::_cudnn_rnn"] == 1 and ops["aten::_cudnn_rnn_backward"] == 1, ops
        assert all(p.grad.shape == p.shape for p in model.parameters())
        starts = sorted((p.storage_offset(), p.numel()) for p in model.parameters())
        assert all(a + n <= b for (a, n), (b, _) in zip(starts, starts[1:])), starts


def alone_packed_sequences(device):
    model = nn.LSTM(4, 6).to(device)
    packed = nn.utils.rnn.pack_padded_sequence(torch.randn(5, 3, 4), torch.tensor([5, 3, 2])).to(device)
    ops = ops_of(lambda: model(packed)[0].data.sum().backward())
    assert ops["aten::_cudnn_rnn"] == 1, ops


def alone_losses_and_grids(device):
    scores = torch.randn(20, 2, 5).log_softmax(2).to(device).requires_grad_()
    labels = torch.randint(1, 5, (8,), dtype=torch.int32)
    ops = ops_of(lambda: F.ctc_loss(scores, labels, [20, 20], [4, 4]).backward())
    assert ops["aten::_cudnn_ctc_loss"] == 1 and ops["aten::_ctc_loss"] == 0, ops
    images, grid = torch.randn(2, 3, 8, 8).to(device), torch.randn(2, 4, 4, 2).to(device).requires_grad_()
    ops = ops_of(lambda: F.grid_sample(images, grid, align_corners=True).sum().backward())
    assert ops["aten::cudnn_grid_sampler"] == 1 and ops["aten::cudnn_grid_sampler_backward"] == 1, ops


def alone_benchmarking_finds_an_engine(device):
    with torch.backends.cudnn.flags(enabled=True, benchmark=True):
        model, images = nn.Conv2d(3, 8, 3).to(device), torch.randn(2, 3, 9, 9).to(device)
        model(images).sum().backward()
    assert model.weight.grad.shape == (8, 3, 3, 3)


def attention(device, dtype, width, **options):
    query, key, value = (torch.randn(2, 4, 256, width).to(device, dtype).requires_grad_() for _ in range(3))
    listed = Listed()
    with listed:
        peak, output = peak_of(lambda: F.scaled_dot_product_attention(query, key, value, **options))
        output.sum().backward()
    (chosen,) = {name for name in listed.ops if "scaled_dot_product" in name and "backward" not in name} or {"math"}
    return chosen, peak, output.numel() * output.element_size()


def alone_attention_never_makes_the_square(device):
    """The choice is torch's own host code; what it allocates is the output and one float for each row."""
    square = 2 * 4 * 256 * 256 * 2
    for dtype, width in ((torch.bfloat16, 64), (torch.float16, 128), (torch.float32, 64)):
        for options in ({}, {"is_causal": True}):
            chosen, peak, output = attention(device, dtype, width, **options)
            names = ("efficient",) if dtype is torch.float32 else ("flash", "cudnn")
            assert any(name in chosen for name in names), (chosen, dtype, options)
            assert output <= peak <= output + 2 * 4 * 256 * 4 + 4096, (chosen, peak, output)
            assert peak < output + square
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION):
        assert "flash" in attention(device, torch.bfloat16, 64, dropout_p=0.1)[0]
    mask = torch.ones(256, 256, dtype=torch.bool).to(device)
    assert "flash" not in attention(device, torch.bfloat16, 64, attn_mask=mask)[0]
