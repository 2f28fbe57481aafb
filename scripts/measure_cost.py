#!/usr/bin/env python3
"""measure_cost.py [NAME...]: how the cost of a simulation grows, over three orders of magnitude each: in `cycle` with GPUs,
bytes and kernels, in `sampled` with what is simulated in detail (regimes). One table row a run: CPU seconds, also for
each unit, memory transactions and memory. Two minutes on one core.

With WEFT another program than build/release/cli/weft."""
import os
import pathlib
import re
import sys
import tempfile

from measure_sampled import ROOT, run

# Three levels, 16 GPUs a leaf, none of which stands for another.
TREE = {"base": "hgx-h100", "max_gpus": 4096, "switch_reduce": None,
        "network": {"topology": "fat_tree", "tree": {"levels": 3, "radix": 32}}}


def convolutions(layers, sequence):
    """Of one GPU; each layer's filter has its width of holes, so that none is like another."""
    return {"system": "dgx-a100", "gpus": 1,
            "workload": {"model": "temporal_convolution", "sequence": sequence, "channels": 64, "kernel": 2,
                         "dilations": list(range(1, layers + 1)), "layers": layers}}


# By what grows: the sizes, and the configuration of each.
GROWTHS = {
    "GPUs": ((4, 40, 400, 4000), lambda gpus: {
        "system": TREE, "gpus": gpus, "workload": {"collective": "shift", "bytes": 1 << 20}}),
    "MiB": ((1, 10, 100, 1000), lambda mib: {
        "system": "dgx-a100", "gpus": 2, "workload": {"collective": "all_reduce", "bytes": mib << 20},
        "all_reduce": {"algorithm": "ring", "protocol": "Simple"}}),
    "kernels": ((1, 10, 100, 1000), lambda steps: {**convolutions(1, 2000), "iterations": steps}),
    "regimes": ((1, 10, 100, 1000), lambda layers: convolutions(layers, 4000)),
}


def units(what, size, out, result):
    """How many of them the run had."""
    if what == "kernels":
        return (out / "kernels.csv").read_text().count("\n") - 1
    if what == "regimes":
        return next(int(found[1]) for note in result["notes"] if (found := re.search(r"(\d+) stretches simulated", note)))
    return size


def main():
    os.environ.setdefault("WEFT_CONFIGS", str(ROOT / "configs"))
    weft = os.environ.get("WEFT", str(ROOT / "build" / "release" / "cli" / "weft"))
    wanted = sys.argv[1:] or list(GROWTHS)
    if unknown := [name for name in wanted if name not in GROWTHS]:
        sys.exit(f"{unknown[0]}: expected one of {', '.join(GROWTHS)}")
    print("| | CPU seconds | ms each | transactions each | GiB |\n|---|---|---|---|---|")
    for what in wanted:
        sizes, config_of = GROWTHS[what]
        for size in sizes:
            with tempfile.TemporaryDirectory() as name:
                folder = pathlib.Path(name)
                fidelity = "sampled" if what == "regimes" else "cycle"
                result, seconds = run(weft, {**config_of(size), "threads": 1}, fidelity, folder, "")
                engine, count = result["engine"], units(what, size, folder / "out", result)
            print(f"| {count} {what} | {seconds:.2f} | {seconds / count * 1e3:.3g} | "
                  f"{engine['memory_transactions'] / count:,.0f} | {engine['peak_rss_bytes'] / 2**30:.2f} |", flush=True)


if __name__ == "__main__":
    main()
