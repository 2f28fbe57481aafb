#!/usr/bin/env python3
"""bench/gpu/simulate_other_gpu.py on a made-up measurement (no GPU measured it)."""
import copy
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
from simulate_pairs_test import made_up  # noqa: E402

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "bench/gpu/simulate_other_gpu.py"


class SimulateOtherGpu(unittest.TestCase):
    def test_holds_the_same_kernels_against_the_other_measurement(self):
        recorded, other = made_up(), made_up()
        for measured in recorded, other:  # more than an L2 holds
            add = measured["victims"][1]
            add["operators"][0]["inputs"] = [[1 << 25], [1 << 25]]
            add["kernels"][0].update(grid=[65536, 1, 1], alone_us=95.0)
        further = copy.deepcopy(recorded["victims"][1])
        further["name"] = "further"
        recorded["victims"].append(further)
        other["victims"].append(copy.deepcopy(further))
        other["victims"][2]["kernels"][0]["grid"] = [4096, 1, 1]  # another kernel
        other["victims"][1]["kernels"][0]["alone_us"] = 140.0
        with tempfile.TemporaryDirectory() as folder:
            files = [pathlib.Path(folder) / name for name in ("recorded.json", "other.json")]
            for file, measured in zip(files, (recorded, other)):
                file.write_text(json.dumps(measured))
            command = [sys.executable, "-B", str(SCRIPT), *map(str, files), "--recorded-on", "hgx-h200", "-o", folder,
                       "--weft", os.environ["WEFT_BINARY"]]
            ran = subprocess.run([*command, "--system", "hgx-h100"], capture_output=True, text=True)
            self.assertEqual(ran.returncode, 0, ran.stderr)
            self.assertIn("2 of 3 victims have the same kernels on both", ran.stdout)
            with open(pathlib.Path(folder) / "kernels.csv", newline="") as file:
                rows = {row["victim"]: row for row in csv.DictReader(file)}
            self.assertEqual(set(rows), {"gemm_one_wave", "add"})
            self.assertEqual(float(rows["add"]["measured_us"]), 140.0)
            # One streams, by 4.8 TB/s or 3.35; the other computes.
            self.assertAlmostEqual(float(rows["add"]["simulated_us"]), 95.0 * 4.8 / 3.35, delta=8)
            self.assertAlmostEqual(float(rows["gemm_one_wave"]["simulated_us"]), 30.0, delta=1)
            refused = subprocess.run([*command, "--system", "nothing"], capture_output=True, text=True)
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn("nothing", refused.stderr)


if __name__ == "__main__":
    unittest.main()
