"""Folders as weft writes them, made up: what pages must show is known, and their sizes are free."""

import csv
import json
import math
import pathlib
import subprocess


def sweep(folder, gpus=(2, 4, 8, 16), sizes=10, algorithms=("ring", "tree", "in_switch"), bandwidths=(25, 50, 100, 200)):
    """A sweep of GPUs x bytes x algorithm x bandwidth; every point of 2 GPUs by tree failed. The first point has a page."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    points = 0
    with open(folder / "results.csv", "w", newline="") as out:
        table = csv.writer(out, lineterminator="\n")
        table.writerow(["point", "gpus", "workload.bytes", "all_reduce.algorithm", "network.link.bandwidth_GBps", "seed",
                        "repetition", "status", "reason", "iteration.time_s", "busbw_GBps", "hbm_communication_bytes"])
        for gpu in gpus:
            for k in range(sizes):
                for algorithm in algorithms:
                    for bandwidth in bandwidths:
                        size = round(2 ** (10 + 18 * k / max(1, sizes - 1)))
                        row = [points, gpu, size, algorithm, bandwidth, 1, 0]
                        points += 1
                        if gpu == 2 and algorithm == "tree":
                            table.writerow(row + ["failed", "expected at least 4 GPUs, got 2", "", "", ""])
                            continue
                        moved = size * {"ring": 2 * (gpu - 1) / gpu, "tree": 2.2, "in_switch": 1.1}[algorithm]
                        steps = {"ring": 2 * (gpu - 1), "tree": 2 * math.log2(gpu), "in_switch": 2}[algorithm]
                        seconds = 1.3e-6 * steps + moved / (bandwidth * 1e9)
                        table.writerow(row + ["ok", "", seconds, 2 * (gpu - 1) / gpu * size / seconds / 1e9, moved])
    keys = [f"{i:016x}" for i in range(points)]
    (folder / "manifest.json").write_text(json.dumps({"metrics": [], "points": [{"key": key} for key in keys]}))
    page = folder / "points" / keys[0] / "report.html"
    page.parent.mkdir(parents=True)
    page.write_text("<!doctype html><title>the point's page</title>")
    return points


def run(folder, weft, kernels=2000, gpus=4, periods=500):
    """A training step of `kernels` kernels and 5 buckets over `gpus` GPUs, beside a network that really ran a collective.
    Every tenth kernel takes twice as long as alone, half of that because of HBM."""
    folder = pathlib.Path(folder)
    config = folder.with_suffix(".json")
    folder.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(json.dumps({"system": "hgx-h100", "gpus": gpus,
                                  "workload": {"collective": "all_reduce", "bytes": 65536}}))
    subprocess.run([weft, "run", str(config), "--no-progress", "-o", str(folder)], check=True, capture_output=True)
    (folder / "report.html").unlink()
    end = _kernels(folder / "kernels.csv", kernels // gpus, gpus)
    result = json.loads((folder / "result.json").read_text())
    alone = end / 3
    result["iteration"].update(time_s=end, forward_s=end / 3, backward_s=alone * 1.1, backward_isolated_s=alone,
                               backward_slowdown=1.1, communication_s=end / 4, communication_exposed_s=end / 20,
                               communication_overlapped_s=end / 5, optimizer_s=end / 10, idle_s=end / 20)
    result["slowdown_by_cause"] = {"compute_units": alone * 0.04, "hbm": alone * 0.03, "cache": alone * 0.02, "links": alone * 0.01}
    first = result["collectives"][0]
    result["collectives"] = [dict(first, name=f"bucket.{k}", bytes=2 ** (20 + k), algorithm="ring" if k < 3 else "in_switch",
                                  busbw_GBps=100 + 30 * k) for k in range(5)]
    for k, link in enumerate(result["links"]):
        link.update(busy_fraction=0.1 + 0.7 * (k % 7) / 7, peak_fraction=0.95, bytes=10 ** 8 * (1 + k % 7))
    (folder / "result.json").write_text(json.dumps(result))
    _counters(folder / "counters.csv", end, gpus, periods, result["links"])


def _kernels(file, each, gpus):
    """Kernels one after another on stream 0, a third of the time beside collectives of stream 1; returns the end."""
    with open(file, "w", newline="") as out:
        table = csv.writer(out, lineterminator="\n")
        table.writerow("gpu,stream,name,phase,start_s,end_s,isolated_s,slowdown,iteration,op,kind,cause_compute_units_s,"
                       "cause_hbm_s,cause_cache_s,cause_links_s,beside_waiting_s,beside_moving_s".split(","))
        for gpu in range(gpus):
            now = 0.0
            rows = []
            for k in range(each):
                phase = ["forward", "backward", "backward", "optimizer"][4 * k // each]
                alone = 1e-6 * (5 + 7 * (k % 11))
                lost = alone if k % 10 == 0 else 0.0
                rows.append([gpu, 0, f"layer{k % 40}_gemm_128x{64 * (1 + k % 3)}", phase, now, now + alone + lost, alone, "", 0, k,
                             "compute", 0.5 * lost, 0.5 * lost, 0, 0, 0, 0])
                now += alone + lost + 0.2e-6
            for k in range(5):
                begin = now * (0.3 + 0.1 * k)
                rows.append([gpu, 1, f"bucket.{k}", "backward", begin, begin + 0.08 * now, "", "", 0, each + k, "communication",
                             0, 0, 0, 0, 0, 0])
            table.writerows(rows)
    return now


def _counters(file, end, gpus, periods, links):
    wave = lambda i, k, most: most * (0.5 + 0.45 * math.sin(0.05 * i + k) * math.cos(0.31 * i))
    with open(file, "w", newline="") as out:
        table = csv.writer(out, lineterminator="\n")
        table.writerow(["name", "kind", "unit", "gpu", "limit", "period_s", "values"])
        add = lambda name, kind, unit, gpu, limit, values: table.writerow(
            [name, kind, unit, gpu, limit, end / periods, " ".join(f"{v:.6g}" for v in values)])
        for gpu in range(gpus):
            for k, (name, most) in enumerate([("HBM read", 2000), ("HBM write", 1100), ("HBM communication", 400)]):
                add(name, "hbm", "GB/s", gpu, 3350, [wave(i, k, most) for i in range(periods)])
            for name, most in (("parameters", 8), ("gradients", 8), ("optimizer", 16)):
                add("memory " + name, "memory", "GiB", gpu, 80, [most] * periods)
            add("memory activations", "memory", "GiB", gpu, 80, [40 * min(1, 3 * i / periods, 1.5 - 1.5 * i / periods) for i in range(periods)])
        for k, name in enumerate(dict.fromkeys(link["name"].rsplit(".", 1)[0] for link in links)):
            gpu = int("".join(c for c in name.replace("switch", "x").split("gpu")[1].split("-")[0] if c.isdigit()))
            add(name, "link", "%", gpu, 100, [wave(i, k, 90) for i in range(periods)])
