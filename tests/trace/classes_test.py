"""What the blocks at the peak are to the job: the job says the role of each of its tensors by its address, and the trace must
agree, at three moments of a step. The moment is made the peak by a tensor larger than everything else."""
import collections
import json
import unittest

import wtr
from traced_job import TracedJobTest

# Two passes forward and back to a step, so that there are gradients while a forward runs. `roles` has each role's tensors as
# {address: bytes}; of what was saved for backward some may be dead at the moment.
JOB = """
import json, torch
from torch import nn
where = "WHERE"
saved, held = {}, {}
def addresses(tensors):
    return {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors if t is not None and t.is_cuda}
def pack(tensor):
    saved.update(addresses([tensor]))
    return tensor
model = nn.Sequential(nn.Embedding(100, 64), nn.Linear(64, 256), nn.GELU(), nn.LayerNorm(256), nn.Dropout(0.5), nn.Linear(256, 64),
                      nn.ReLU(), nn.Flatten(), nn.BatchNorm1d(640), nn.Linear(640, 10)).cuda()
optimizer = OPTIMIZER
one = torch.ones((), device="cuda")
criterion = nn.CrossEntropyLoss(weight=torch.ones(10, device="cuda"))
def peak(*temporary):
    large = torch.empty(64 << 20, dtype=torch.uint8, device="cuda")
    roles = {"parameter": addresses(model.parameters()), "gradient": addresses(p.grad for p in model.parameters()),
             "optimizer": addresses(t for state in optimizer.state.values() for t in state.values() if torch.is_tensor(t)),
             "input": addresses([*model.buffers(), criterion.weight, one, ids, labels]),
             "activation": saved | addresses([loss, output]), "temporary": addresses([large, *temporary])}
    print(json.dumps(roles))
now = lambda name: step == 2 and part == 1 and where == name
optimizer.register_step_pre_hook(lambda *_: peak() if now("optimizer") else None)
loss = output = None
for step in range(4):
    for part in range(2):
        ids, labels = torch.randint(100, (32, 10)).cuda(), torch.randint(10, (32,)).cuda()
        saved.clear()
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            middle = model[:5](ids)
            output = model[5:](middle)
            middle.register_hook(lambda g: peak(g) if now("backward") else None)
            loss = criterion(output, labels)
        del middle
        if now("forward"):
            peak()
        loss.backward(one)
    optimizer.step()
    optimizer.zero_grad()
"""


class ClassesTest(TracedJobTest):
    def check(self, where: str, optimizer: str, *wanted: str):
        """At that moment each block has the class of its role, and these classes are there."""
        done = self.run_job(JOB.replace("WHERE", where).replace("OPTIMIZER", optimizer))
        roles = {role: {int(address): size for address, size in tensors.items()}
                 for role, tensors in json.loads(done.stdout.splitlines()[-1]).items()}
        self.assertEqual(len(done.stdout.splitlines()), 1)
        blocks = self.blocks_at_the_peak()
        sums = collections.Counter()
        for address, (size, is_a_tensor) in blocks.items():
            # Addresses are used again: what is no longer saved may be something else by now.
            named = [role for role in ("temporary", "parameter", "gradient", "optimizer", "input", "activation")
                     if roles[role].get(address) == size]
            if not is_a_tensor:  # a library's workspace
                self.assertEqual(named, [])
                named = ["temporary"]
            self.assertNotEqual(named, [], f"the job knows no role of {address:#x}, {size} bytes")
            sums[named[0]] += size
        for role in ("parameter", "gradient", "optimizer", "input", "temporary"):
            self.assertLessEqual(set(roles[role]), set(blocks), role)
        self.assertEqual(set(sums), set(wanted))
        self.assertEqual(self.summary()["memory"]["classes_at_peak"], {role: sums[role] for role in roles})

    def blocks_at_the_peak(self) -> dict:
        """{address: (bytes, whether an op ever had it as a tensor)}."""
        live, best, peak, records = {}, 0, {}, self.records()
        for record in records:
            if record.kind == "allocate":
                live[record.address] = [record.amount, False]
                if sum(size for size, _ in live.values()) > best:
                    best, peak = sum(size for size, _ in live.values()), dict(live)
            elif record.kind == "free":
                live.pop(record.address, None)
            elif record.kind == "tensor" and record.address in live:
                live[record.address][1] = True
        return {address: tuple(block) for address, block in peak.items()}

    def test_after_forward(self):
        self.check("forward", "torch.optim.Adam(model.parameters())",
                   "parameter", "gradient", "optimizer", "activation", "input", "temporary")

    def test_in_backward(self):
        self.check("backward", "torch.optim.Adam(model.parameters(), fused=True)",
                   "parameter", "gradient", "optimizer", "activation", "input", "temporary")

    def test_in_the_optimizer_with_state_on_the_card(self):
        self.check("optimizer", "torch.optim.Adam(model.parameters(), foreach=False, capturable=True)",
                   "parameter", "gradient", "optimizer", "activation", "input", "temporary")


if __name__ == "__main__":
    unittest.main()
