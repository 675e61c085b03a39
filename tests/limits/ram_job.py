"""Fills VRAM and RAM until nothing more fits, and prints how much was kept, in MiB: a line for each device.

Usage: ram_job.py fill [DEVICES] | ram_job.py two. `two` starts two such processes, both of which use CUDA before the first
fills and live until the second has filled; it prints the two figures as JSON. Kernels `none`: nothing is computed.
"""
import json
import subprocess
import sys

if sys.argv[1] == "fill":
    import torch

PIECE = 64  # MiB


def tensor(device):
    return torch.empty(PIECE << 18, device=device).fill_(0)


def fill(device):
    kept = []
    try:
        while True:
            kept.append(tensor(device))
    except torch.OutOfMemoryError:
        return len(kept) * PIECE, kept


def main():
    if sys.argv[1] == "fill":
        devices = [torch.device("cuda", index) for index in range(int((sys.argv + ["1"])[2]))]
        kept = [tensor(device) for device in devices]
        print("ready", flush=True)
        sys.stdin.readline()
        kept.clear()
        for device in devices:
            held, more = fill(device)
            kept.append(more)
            print(held, flush=True)
        sys.stdin.readline()
        return
    ranks = []
    for _ in range(2):
        ranks.append(subprocess.Popen([sys.executable, __file__, "fill"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        assert ranks[-1].stdout.readline() == "ready\n"
    held = []
    for rank in ranks:
        print("go", file=rank.stdin, flush=True)
        held.append(int(rank.stdout.readline()))
    for rank in ranks:
        rank.communicate()
        assert rank.returncode == 0
    print(json.dumps(held))


if __name__ == "__main__":
    main()
