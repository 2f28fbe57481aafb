#include <array>

#include "tests/fuzz/fuzzed_file.h"
#include "traces/execution_join.h"
#include "traces/execution_trace.h"
#include "traces/kineto_rank.h"

namespace {

// A profile of operators with ids from 1 on, each with its launch and a kernel; streams take turns.
weft::KinetoFile profile() {
  constexpr std::array<const char*, 6> kNames{"aten::mm",  "aten::add",          "aten::relu",
                                              "aten::cat", "record_param_comms", "aten::copy_"};
  weft::KinetoFile file;
  for (std::int64_t i = 0; i < 12; ++i) {
    const auto add = [&](weft::KinetoCategory category, std::string_view name, std::int64_t start,
                         std::int64_t duration, std::int64_t correlation) {
      weft::KinetoEvent& event = file.events.emplace_back();
      event.category = category;
      event.name = name;
      event.number = file.events.size() - 1;
      event.start = start;
      event.duration = duration;
      event.thread = 1;
      event.correlation = correlation;
      event.stream = static_cast<std::int32_t>(7 + i % 2);
    };
    add(weft::KinetoCategory::cpu_operator, kNames[static_cast<std::size_t>(i) % kNames.size()], i * 100, 90, i + 1);
    add(weft::KinetoCategory::runtime, "cudaLaunchKernel", i * 100 + 10, 10, 100 + i);
    add(weft::KinetoCategory::kernel, i % 6 == 4 ? "ncclKernel_AllReduce(x)" : "kernel", i * 100 + 50, 40, 100 + i);
  }
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  return fuzz::read_fuzzed(data, size, [](const std::filesystem::path& path) {
    const ExecutionTrace trace = read_execution_trace(path);
    KinetoFile file = profile();
    const ExecutionJoin join(trace, file);
    (void)kineto_rank(file, 0, 0, &join);
  });
}
