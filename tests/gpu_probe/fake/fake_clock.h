// Time of the fake GPU: everything it does happens at once, at the call, and takes what is added here.
#pragma once

#include <cstdint>

namespace weft::gpu_probe {

inline std::uint64_t fake_ns = 1000;
inline bool fake_aggressor_runs = false;
inline int fake_gpus = 1;

}  // namespace weft::gpu_probe
