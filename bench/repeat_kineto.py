#!/usr/bin/env python3
"""repeat_kineto.py FILE GIGABYTES OUT: a long Kineto trace from a short one, its events again and again.

Each turn is later by the length of the trace, with correlations, ids and ProfilerStep numbers of its own.
"""
import gzip
import json
import sys

source, gigabytes, out = sys.argv[1], float(sys.argv[2]), sys.argv[3]
with (gzip.open if source.endswith(".gz") else open)(source, "rt") as f:
    trace = json.load(f)
events = trace.pop("traceEvents")
timed = [e for e in events if "dur" in e]
length = max(e["ts"] + e["dur"] for e in timed) - min(e["ts"] for e in timed) + 1000
ids = ("correlation", "External id", "wait_on_cuda_event_record_corr_id")
numbered = [(e["args"], k) for e in timed for k in ids if 0 < e.get("args", {}).get(k, 0) < 2**31]
id_step = 1 + max(args[k] for args, k in numbered)
steps = [e for e in timed if e["name"].startswith("ProfilerStep#")]
numbers = [int(e["name"].split("#")[1]) for e in steps]
step_count = max(numbers) - min(numbers) + 1 if steps else 0

with open(out, "w") as f:
    f.write(json.dumps(trace)[:-1] + ', "traceEvents": [\n')
    turn = 0
    while f.tell() < gigabytes * 1e9:
        if turn:
            for e in timed:
                e["ts"] += length
            for args, k in numbered:
                args[k] += id_step
            for e, number in zip(steps, numbers):
                e["name"] = f"ProfilerStep#{number + turn * step_count}"
        f.write((",\n" if turn else "") + ",\n".join(json.dumps(e) for e in events))
        turn += 1
    f.write("\n]}\n")
print(f"{turn} turns", file=sys.stderr)
