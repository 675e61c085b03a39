"""R1, R2, R4: whole jobs with everything evicted after every op. An access that the observer missed raises."""
import unittest

import torch
import torch.nn as nn
import torch.nn.functional as F

from harness import DEVICE, PluginTest

KIB = 1024


def transformer():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).to(DEVICE)


def train(make_optimizer, autocast=False, steps=2):
    model = transformer()
    optimizer = make_optimizer(model.parameters())
    for _ in range(steps):
        x = torch.randn(2, 8, 64, device=DEVICE)
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=autocast):
            loss = model(x).float().pow(2).mean()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    return model


class Training(PluginTest):
    def setUp(self):
        super().setUp()
        self.core.chunk_bytes(20 * KIB)
        self.core.always_evict(1)

    def test_Optimizers_Foreach_NothingIsMissed(self):
        optim = torch.optim
        for make in (optim.AdamW, optim.Adam, optim.NAdam, optim.RAdam, optim.RMSprop, optim.Adagrad, optim.Adamax,
                     optim.Rprop, optim.ASGD, optim.Adadelta, optim.Adafactor,
                     lambda p: optim.SGD(p, lr=0.1, momentum=0.9)):
            with self.subTest(str(make)):
                train(make)

    def test_Optimizers_FusedAndSingle_NothingIsMissed(self):
        optim = torch.optim
        for make in (lambda p: optim.AdamW(p, fused=True), lambda p: optim.AdamW(p, foreach=False),
                     lambda p: optim.SGD(p, lr=0.1, momentum=0.9, fused=True),
                     lambda p: optim.AdamW(p, amsgrad=True, fused=True)):
            train(make)

    def test_Autocast_Bfloat16_NothingIsMissed(self):
        train(torch.optim.AdamW, autocast=True)

    def test_GradScaler_Float16_NothingIsMissed(self):
        model = nn.Linear(16, 16).to(DEVICE)
        optimizer, scaler = torch.optim.AdamW(model.parameters()), torch.amp.GradScaler("cuda")
        for _ in range(2):
            with torch.autocast("cuda", dtype=torch.float16):
                loss = model(torch.randn(2, 16, device=DEVICE)).sum()
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()

    def test_Convolutions_TrainAndEval_NothingIsMissed(self):
        model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
                              nn.Conv2d(8, 8, 3), nn.GroupNorm(2, 8), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                              nn.Linear(8, 5)).to(DEVICE)
        target = torch.tensor([0, 1, 2, 3], device=DEVICE)
        with torch.backends.cudnn.flags(enabled=False):
            F.cross_entropy(model(torch.randn(4, 3, 16, 16, device=DEVICE)), target).backward()
            model.eval()(torch.randn(4, 3, 16, 16, device=DEVICE))

    def test_Recurrent_LstmAndGru_NothingIsMissed(self):
        with torch.backends.cudnn.flags(enabled=False):
            for kind in (nn.LSTM, nn.GRU, nn.RNN):
                output, _ = kind(8, 16, 2).to(DEVICE)(torch.randn(5, 2, 8, device=DEVICE))
                output.sum().backward()

    def test_SparseGradients_SparseAdam_NothingIsMissed(self):
        embedding = nn.Embedding(100, 16, sparse=True).to(DEVICE)
        optimizer = torch.optim.SparseAdam(embedding.parameters())
        for _ in range(2):
            embedding(torch.randint(0, 100, (4, 5), device=DEVICE)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()

    def test_Checkpointing_BothKinds_NothingIsMissed(self):
        linear, x = nn.Linear(16, 16).to(DEVICE), torch.randn(3, 16, device=DEVICE, requires_grad=True)
        for reentrant in (False, True):
            torch.utils.checkpoint.checkpoint(linear, x, use_reentrant=reentrant).sum().backward()

    def test_FunctionTransforms_VmapOfGrad_NothingIsMissed(self):
        linear = nn.Linear(4, 2).to(DEVICE)
        loss = lambda parameters, x: torch.func.functional_call(linear, parameters, (x,)).sum()
        torch.func.vmap(torch.func.grad(loss), (None, 0))(dict(linear.named_parameters()),
                                                          torch.randn(3, 4, device=DEVICE))

    def test_Attention_Math_NothingIsMissed(self):
        query = torch.randn(2, 4, 8, 16, device=DEVICE, requires_grad=True)
        with nn.attention.sdpa_kernel(nn.attention.SDPBackend.MATH):
            F.scaled_dot_product_attention(query, query, query, is_causal=True).sum().backward()

    def test_Indexing_ReadsAndWrites_NothingIsMissed(self):
        x, index = torch.randn(10, 4, device=DEVICE), torch.tensor([1, 2, 2], device=DEVICE)
        x[index] = x[index] + 1
        x.index_put_((index,), torch.ones(3, 4, device=DEVICE), accumulate=True)
        torch.where(x > 0, x, x * 2).masked_fill(x > 0, 1).gather(0, index[:, None])
        torch.einsum("ij,kj->ik", x, x)
        torch.cat([x, x])

    def test_InferenceMode_Forward_NothingIsMissed(self):
        with torch.inference_mode():
            linear = nn.Linear(16, 16).to(DEVICE)
            linear(linear(torch.randn(2, 16, device=DEVICE)))

    def test_SideStream_RecordStream_NothingIsMissed(self):
        x, stream = torch.randn(5, device=DEVICE), torch.cuda.Stream()
        with torch.cuda.stream(stream):
            y = x * 2
        y.record_stream(torch.cuda.current_stream())
        torch.cuda.current_stream().wait_stream(stream)
        (y + x).sum()

    def test_ScriptedModule_Called_NothingIsMissed(self):
        torch.jit.script(nn.Linear(4, 4).to(DEVICE))(torch.randn(2, 4, device=DEVICE))


if __name__ == "__main__":
    unittest.main()
