#!/usr/bin/env python3
"""Prints what a file of weft_gpu_probe holds: python3 bench/gpu/summary.py overlap.json"""

import json
import sys

COLUMNS = ["spin_16", "spin_16_0KB", "copy_16_100GBps", "copy_16_400GBps", "copy_16_max", "copy_32_max",
           "l2_copy_16_max", "reduce_16_max", "copy_engine"]


def pairs(document):
    beside = {(p["victim"], p["aggressor"]): p for p in document["pairs"]}
    rates = [a for a in document["aggressors"] if a["name"] in COLUMNS]
    for a in rates:
        print(f"{a['name']:18} alone reads {a['alone']['read_GBps']:7.1f}, writes {a['alone']['written_GBps']:7.1f} GB/s,"
              f" {a['registers']} registers")
    print(f"\n{'beside over alone':34}{'alone us':>10}" + "".join(f"{name[:15]:>16}" for name in COLUMNS))
    for victim in document["victims"]:
        row = [beside.get((victim["name"], name)) for name in COLUMNS]
        if not any(row):
            continue
        shares = [f"{p['beside_us']['median'] / p['alone_us']['median']:16.3f}" if p else f"{'':16}" for p in row]
        print(f"{victim['name'][:33]:34}{victim['alone_us']['median']:10.1f}" + "".join(shares))


def units(document):
    print("\nresident blocks: units they are on, most blocks of a grid at once (threads, shared memory, cluster)")
    for u in document["units"]:
        print(f"{u['resident_blocks']:3} {u['units_of_aggressor']:4} {u['most_blocks_at_once']:4}"
              f"   ({u['threads']}, {u['shared_memory_bytes']}, {u['cluster']})")


def drain(document):
    print("\nshort operations: us by events, from one to the next, the same in a graph,\ngap between kernels, inside, by CUPTI")
    for d in document["drain"]:
        def value(key):
            v = d.get(key)
            return "" if v is None else f"{v['median'] if isinstance(v, dict) else v:8.2f}"
        print(f"{d['operation']:22}{str(d['aggressor']):26}{d.get('aggressor_written_GBps', 0):8.1f} GB/s"
              + "".join(f"{value(key):>9}" for key in ("event_us", "period_us", "graph_period_us", "gap_us", "inside_us", "cupti_us")))


def cache(document):
    parts = document.get("cache", {})
    for r in parts.get("same_lines", []) + parts.get("footprints", []):
        print(f"{r['operation']:6}{r['bytes'] / 2**20:6.1f} MiB by {r['blocks']} units, {r['readers']:3} on the same lines"
              f" (clusters of {r['cluster']}, {r['lag_bytes'] >> 10} KiB behind), rotation {r['rotation']}:"
              f" {r['GBps']:7.0f} GB/s")
    for r in parts.get("adds", []):
        print(f"add {r['bytes'] >> 20:3} MiB beside {r['aggressor']}: {r['us']['median']:.2f} us")


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        document = json.load(file)
    print(json.dumps(document["machine"]))
    units(document)
    drain(document)
    cache(document)
    pairs(document)
    described = sum(1 for v in document["victims"] if v.get("kernels"))
    print(f"\n{len(document['pairs'])} pairs, {len(document['victims'])} victims, {described} described, left out: "
          + (", ".join(sorted({v['victim'] for v in document["left_out"]})) or "none"))


if __name__ == "__main__":
    main()
