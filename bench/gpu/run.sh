#!/usr/bin/env bash
# Measures everything on the GPU of this machine: bench/gpu/run.sh [-o FILE] [-b SECONDS] [-p PROGRAM] [-- OPTIONS...]
# Goes on where an earlier run of the same FILE ended. Changes no clocks and no settings; needs no privileges.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
output=overlap.json
budget=540
program=${WEFT_GPU_PROBE:-$root/build/release/bench/gpu/weft_gpu_probe}
while getopts "o:b:p:h" option; do
  case $option in
    o) output=$OPTARG ;;
    b) budget=$OPTARG ;;
    p) program=$OPTARG ;;
    *) sed -n 2,3p "$0"; exit 64 ;;
  esac
done
shift $((OPTIND - 1))

if [[ ! -x $program ]]; then
  if ! command -v nvcc >/dev/null && [[ ! -x /usr/local/cuda/bin/nvcc ]]; then
    echo "no $program, and no CUDA compiler to build it: see bench/gpu/README.md" >&2
    exit 69
  fi
  cmake -S "$root" --preset release -DWEFT_GPU_PROBE=ON
  cmake --build "$root/build/release" --target weft_gpu_probe
fi

# Folders with the libraries: the toolkit's, and those of the wheels that a Python with a framework brings.
folders=()
for folder in "${CUDA_HOME:-}" /usr/local/cuda; do
  if [[ -n $folder && -d $folder ]]; then folders+=("$folder"); fi
done
for python in python3 python; do
  command -v "$python" >/dev/null || continue
  while IFS= read -r folder; do folders+=("$folder"); done < <("$python" - <<'PYTHON' || true
try:
    import nvidia
    print("\n".join(nvidia.__path__))
except ImportError:
    pass
PYTHON
  )
done
search=
for folder in "${folders[@]}"; do
  for lib in "$folder"/{,lib,lib64,extras/CUPTI/lib64} "$folder"/*/lib; do
    if [[ -d $lib ]]; then search+=${search:+:}$lib; fi
  done
done
export LD_LIBRARY_PATH=$search${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

if command -v nvidia-smi >/dev/null; then
  nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem,power.draw,temperature.gpu --format=csv || true
fi
if command -v cuobjdump >/dev/null; then
  echo "registers and memory of the kernels: $output.kernels"
  cuobjdump -res-usage "$program" >"$output.kernels" 2>&1 || true
fi

libraries=()
if [[ ${#folders[@]} -gt 0 ]]; then libraries=(--libraries "${folders[@]}"); fi
begin=$SECONDS
for attempt in 1 2 3; do
  left=$((budget - SECONDS + begin))
  if [[ $left -lt 5 ]]; then break; fi
  status=0
  "$program" -o "$output" --budget-s "$left" --resume "${libraries[@]}" "$@" || status=$?
  # 70: the device's work failed; what was measured is kept, and a new process may go on.
  if [[ $status -ne 70 ]]; then break; fi
  echo "attempt $attempt failed" >&2
done

if [[ -f $output ]] && command -v python3 >/dev/null; then
  python3 "$(dirname "$0")/summary.py" "$output" || true
fi
exit "${status:-0}"
