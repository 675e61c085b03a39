"""Random numbers: those of the CPU for the same script, and generators that can be seeded, saved and restored."""
import torch
import torch.nn.functional as F


def case_every_distribution(device):
    own = torch.Generator(device).manual_seed(5)
    return [torch.rand(4, device=device), torch.randn(4, device=device), torch.randperm(7, device=device),
            torch.multinomial(torch.ones(6, device=device), 3), torch.randint(0, 9, (4,), device=device),
            torch.bernoulli(torch.full((5,), 0.5, device=device)), torch.normal(0.0, 1.0, (3,), device=device),
            F.dropout(torch.ones(30, device=device), 0.4), torch.empty(3, device=device).exponential_(),
            torch.empty(3, device=device).uniform_(1, 2), torch.rand(3, device=device, generator=own),
            torch.poisson(torch.ones(3, device=device)), torch._standard_gamma(torch.ones(3, device=device)),
            F.rrelu(torch.ones(3, device=device) * -1, training=True), F.gumbel_softmax(torch.ones(3, device=device))]


def case_generators_of_both_devices_in_turn(device):
    return [torch.rand(3), torch.rand(3, device=device), torch.rand(3), torch.rand(3, device=device)]


def case_own_generator_repeats(device):
    own = torch.Generator(device).manual_seed(5)
    first = torch.rand(3, device=device, generator=own)
    state = own.get_state()
    second = torch.rand(3, device=device, generator=own)
    own.set_state(state)
    assert torch.equal(torch.rand(3, device=device, generator=own), second)
    own.manual_seed(5)
    assert torch.equal(torch.rand(3, device=device, generator=own), first)
    return [first, second]


def alone_cuda_state_restored_repeats(device):
    state = torch.cuda.get_rng_state()
    first = torch.rand(5, device=device)
    torch.cuda.set_rng_state(state)
    assert torch.equal(torch.rand(5, device=device), first)


def alone_cuda_seed_repeats(device):
    torch.cuda.manual_seed(9)
    first, host = torch.rand(5, device=device), torch.rand(2)
    torch.cuda.manual_seed(9)
    assert torch.equal(torch.rand(5, device=device), first)
    assert not torch.equal(torch.rand(2), host), "seeding CUDA must leave the CPU's numbers alone"
