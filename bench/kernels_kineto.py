#!/usr/bin/env python3
"""kernels_kineto.py KERNELS DISTINCT OUT [NOISE]: a Kineto trace of one step, DISTINCT elementwise kernels again and again.

They differ in their grids: 128 to 4096 blocks of 256 threads, 5 to 20 us; with NOISE, the times of each scatter by this
share of them (one standard deviation, always the same ones).
"""
import json
import random
import sys

kernels, distinct, out = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
noise, scatter = float(sys.argv[4]) if len(sys.argv) > 4 else 0, random.Random(1)
events, at = [], 10.0
for i in range(kernels):
    part = (i % distinct) / max(distinct - 1, 1)
    blocks, lasts = 128 + round(3968 * part), round((5 + 15 * part) * (1 + noise * scatter.gauss(0, 1)), 3)
    name = "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>"
    events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": at - 8,
                   "dur": 2, "args": {"correlation": i + 1}})
    events.append({"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": round(at, 3), "dur": lasts,
                   "args": {"device": 0, "stream": 7, "correlation": i + 1, "registers per thread": 32,
                            "shared memory": 0, "grid": [blocks, 1, 1], "block": [256, 1, 1]}})
    at += lasts + 1
events.append({"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 1, "tid": 1, "ts": 0.0, "dur": at, "args": {}})
with open(out, "w", encoding="utf-8") as f:
    json.dump({"schemaVersion": 1, "distributedInfo": {"rank": 0, "world_size": 1}, "traceEvents": events}, f)
