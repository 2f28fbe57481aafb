#include "workloads/memory_plan.h"

#include <algorithm>
#include <map>

#include "sim/error.h"

namespace weft {
namespace {

constexpr std::size_t kHolders = 10;

}  // namespace

MemoryPeak peak_memory(const Program& program) {
  MemoryPeak peak;
  std::array<Bytes, kMemoryClassCount> held{};
  Bytes total;
  std::size_t peak_event = 0;
  for (std::size_t i = 0; i < program.memory.size(); ++i) {
    const MemoryEvent& event = program.memory[i];
    WEFT_CHECK(i == 0 || program.memory[i - 1].op <= event.op, event.what);
    Bytes& of_class = held[static_cast<std::size_t>(event.memory_class)];
    of_class += event.bytes;
    total += event.bytes;
    WEFT_CHECK(of_class.count() >= 0, event.what);
    if (total <= peak.total) continue;
    peak.total = total;
    peak.by_class = held;
    peak.at = event.op;
    peak_event = i + 1;
  }
  std::map<std::string, Bytes> holders;
  for (std::size_t i = 0; i < peak_event; ++i) holders[program.memory[i].what] += program.memory[i].bytes;
  for (const auto& [what, bytes] : holders) {
    if (bytes.count() > 0) peak.largest.emplace_back(what, bytes);
  }
  std::stable_sort(peak.largest.begin(), peak.largest.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  if (peak.largest.size() > kHolders) peak.largest.resize(kHolders);
  return peak;
}

}  // namespace weft
