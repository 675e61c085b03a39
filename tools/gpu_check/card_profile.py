"""A profile for the emulated GPU (docs/profiles.md) from what the probe measured of a card."""
import re

# The known profile with the same kind of chip, by compute capability: what the probe does not measure is taken from it.
BASES = {80: "a100-80g", 86: "rtx3060-12g", 89: "rtx4090", 90: "h100"}
LARGE = 100 << 30  # a Hopper card with more memory is an H200

# key: (step of the probe, its figure, what the figure is multiplied by)
MEASURED = {
    "compute_major": ("device", "compute_capability", 1 / 10),
    "compute_minor": ("device", "compute_capability", 1),
    "vram_mib": ("device", "info_total", 2**-20),
    "multiprocessors": ("device", "multiprocessors", 1),
    "l2_mib": ("device", "l2_bytes", 2**-20),
    "shared_per_multiprocessor_kib": ("device", "shared_per_multiprocessor", 2**-10),
    "shared_per_block_kib": ("device", "shared_per_block", 2**-10),
    "threads_per_multiprocessor": ("device", "threads_per_multiprocessor", 1),
    "blocks_per_multiprocessor": ("device", "blocks_per_multiprocessor", 1),
    "memory_bus_bits": ("device", "memory_bus", 1),
    "clock_khz": ("device", "clock", 1),
    "memory_clock_khz": ("device", "memory_clock", 1),
    "copy_engines": ("device", "copy_engines", 1),
    "memory_gbps": ("copies", "on device (read and write)", 1),
    "h2d_gbps": ("copies", "to device, pinned", 1),
    "d2h_gbps": ("copies", "to host, pinned", 1),
    "h2d_both_gbps": ("copies", "to device beside copies to host", 1),
    "d2h_both_gbps": ("copies", "to host beside copies to device", 1),
    "pageable_h2d_gbps": ("copies", "to device, pageable", 1),
    "event_us": ("calls", "event query", 1),
    "copy_submit_us": ("calls", "submit a 64 KiB copy, pinned", 1),
    "launch_us": ("mapper", "launch median alone", 1),
    "vmm_create_us": ("vmm cost", "2 MiB create", 1),
    "vmm_map_us": ("vmm cost", "2 MiB map", 1),
    "vmm_access_us": ("vmm cost", "2 MiB access", 1),
    "vmm_unmap_us": ("vmm cost", "2 MiB unmap", 1),
    "vmm_release_us": ("vmm cost", "2 MiB release", 1),
    "pin_us_per_mib": ("pinned", "256 MiB pinned allocate", 1000 / 1024),
}


def base_of(capability: float, memory: float) -> str:
    if capability >= 90 and memory > LARGE:
        return "h200"
    return BASES.get(capability) or BASES[min(BASES, key=lambda known: abs(known - capability))]


def _number(key: str, figures: dict):
    """The value of `key`; None where it was not measured, or is nothing that a profile could say."""
    step, name, factor = MEASURED[key]
    if name not in figures.get(step, {}).get("figures", {}):
        return None
    value = figures[step]["figures"][name]["value"]
    if key == "compute_minor":
        return int(value) % 10
    value *= factor
    if key.endswith(("_us", "_gbps", "_us_per_mib")):
        return round(value, 4) if value > 0 else None
    return int(value) if value >= 1 else None


def of_probe(figures: dict) -> str:
    """The text of a profile; ValueError when the probe did not get as far as the card's own facts."""
    facts = figures.get("device", {})
    if "compute_capability" not in facts.get("figures", {}):
        raise ValueError("the probe met no card")
    told = re.match(r"(.*), compute capability", "".join(facts["lines"][:1]))
    name = told.group(1).replace("#", "") if told else "unknown card"
    base = base_of(facts["figures"]["compute_capability"]["value"], facts["figures"]["info_total"]["value"])
    lines = [f"# {name}, as gpu_check met it. What no line says is that of the base: peaks of matrix products above all.",
             f"base {base}", f"device_name {name}  # the driver"]
    for key, (step, figure, _) in MEASURED.items():
        value = _number(key, figures)
        if value is not None:
            lines.append(f"{key} {value}  # gpu_check: {step}, {figure}")
    return "\n".join(lines) + "\n"
