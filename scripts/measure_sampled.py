#!/usr/bin/env python3
"""measure_sampled.py [NAME...]: `sampled` against `cycle`, one row of a table a configuration (all of them, or those whose
name has NAME in it): differences, what the result says it may be off by, and seconds of CPU time of `cycle`, of `sampled`
with an empty memory of regimes and of the same once more. All of them take half an hour on one core.

With WEFT another program than build/release/cli/weft."""
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
IN_SWITCH = {"all_reduce": {"algorithm": "in_switch"}, "switch_reduce": {"preset": "nvswitch3"}}
RING = {"all_reduce": {"algorithm": "ring"}}


def trains(system, gpus, how, **workload):
    return {"system": system, "gpus": gpus, "workload": workload, **how}


def attends(scheme, gpus, sequence, **how):
    workload = {"model": "attention", "sequence": sequence, "hidden": 1024, "heads": 8, "causal": True}
    return {"system": "hgx-h100", "gpus": gpus, "workload": workload, "scheme": {"name": scheme, **how}}


def multiplies(product, gpus, rows):
    workload = {"model": "distributed_product", "product": product, "rows": rows, "columns": 768, "offset": rows // 8}
    return {"system": "dgx-a100", "gpus": gpus, "workload": workload, "scheme": {"name": "single_sample"}}


ROWS = {
    **{f"ResNet-50, batch {b}, 8 A100, {name}": trains("dgx-a100", 8, how, model="resnet50", batch=b)
       for name, how in (("ring", RING), ("in switch", IN_SWITCH)) for b in (4, 8, 16, 32)},
    "ResNet-50, batch 4, 8 H100, in switch": trains("hgx-h100", 8, {}, model="resnet50", batch=4),
    "VGG-16, batch 2, 4 A100, ring": trains("dgx-a100", 4, RING, model="vgg16", batch=2),
    "BERT-large, 2 layers, batch 2, 4 A100, ring": trains("dgx-a100", 4, RING, model="bert-large", layers=2, batch=2),
    "BERT-large, 2 layers, batch 4, 8 H100, in switch": trains("hgx-h100", 8, {}, model="bert-large", layers=2, batch=4),
    "GPT-2, 2 layers, batch 1, 4 H100, ring": trains("hgx-h100", 4, RING, model="gpt2", layers=2, batch=1),
    **{f"product {p}, 6144 rows, 4 A100": multiplies(p, 4, 6144) for p in ("nt", "all", "tn")},
    **{f"{s}, 4096 tokens, 4 H100": attends(s, 4, 4096) for s in ("ulysses", "megatron")},
    **{f"ring_attention, striped, {t} tokens, {g} H100": attends("ring_attention", g, t, split="striped")
       for t, g in ((4096, 4), (8192, 8))},
}


def run(weft, config, fidelity, folder, regimes):
    """The result and its seconds of CPU time."""
    (folder / "run.json").write_text(json.dumps({**config, "fidelity": fidelity}))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = subprocess.run([weft, "run", "run.json", "-o", "out"], cwd=folder, capture_output=True, text=True,
                          env={**os.environ, "WEFT_REGIMES": str(regimes)}, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if said.returncode != 0:
        sys.exit(f"{config}: {said.stderr.strip()}")
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return json.loads((folder / "out" / "result.json").read_text()), seconds


def compare(name, cycle, sampled, seconds):
    """A row of the table."""
    exact, found = cycle["iteration"], sampled["iteration"]

    def off(what):
        if not exact.get(what) or not found.get(what):
            return "-"
        return f"{100 * (found[what] / exact[what] - 1):+.1f} %"

    time = exact["time_s"]
    exposed = "-"
    if exact.get("communication_exposed_s") is not None:
        exposed = f"{100 * (found['communication_exposed_s'] - exact['communication_exposed_s']) / time:+.2f} %"
    moved = [sum(g["hbm_read_bytes"] + g["hbm_write_bytes"] for g in of["gpus"]) for of in (sampled, cycle)]
    slowdown = exact.get("backward_slowdown")
    slowdown = "-" if slowdown is None else f"{slowdown:.3f} ({off('backward_slowdown')})"
    estimate = sampled["engine"]["sampling_error_estimate"]
    cold = f"{seconds['cycle']:.0f}, {seconds['cold']:.1f}, {seconds['warm']:.2f} s"
    return (f"| {name} | {time * 1e6:.0f} us ({off('time_s')}) | {off('forward_s')} | {off('backward_s')} | {slowdown} | {exposed} "
            f"| {100 * (moved[0] / moved[1] - 1):+.1f} % | {100 * estimate:.1f} % | {cold} "
            f"| {seconds['cycle'] / seconds['cold']:.0f} |")


def main():
    os.environ.setdefault("WEFT_CONFIGS", str(ROOT / "configs"))
    weft = os.environ.get("WEFT", str(ROOT / "build" / "release" / "cli" / "weft"))
    print("| | iteration | forward | backward | slowdown | exposed, of the iteration | HBM bytes | estimate | `cycle`, cold, warm "
          "| times faster |\n|---|---|---|---|---|---|---|---|---|---|", flush=True)
    for name, config in ROWS.items():
        if len(sys.argv) > 1 and not any(wanted in name for wanted in sys.argv[1:]):
            continue
        folder = pathlib.Path(tempfile.mkdtemp())
        shutil.copy(weft, folder / "weft")  # a build meanwhile would make another program of it
        seconds = {}
        own = str(folder / "weft")
        cycle, seconds["cycle"] = run(own, config, "cycle", folder, "")
        sampled, seconds["cold"] = run(own, config, "sampled", folder, folder / "regimes.sqlite")
        _, seconds["warm"] = run(own, config, "sampled", folder, folder / "regimes.sqlite")
        print(compare(name, cycle, sampled, seconds), flush=True)
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
