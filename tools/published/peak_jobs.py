"""Training jobs whose peaks were published (peaks.py): one after the other in one process, as they ran there, the models of before
still on the card. Prints the peak of each, in bytes, as a JSON list. Settings of the source: 10 classes, 128 random images a step
which are copied from pageable memory, dense random targets, plain SGD, torch's defaults of precision; models are built on the CPU."""
import json
import pathlib
import sys

import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "dryrun"))
import models  # noqa: E402

CLASSES, IMAGES, BATCHES, EPOCHS = 10, 128, 4, 3


def one_convolution():
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(8 * 111 * 111, CLASSES))


def vgg16():
    """Simonyan and Zisserman 2015, table 1, column D, with batch norms behind convolutions that keep their bias."""
    layers, inputs = [], 3
    for width, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(count):
            layers += [nn.Conv2d(inputs, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
            inputs = width
        layers.append(nn.MaxPool2d(2))
    def hidden(inputs):
        return nn.Linear(inputs, 4096), nn.ReLU(inplace=True), nn.Dropout()
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(7), nn.Flatten(), *hidden(512 * 7 * 7), *hidden(4096), nn.Linear(4096, CLASSES))


def resnet50():
    model = models.resnet50()
    model[-1] = nn.Linear(2048, CLASSES)
    return model


class EncoderBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        y = self.norm1(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


def vit():
    """With torch's own attention module, as in the source."""
    model = models.Vit(classes=CLASSES)
    model.blocks = nn.Sequential(*(EncoderBlock(768, 12) for _ in range(12)))
    return model


def peak_of(model) -> int:
    """The peak of a training of the model, bytes."""
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    model.to("cuda").train()
    data = [(torch.randn(IMAGES, 3, 224, 224), torch.randn(IMAGES, CLASSES)) for _ in range(BATCHES)]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for images, targets in data * EPOCHS:
        images, targets = images.to("cuda"), targets.to("cuda")
        optimizer.zero_grad()
        outputs = model(images)
        loss = F.cross_entropy(outputs, targets)
        loss.backward()
        optimizer.step()
    return torch.cuda.max_memory_allocated()


if __name__ == "__main__":
    kept, peaks = [], []
    for make in (one_convolution, vgg16, resnet50, vit):
        kept.append(make())
        peaks.append(peak_of(kept[-1]))
    print(json.dumps(peaks))
