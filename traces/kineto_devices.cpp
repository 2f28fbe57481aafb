#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "traces/kineto_rank.h"

namespace weft {
namespace {

// A device with less than this share of the kernels of the busiest one is only touched. What splits a model or a batch
// over devices gives each of them kernels of the same order of number; UNSOURCED.
constexpr double kTouched = 0.05;

struct Work {
  std::size_t kernels = 0;
  std::size_t operations = 0;
};

}  // namespace

std::vector<std::int64_t> used_devices(const KinetoFile& file, std::vector<std::string>& notes) {
  std::map<std::int64_t, Work> work;
  for (const KinetoEvent& e : file.events) {
    if (!is_gpu(e.category)) continue;
    ++work[e.device].operations;
    if (e.category == KinetoCategory::kernel) ++work[e.device].kernels;
  }
  std::size_t most = 0;
  for (const auto& [device, of] : work) most = std::max(most, of.kernels);
  std::vector<std::int64_t> used;
  for (const auto& [device, of] : work)
    if (most == 0 || static_cast<double>(of.kernels) >= kTouched * static_cast<double>(most)) used.push_back(device);
  for (const auto& [device, of] : work)
    if (!std::binary_search(used.begin(), used.end(), device))
      notes.push_back(
          fmt::format("{}: left out {} operations on device {} ({} of them kernels), which is only touched: "
                      "the work is on device {}",
                      file.name, of.operations, device, of.kernels, fmt::join(used, ", ")));
  return used;
}

}  // namespace weft
