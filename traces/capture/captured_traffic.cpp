#include "traces/capture/captured_traffic.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "traces/kineto_rank.h"

namespace weft {
namespace {

constexpr std::int64_t kFsPerNs = 1'000'000;
constexpr std::uint32_t kAll = (1u << kTrafficCounterCount) - 1;

struct Sample {
  std::int64_t start, end;  // ns
  std::uint32_t known;
  const std::uint64_t* values;
};

std::vector<Sample> samples_of(const CapturedProcess& process, std::int64_t device) {
  const std::int64_t first = earliest_time(process.profile);
  std::int64_t last = first;
  for (const KinetoEvent& event : process.profile.events) last = std::max(last, event.end());
  last = std::min(last, first + std::numeric_limits<std::int64_t>::max() / kFsPerNs);
  std::vector<Sample> samples;
  for (const capture::TrafficRecord& record : process.traffic) {
    Sample sample{static_cast<std::int64_t>(record.start), static_cast<std::int64_t>(record.end), record.known & kAll,
                  record.values};
    if (record.device != device || sample.start < first || sample.end > last) continue;
    for (std::size_t i = 0; i < kTrafficCounterCount; ++i)
      if (record.values[i] > static_cast<std::uint64_t>(kMostCounted)) sample.known &= ~(1u << i);
    samples.push_back(sample);
  }
  std::stable_sort(samples.begin(), samples.end(), [](const Sample& a, const Sample& b) { return a.start < b.start; });
  return samples;
}

}  // namespace

TraceTraffic captured_traffic(const CapturedProcess& process, std::int64_t device) {
  TraceTraffic out;
  if (process.traffic.empty()) return out;
  const std::vector<Sample> samples = samples_of(process, device);
  std::uint32_t columns = 0;
  for (const Sample& sample : samples) columns |= sample.known;
  const std::int64_t origin = earliest_time(process.profile);
  std::int64_t free = origin;  // the end of the sample before
  for (const Sample& sample : samples) {
    const std::int64_t start = std::max(sample.start, free);
    if (sample.known != columns || columns == 0 || sample.end <= start) continue;
    free = sample.end;
    out.start.emplace_back((start - origin) * kFsPerNs);
    out.duration.emplace_back((sample.end - start) * kFsPerNs);
    for (std::size_t i = 0; i < kTrafficCounterCount; ++i)
      if ((columns >> i & 1) != 0) out.bytes[i].push_back(static_cast<std::int64_t>(sample.values[i]));
  }
  return out;
}

}  // namespace weft
