#!/usr/bin/env python3
"""Kernels of one GPU foretold on another: fits the victims of a probe's measurement ("weft-overlap/1") to their times
alone on the GPU that was measured, simulates them on another one, and holds that against what the probe measured there.

Victims for which the libraries chose other kernels on the other GPU are left out. Of the other measurement nothing is
used but for the comparison. Makes kernels.csv, one row a victim, and prints their times by class.
"""
import argparse
import concurrent.futures
import csv
import json
import pathlib
import statistics
import sys

from simulate_pairs import Failed, kineto_of, run


def victims_of(file):
    measured = json.loads(pathlib.Path(file).read_text())
    if measured.get("schema") != "weft-overlap/1":
        sys.exit(f"{file}: expected schema weft-overlap/1, got {measured.get('schema')}")
    return {victim["name"]: victim for victim in measured["victims"]}


def kernels_of(victim):
    return [(kernel["name"], kernel["grid"], kernel["block"]) for kernel in victim["kernels"]]


def time_of(victim):
    return sum(kernel["alone_us"] for kernel in victim["kernels"])


def simulated_us(victim, options):
    """Of the last repetition of its kernels, alone on the other GPU."""
    folder = pathlib.Path(options.output).absolute() / victim["name"]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kineto.json").write_text(json.dumps(kineto_of(victim)))
    run([options.weft, "import", "kineto", folder / "kineto.json", "-o", folder / "trace.json.gz"])
    (folder / "run.json").write_text(json.dumps({
        "system": options.system,
        "workload": {"trace": str(folder / "trace.json.gz"), "recorded_on": options.recorded_on}}))
    run([options.weft, "run", folder / "run.json", "-o", folder / "out"])
    with open(folder / "out" / "kernels.csv", newline="") as file:
        alone = [float(row["isolated_s"]) * 1e6 for row in csv.DictReader(file) if row["isolated_s"]]
    return sum(alone[-len(victim["kernels"]):])


def table(rows):
    """By class and over all: times of the other GPU over those of the recorded one, measured and simulated."""
    classes = {}
    for row in rows:
        classes.setdefault(row["class"], []).append(row)
    for name, of in [*sorted(classes.items()), ("all", rows)]:
        recorded, measured, simulated = (sum(row[key] for row in of) for key in
                                         ("recorded_us", "measured_us", "simulated_us"))
        errors = [abs(row["simulated_us"] / row["measured_us"] - 1) for row in of]
        yield name, len(of), measured / recorded, simulated / recorded, statistics.mean(errors), max(errors)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("recorded", help="what weft_gpu_probe wrote on the recorded GPU")
    parser.add_argument("other", help="and on the other one")
    parser.add_argument("--recorded-on", required=True, metavar="SYSTEM")
    parser.add_argument("--system", required=True, help="with the other GPU")
    parser.add_argument("-o", "--output", required=True, help="folder")
    parser.add_argument("--weft", default=pathlib.Path(__file__).resolve().parents[2] / "build/release/cli/weft")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    options = parser.parse_args()
    recorded, other = victims_of(options.recorded), victims_of(options.other)
    same = [name for name in recorded if name in other and kernels_of(recorded[name]) == kernels_of(other[name])]
    if not same:
        sys.exit("expected victims of the same kernels, got none")
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        try:
            times = list(pool.map(lambda name: simulated_us(recorded[name], options), same))
        except Failed as failed:
            sys.exit(str(failed))
    rows = [{"victim": name, "class": recorded[name]["class"], "recorded_us": time_of(recorded[name]),
             "measured_us": time_of(other[name]), "simulated_us": time} for name, time in zip(same, times)]
    with open(pathlib.Path(options.output) / "kernels.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    print(f"{len(same)} of {len(recorded)} victims have the same kernels on both")
    print(f"{'class':24} victims  measured  simulated  mean error    worst")
    for name, count, measured, simulated, mean, worst in table(rows):
        print(f"{name:24} {count:7} {measured:9.3f} {simulated:10.3f} {100 * mean:9.1f} % {100 * worst:6.1f} %")


if __name__ == "__main__":
    main()
