"""Folders as weft writes them, made up: what pages must show is known, and their sizes are free."""

import csv
import json
import math
import pathlib


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
