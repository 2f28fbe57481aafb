#!/usr/bin/env python3
"""bench/gpu/simulate_pairs.py on a made-up measurement of two victims (no GPU measured it)."""
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "bench/gpu/simulate_pairs.py"
sys.path.insert(0, str(SCRIPT.parent))
sys.dont_write_bytecode = True
import simulate_pairs  # noqa: E402


def once(us):
    return {"n": 5, "median": us, "q1": us, "q3": us, "min": us}


def aggressor(name, kind, rate=None, **more):
    return {"name": name, "kind": kind, "blocks": 16, "threads": 512, "registers": 96, "shared_memory_bytes": 0,
            "buffer_bytes": 64 << 20, "chunk_bytes": 16384, "rate_GBps_asked": rate, **more}


def made_up():
    gemm = {"name": "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1", "operator": 0,
            "grid": [132, 1, 1], "block": [384, 1, 1], "registers": 168, "shared_memory_bytes": 200000,
            "alone_us": 30.0}
    add = {"name": "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>", "operator": 0,
           "grid": [8192, 1, 1], "block": [128, 1, 1], "registers": 32, "shared_memory_bytes": 0, "alone_us": 14.0}
    matrix = {"name": "aten::mm", "inputs": [[1408, 1024], [1024, 1536]], "type": "c10::BFloat16"}
    vector = {"name": "aten::add", "inputs": [[4194304], [4194304]], "type": "float"}
    aggressors = [aggressor("spin_16", "spin"), aggressor("copy_16_100", "copy", 100.0), aggressor("engine", "copy_engine")]
    pairs = [{"victim": victim, "aggressor": a["name"], "alone_us": once(alone), "beside_us": once(alone * 1.5),
              "aggressor_written_GBps": 100.0}
             for victim, alone in (("gemm_one_wave", 30.0), ("add", 14.0)) for a in aggressors]
    return {"schema": "weft-overlap/1",
            "victims": [
                {"name": "gemm_one_wave", "class": "gemm", "half": "fit", "operators": [matrix], "kernels": [gemm]},
                {"name": "add", "class": "elementwise", "half": "predict", "operators": [vector], "kernels": [add]}],
            "aggressors": aggressors, "pairs": pairs}


class SimulatePairs(unittest.TestCase):
    def test_simulates_each_pair_and_goes_on_where_it_was(self):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "out"
            measured = pathlib.Path(folder) / "measured.json"
            measured.write_text(json.dumps(made_up()))
            command = [sys.executable, "-B", str(SCRIPT), str(measured), "-o", str(out), "--weft", os.environ["WEFT_BINARY"]]
            first = subprocess.run(command, capture_output=True, text=True)
            self.assertEqual(first.returncode, 0, first.stderr)
            self.assertIn("engine: copy_engine is no kernel: not simulated", first.stderr)
            with open(out / "pairs.csv", newline="") as file:
                rows = {(row["victim"], row["aggressor"]): row for row in csv.DictReader(file)}
            self.assertEqual(len(rows), 4)
            for (victim, _), row in rows.items():
                self.assertAlmostEqual(float(row["measured_slowdown"]), 1.5)
                alone = {"gemm_one_wave": 30.0, "add": 14.0}[victim]
                self.assertAlmostEqual(float(row["simulated_alone_us"]), alone, delta=0.02 * alone)
            # As many blocks as units, one a unit: a second wave beside blocks that only hold 16 of them.
            self.assertGreater(float(rows["gemm_one_wave", "spin_16"]["simulated_slowdown"]), 1.7)
            self.assertLess(float(rows["add", "spin_16"]["simulated_slowdown"]), 1.2)
            self.assertAlmostEqual(float(rows["add", "copy_16_100"]["simulated_stored_GBps"]), 100, delta=10)
            self.assertEqual(set(json.loads((out / "summary.json").read_text())), {"fit", "predict"})
            written = (out / "runs/add/spin_16/result.json").stat().st_mtime_ns
            again = subprocess.run(command, capture_output=True, text=True)
            self.assertEqual(again.stdout, first.stdout)
            self.assertEqual((out / "runs/add/spin_16/result.json").stat().st_mtime_ns, written)

    def test_refuses_another_schema(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "measured.json"
            file.write_text('{"schema": "other/1"}')
            ran = subprocess.run([sys.executable, "-B", str(SCRIPT), str(file), "-o", folder], capture_output=True, text=True)
            self.assertNotEqual(ran.returncode, 0)
            self.assertIn("expected schema weft-overlap/1, got other/1", ran.stderr)

    def test_ranks_share_places_where_values_are_equal(self):
        self.assertEqual(simulate_pairs.ranks([3.0, 1.0, 3.0, 2.0]), [2.5, 0.0, 2.5, 1.0])
        self.assertAlmostEqual(simulate_pairs.rank_correlation([1, 2, 3, 4], [10, 20, 40, 30]), 0.8)
        self.assertIsNone(simulate_pairs.rank_correlation([1, 1, 1], [1, 2, 3]))


if __name__ == "__main__":
    unittest.main()
