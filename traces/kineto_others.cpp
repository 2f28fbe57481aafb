#include "traces/kineto_others.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "traces/kineto_names.h"
#include "traces/readable_text.h"

namespace weft {
namespace {

constexpr std::size_t kMost = 32;     // a file may have a category for each event; a choice
constexpr std::size_t kMostTold = 4;  // in a message
constexpr std::size_t kLongest = 40;  // bytes of a name

// Work of devices that are no GPUs as weft simulates them, as Kineto calls it (ActivityType.h).
bool is_other_device(std::string_view category) {
  return category == "mtia_ccp_events" || category == "mtia_insight" || category == "hpu_op";
}

}  // namespace

void OtherEvents::add(std::string_view category) {
  const std::string_view name = category.substr(0, kLongest);
  if (const auto found = counts_.find(name); found != counts_.end())
    ++found->second;
  else if (counts_.size() < kMost)
    counts_.emplace(name, 1);
}

std::string OtherEvents::words(std::size_t events, bool host) const {
  if (events == 0) return "no event at all";
  std::vector<std::pair<std::string, std::size_t>> most(counts_.begin(), counts_.end());
  std::ranges::stable_sort(most, [](const auto& a, const auto& b) { return a.second > b.second; });
  if (most.size() > kMostTold) most.resize(kMostTold);
  std::vector<std::string> told;
  bool other_device = false;
  for (const auto& [category, count] : most) {
    told.push_back(fmt::format("{} {}", count, category.empty() ? "without \"cat\"" : readable(category)));
    other_device = other_device || is_other_device(lower(category));
  }
  std::string text = fmt::format("{} events and none of them", events);
  if (!told.empty()) text += fmt::format(" ({})", fmt::join(told, ", "));
  if (other_device) return text + ": they are of a device that is no GPU";
  if (host) return text + ": was the profile taken with ProfilerActivity.CUDA?";
  return text + ": is it what PyTorch's profiler wrote? Those of TensorFlow, JAX and Ascend have other forms";
}

}  // namespace weft
