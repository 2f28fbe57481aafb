// Where a library that is opened at run time may lie.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace weft::gpu_probe {

// For each folder F that was given: F, F/lib, F/lib64, F/extras/CUPTI/lib64 and, for the folder of Python's wheels of
// NVIDIA, F/*/lib; last the bare name, which the system looks up itself. Only files that are there, and the bare name.
[[nodiscard]] std::vector<std::string> library_candidates(const std::vector<std::filesystem::path>& folders,
                                                          const std::string& soname);

}  // namespace weft::gpu_probe
