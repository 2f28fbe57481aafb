#!/usr/bin/env python3
"""Draws the surface that weft_gpu_probe measured: slowdown of each victim over the aggressor's blocks, and over what it
writes, a line for each number of blocks. Needs gnuplot.

    python3 bench/gpu/plot_overlap.py traces/measured/h200_overlap.json docs/images/h200-overlap.svg
"""
import json
import re
import subprocess
import sys

BLOCKS = [1, 2, 4, 8, 16, 24, 32, 64]
SHADES = {4: "#9ecae1", 8: "#6baed6", 16: "#3182bd", 32: "#08519c", 64: "#08306b"}


def slowdown(pair):
    return pair["beside_us"]["median"] / pair["alone_us"]["median"]


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        document = json.load(file)
    pairs = {}
    for pair in document["pairs"]:
        pairs.setdefault(pair["victim"], {})[pair["aggressor"]] = pair
    surface = [name for name, beside in pairs.items() if "spin_64" in beside and "copy_64_50GBps" in beside]
    out = [f"set terminal svg size 1500,{60 + 230 * len(surface) // 2} font 'sans-serif,11' background 'white'",
           f"set output '{sys.argv[2]}'", f"set multiplot layout {(len(surface) + 1) // 2},4",
           "set grid ytics lc '#dddddd'; set yrange [0.9:*]; set offsets 0, 0, graph 0.05, 0"]
    plain = str.maketrans("_", " ")
    for index, name in enumerate(surface):
        beside = pairs[name]
        out.append(f"set title '{name.translate(plain)}'; set logscale x 2; set xtics (1, 2, 4, 8, 16, 32, 64)")
        out.append(f"set ylabel 'slowdown'; set xlabel '{'blocks' if index >= len(surface) - 2 else ''}'")
        kinds = [("spin", "spin_{}", "#777777"), ("copy", "copy_{}_max", "#08519c"), ("reduce", "reduce_{}_max", "#d62728")]
        for kind, pattern, _ in kinds:
            out.append(f"${kind} << E")
            out += [f"{n} {slowdown(beside[pattern.format(n)])}" for n in BLOCKS if pattern.format(n) in beside]
            out.append("E")
        key = "set key top left samplen 1" if index == 0 else "unset key"
        title = {"spin": "holds its place", "copy": "copies as fast as it can", "reduce": "reduces so"}
        lines = ", ".join(f"${kind} with linespoints lw 2 pt 7 ps 0.4 lc '{color}' title '{title[kind]}'"
                          for kind, _, color in kinds)
        out.append(f"{key}; plot {lines}")
        out.append(f"unset logscale x; set xtics auto; set xlabel '{'written, GB/s' if index >= len(surface) - 2 else ''}'")
        lines = []
        for blocks, shade in SHADES.items():
            points = sorted((pair["aggressor_written_GBps"], slowdown(pair)) for other, pair in beside.items()
                            if re.fullmatch(rf"copy_{blocks}_.*|spin_{blocks}", other))
            out.append(f"$w{blocks} << E")
            out += [f"{x} {y}" for x, y in points]
            out.append("E")
            lines.append(f"$w{blocks} with linespoints lw 2 pt 7 ps 0.4 lc '{shade}' title '{blocks} blocks copy'")
        out.append(("set key top left samplen 1" if index == 0 else "unset key") + "; plot " + ", ".join(lines))
    subprocess.run(["gnuplot"], input="\n".join(out) + "\n", text=True, check=True)


if __name__ == "__main__":
    main()
