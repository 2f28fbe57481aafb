#!/usr/bin/env python3
"""What weft says of the pairs that the GPU probe measured ("weft-overlap/1"): simulates each, and holds it against the
measurement.

Each victim becomes a trace of its kernels, as they were recorded by themselves, and its demands are fitted to those
times alone (weft calibrate). Each aggressor becomes blocks beside it ("beside" of the configuration). No time of a pair
is used for anything but the comparison. An interrupted run goes on where it was.
"""
import argparse
import concurrent.futures
import csv
import json
import pathlib
import re
import statistics
import subprocess
import sys

REPETITIONS = 4  # of a victim; the first one meets an empty L2 and is left out
LAUNCH_US = 1.0  # from one launch to the next
LEAD_US = 20.0   # of the last launch before the first kernel runs


class Failed(Exception):
    pass


def run(arguments):
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True)
    if done.returncode != 0:
        raise Failed(f"{' '.join(map(str, arguments))}: {done.stderr.strip().splitlines()[-1:]}")


def kineto_of(victim):
    """Its kernels in a row, REPETITIONS times, all launched before the first one runs: a Kineto file."""
    events = []
    launch, start, number = 0.0, LEAD_US + LAUNCH_US * REPETITIONS * len(victim["kernels"]), 0
    for _ in range(REPETITIONS):
        for kernel in victim["kernels"]:
            number += 1
            operator = victim["operators"][kernel["operator"]]
            events.append({"ph": "X", "cat": "cpu_op", "name": operator["name"], "pid": 0, "tid": 1, "ts": launch,
                           "dur": 0.9 * LAUNCH_US, "args": {"Input Dims": operator["inputs"],
                                                "Input type": [operator["type"]] * len(operator["inputs"])}})
            events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 0, "tid": 1,
                           "ts": launch + 0.3 * LAUNCH_US, "dur": 0.3 * LAUNCH_US, "args": {"correlation": number}})
            events.append({"ph": "X", "cat": "kernel", "name": kernel["name"], "pid": 0, "tid": 7, "ts": start,
                           "dur": kernel["alone_us"],
                           "args": {"device": 0, "stream": 7, "correlation": number, "grid": kernel["grid"],
                                    "block": kernel["block"], "cluster": kernel.get("cluster", [1, 1, 1]),
                                    "registers per thread": kernel["registers"],
                                    "shared memory": kernel["shared_memory_bytes"]}})
            launch += LAUNCH_US
            start += kernel["alone_us"] + 1
    return {"schemaVersion": 1, "traceEvents": events}


def beside_of(aggressor):
    """The entry of "beside", or why there is none."""
    works = {"spin": "spin", "copy": "copy", "l2_copy": "copy", "reduce": "reduce"}
    if aggressor["kind"] not in works:
        return None, f"{aggressor['kind']} is no kernel: not simulated"
    entry = {"work": works[aggressor["kind"]]}
    for key in ("blocks", "threads", "registers", "shared_memory_bytes"):
        entry[key] = aggressor[key]
    if entry["work"] != "spin":
        entry["buffer_MiB"] = aggressor["buffer_bytes"] / 2**20
        entry["chunk_bytes"] = aggressor["chunk_bytes"]
        if aggressor["rate_GBps_asked"] is not None:
            entry["rate_GBps"] = aggressor["rate_GBps_asked"]
    return entry, None


def repetition_us(folder, kernels):
    """The median over repetitions but the first, from the start of the first kernel to the end of the last."""
    with open(folder / "kernels.csv", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["kind"] == "compute"]
    times = []
    for first in range(kernels, len(rows) - kernels + 1, kernels):
        times.append(float(rows[first + kernels - 1]["end_s"]) - float(rows[first]["start_s"]))
    return statistics.median(times) * 1e6


class Simulation:
    def __init__(self, options):
        self.weft, self.system, self.sets = options.weft, options.system, options.set
        self.out = pathlib.Path(options.output)

    def prepare(self, victim):
        folder = self.out / "victims" / victim["name"]
        if (folder / "demands.json.gz").exists():
            return
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "kineto.json").write_text(json.dumps(kineto_of(victim)))
        run([self.weft, "import", "kineto", folder / "kineto.json", "-o", folder / "trace.json.gz"])
        sets = [word for value in self.sets for word in ("--set", value)]
        run([self.weft, "calibrate", folder / "trace.json.gz", "--system", self.system, *sets,
             "-o", folder / "demands.json.gz"])

    def pair(self, victim, name, beside):
        """Time of a repetition, us, and what the aggressor stored, GB/s."""
        folder = self.out / "runs" / victim["name"] / name
        if not (folder / "result.json").exists():
            trace = (self.out / "victims" / victim["name"]).absolute()
            config = {"system": self.system, "gpus": 1, "beside": beside,
                      "workload": {"trace": str(trace / "trace.json.gz"), "demands": str(trace / "demands.json.gz")}}
            folder.parent.mkdir(parents=True, exist_ok=True)
            file = folder.parent / f"{name}.json"
            file.write_text(json.dumps(config, indent=1))
            run([self.weft, "run", file, *[w for value in self.sets for w in ("--set", value)], "-o", folder])
        rows = json.loads((folder / "result.json").read_text())["gpus"][0].get("beside", [])
        return repetition_us(folder, len(victim["kernels"])), rows[0]["stored_GBps"] if rows else 0.0


def ranks(values):
    order = sorted(range(len(values)), key=lambda i: values[i])
    found = [0.0] * len(values)
    at = 0
    while at < len(order):  # equal values share a rank
        end = at
        while end + 1 < len(order) and values[order[end + 1]] == values[order[at]]:
            end += 1
        for i in range(at, end + 1):
            found[order[i]] = (at + end) / 2
        at = end + 1
    return found


def rank_correlation(a, b):
    """Spearman's; None for fewer than three values or where all are equal."""
    if len(a) < 3 or len(set(a)) == 1 or len(set(b)) == 1:
        return None
    return statistics.correlation(ranks(a), ranks(b))


def summary_of(rows):
    """Of some pairs: slowdowns over all their time, the mean error of a pair, and the order of victims."""
    alone = sum(row["measured_alone_us"] for row in rows)
    beside = sum(row["measured_beside_us"] for row in rows)
    simulated = sum(row["simulated_slowdown"] * row["measured_alone_us"] for row in rows)
    victims = sorted({row["victim"] for row in rows})
    mean = {key: [statistics.mean(row[key] for row in rows if row["victim"] == victim) for victim in victims]
            for key in ("measured_slowdown", "simulated_slowdown")}
    errors = [abs(row["simulated_slowdown"] - row["measured_slowdown"]) for row in rows]
    return {"pairs": len(rows), "victims": len(victims), "measured_slowdown": beside / alone,
            "simulated_slowdown": simulated / alone, "mean_error_points": 100 * statistics.mean(errors),
            "worst_error_points": 100 * max(errors),
            "rank_correlation": rank_correlation(mean["measured_slowdown"], mean["simulated_slowdown"])}


def simulate(measured, options):
    simulation = Simulation(options)
    victims = {v["name"]: v for v in measured["victims"] if v.get("kernels") and re.search(options.victim, v["name"])}
    aggressors = {a["name"]: a for a in measured["aggressors"] if re.search(options.aggressor, a["name"])}
    pairs = [p for p in measured["pairs"] if p["victim"] in victims and p["aggressor"] in aggressors]
    entries = {}
    for name, aggressor in aggressors.items():
        entries[name], why = beside_of(aggressor)
        if why and any(p["aggressor"] == name for p in pairs):
            print(f"{name}: {why}", file=sys.stderr)
    pairs = [p for p in pairs if entries[p["aggressor"]] is not None]
    used = [victims[name] for name in sorted({p["victim"] for p in pairs})]
    rows, failures = [], []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        def attempt(function, *arguments):
            try:
                return function(*arguments)
            except (Failed, OSError, statistics.StatisticsError) as error:
                failures.append(str(error))
                return None

        list(pool.map(lambda v: attempt(simulation.prepare, v), used))
        alone = dict(zip([v["name"] for v in used],
                         pool.map(lambda v: attempt(simulation.pair, v, "alone", []), used)))
        runs = pool.map(lambda p: attempt(simulation.pair, victims[p["victim"]], p["aggressor"],
                                          [entries[p["aggressor"]]]), pairs)
        for done, (pair, beside) in enumerate(zip(pairs, runs), 1):
            if sys.stderr.isatty():
                print(f"\r{done} of {len(pairs)} pairs", end="", file=sys.stderr)
            base = alone[pair["victim"]]
            if beside is None or base is None:
                continue
            victim = victims[pair["victim"]]
            rows.append({"victim": pair["victim"], "class": victim["class"], "half": victim["half"],
                         "aggressor": pair["aggressor"],
                         "measured_alone_us": pair["alone_us"]["median"],
                         "measured_beside_us": pair["beside_us"]["median"],
                         "measured_slowdown": pair["beside_us"]["median"] / pair["alone_us"]["median"],
                         "simulated_alone_us": base[0], "simulated_beside_us": beside[0],
                         "simulated_slowdown": beside[0] / base[0],
                         "measured_stored_GBps": pair["aggressor_written_GBps"],
                         "simulated_stored_GBps": beside[1]})
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return rows, failures


def report(rows, out):
    with open(out / "pairs.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    summary = {half: summary_of([row for row in rows if row["half"] == half])
               for half in ("fit", "predict") if any(row["half"] == half for row in rows)}
    (out / "summary.json").write_text(json.dumps(summary, indent=2) + "\n")
    print("| half | pairs | measured | simulated | mean error, points | worst | order of victims |\n|---|---|---|---|---|---|---|")
    for half, s in summary.items():
        order = "" if s["rank_correlation"] is None else f"{s['rank_correlation']:.2f}"
        print(f"| {half} | {s['pairs']} | {s['measured_slowdown']:.3f} | {s['simulated_slowdown']:.3f} | "
              f"{s['mean_error_points']:.1f} | {s['worst_error_points']:.1f} | {order} |")
    print("\n| victim | aggressor | measured | simulated | stored, GB/s | simulated |\n|---|---|---|---|---|---|")
    for row in rows:
        print(f"| {row['victim']} | {row['aggressor']} | {row['measured_slowdown']:.3f} | "
              f"{row['simulated_slowdown']:.3f} | {row['measured_stored_GBps']:.0f} | {row['simulated_stored_GBps']:.0f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("measured", help="what weft_gpu_probe wrote")
    parser.add_argument("-o", "--output", required=True, help="folder: victims/, runs/, pairs.csv, summary.json")
    parser.add_argument("--weft", default=pathlib.Path(__file__).resolve().parents[2] / "build/release/cli/weft")
    parser.add_argument("--system", default="hgx-h200")
    parser.add_argument("--set", action="append", default=[], metavar="PATH=VALUE", help="as of weft run, for all")
    parser.add_argument("--victim", default="", metavar="REGEX")
    parser.add_argument("--aggressor", default="", metavar="REGEX")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    options = parser.parse_args()
    measured = json.loads(pathlib.Path(options.measured).read_text())
    if measured.get("schema") != "weft-overlap/1":
        sys.exit(f"{options.measured}: expected schema weft-overlap/1, got {measured.get('schema')}")
    pathlib.Path(options.output).mkdir(parents=True, exist_ok=True)
    rows, failures = simulate(measured, options)
    for failure in failures:
        print(f"failed: {failure}", file=sys.stderr)
    if not rows:
        sys.exit("no pair was simulated")
    report(rows, pathlib.Path(options.output))
    if failures:
        sys.exit(75)


if __name__ == "__main__":
    main()
