"""Two threads train and calculate under a cap that they exceed now and then, while watching is begun and ended at random, in the
middle of ops too: switching_job.py SWITCHES SEED. Prints a JSON line: digest, switches, errors. The same without Weir, where the
switch is not there."""
import ctypes
import hashlib
import json
import os
import random
import sys
import threading

import torch

SWITCHES, SEED = int(sys.argv[1]), int(sys.argv[2])
MIB = 2**20 // 4  # floats
STATE, TEMPORARIES = 8, 9  # tensors of 2 MiB of each thread; of 2 and 4 MiB


def switch():
    """Weir's switch (pytorch_plugin/observer_switch.h); None without Weir."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        plugins = {line.split(maxsplit=5)[5].strip() for line in maps if "/libweir_torch_" in line}
    return ctypes.CDLL(plugins.pop(), mode=os.RTLD_NOLOAD).weir_plugin_switch if plugins else None


class Worker:
    def __init__(self, seed: int, plugin):
        # What is calculated must not depend on when anything is switched.
        self.work, self.chance = random.Random(seed), random.Random(seed + 1)
        self.plugin, self.steps, self.retries = plugin, 0, 0
        self.stream = torch.cuda.Stream()
        generator = torch.Generator().manual_seed(seed)
        self.state = [torch.rand(2 * MIB, generator=generator).cuda() for _ in range(STATE)]

    def maybe_switch(self, *_):
        if self.plugin is None or self.chance.random() > 0.6:
            return
        self.plugin(int(self.chance.random() < 0.5))

    def step(self):
        a, b = self.work.sample(range(STATE), 2)
        self.maybe_switch()
        self.state[a].mul_(0.5).add_(self.state[b], alpha=0.25)
        self.maybe_switch()
        torch._foreach_mul_([self.state[a], self.state[b]], 1.01)
        kind = self.work.random()
        if kind < 0.3:
            self.again(self.backward, a, b)
        elif kind < 0.4:
            self.again(self.pressure, a)

    def again(self, change, *arguments):
        """Right after watching began nothing can leave, so what needs room may fail. Then nothing has changed, and it is tried again."""
        while True:
            try:
                return change(*arguments)
            except torch.OutOfMemoryError:
                self.retries += 1
            for tensor in self.state:
                tensor.add_(0)

    def backward(self, a, b):
        weight = self.state[a].detach().requires_grad_()
        weight.register_hook(self.maybe_switch)
        ((weight * self.state[b]).tanh().mean() + weight.mean()).backward()
        with torch.no_grad():
            self.state[a].sub_(weight.grad, alpha=0.1)

    def pressure(self, a):
        """More than fits."""
        made = [self.state[i % STATE] * (i + 1) for i in range(TEMPORARIES)]
        change = torch.cat([made[0], made[-1]])[:2 * MIB] * 0.125 + torch.stack(made).mean(0)
        del made
        self.state[a].copy_(change)

    def run(self, enough):
        with torch.cuda.stream(self.stream):
            while not enough(self):
                self.step()
                self.steps += 1


def watches() -> int:
    """How often watching has begun again."""
    from torch_weir import _core
    return _core._own_stats(0)["weir/watches"]


def main():
    torch.cuda.init()
    plugin = switch()
    workers = [Worker(SEED + 10 * i, plugin) for i in range(2)]
    torch.cuda.synchronize()
    if plugin is not None:
        def enough(worker):
            return worker.steps % 16 == 0 and worker.steps >= 16 and 2 * watches() >= SWITCHES
    else:
        most = dict(zip(workers, json.loads(os.environ["TEST_STEPS"])))

        def enough(worker):
            return worker.steps == most[worker]
    second = threading.Thread(target=workers[1].run, args=(enough,))
    second.start()
    workers[0].run(enough)
    second.join()
    torch.cuda.synchronize()
    digests = [hashlib.sha256(b"".join(t.cpu().numpy().tobytes() for t in worker.state)).hexdigest() for worker in workers]
    print(json.dumps({"digests": digests, "steps": [worker.steps for worker in workers],
                      "retries": sum(worker.retries for worker in workers), "switches": 2 * watches() if plugin else 0}))


if __name__ == "__main__":
    main()
