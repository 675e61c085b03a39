"""Two models and two optimizers in turn, as a GAN trains them; one step has a double backward (gradient penalty)."""
import torch
import torch.nn.functional as F

from common import Record, device
from models import Perceptron

BATCH, NOISE, SAMPLE = 512, 640, 1024


def main():
    torch.manual_seed(8)
    generator = Perceptron(NOISE, 1024, 1024, SAMPLE).to(device())
    critic = Perceptron(SAMPLE, 1024, 1024, 1).to(device())
    optimizers = [torch.optim.Adam(m.parameters(), lr=2e-4, betas=(0.5, 0.9)) for m in (generator, critic)]
    random = torch.Generator().manual_seed(9)
    record = Record()
    for _ in range(3):
        real = torch.randn(BATCH, SAMPLE, generator=random).to(device())
        noise = torch.randn(BATCH, NOISE, generator=random).to(device())
        fake = generator(noise)

        mixed = (0.5 * real + 0.5 * fake.detach()).requires_grad_()
        gradient, = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)
        penalty = (gradient.norm(dim=1) - 1).square().mean()
        critic_loss = F.softplus(critic(fake.detach())).mean() + F.softplus(-critic(real)).mean() + 10 * penalty
        optimizers[1].zero_grad()
        critic_loss.backward()
        optimizers[1].step()
        record.loss(critic_loss)

        generator_loss = F.softplus(-critic(fake)).mean()
        optimizers[0].zero_grad()
        generator_loss.backward()
        optimizers[0].step()
        record.loss(generator_loss)
    record.finish(generator, critic, *optimizers)


if __name__ == "__main__":
    main()
