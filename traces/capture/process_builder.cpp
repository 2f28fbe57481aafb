#include "traces/capture/process_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "traces/capture/nvtx_range.h"
#include "traces/capture/repeated_launches.h"
#include "traces/kineto_names.h"

namespace weft {
namespace {

// Later times are damage: 2262 is beyond what nanoseconds in 63 bits can name.
constexpr std::uint64_t kLatest = std::uint64_t{1} << 62;
constexpr std::string_view kIteration = "ProfilerStep#";
constexpr std::int64_t kClockTolerance = 1000;  // ns: CUPTI fits the GPU's clock to the host's; UNSOURCED

std::int64_t correlation_of(std::uint32_t id) { return id == 0 ? -1 : std::int64_t{id}; }

}  // namespace

ProcessBuilder::ProcessBuilder(std::string file) {
  out_.profile.name = std::move(file);
  out_.profile.clock_tolerance = kClockTolerance;
}

CapturedProcess ProcessBuilder::finish() {
  join_synchronizations();
  find_iterations();
  spread_phases();
  match_collectives_to_kernels(collectives_, out_);
  if (impossible_ > 0) out_.notes.push_back(fmt::format("{} records with impossible times", impossible_));
  return std::move(out_);
}

void ProcessBuilder::device(const capture::DeviceRecord& record, std::string_view name) {
  KinetoDevice device;
  device.id = record.device;
  device.name = name;
  device.compute_units = std::min(record.compute_units, std::uint32_t{1} << 20);
  device.memory_bytes = static_cast<std::int64_t>(std::min(record.memory_bytes, kLatest));
  const auto same = [&](const KinetoDevice& d) { return d.id == device.id; };
  if (std::none_of(out_.profile.devices.begin(), out_.profile.devices.end(), same))
    out_.profile.devices.push_back(std::move(device));
}

bool ProcessBuilder::possible(std::uint64_t start, std::uint64_t end) {
  if (start <= end && end < kLatest) return true;
  ++impossible_;
  return false;
}

KinetoEvent& ProcessBuilder::add(KinetoCategory category, std::string_view name, std::uint64_t start,
                                 std::uint64_t end) {
  KinetoEvent& event = out_.profile.events.emplace_back();
  event.category = category;
  event.name = out_.profile.texts(name);
  event.number = out_.profile.events.size() - 1;
  event.start = static_cast<std::int64_t>(start);
  event.duration = static_cast<std::int64_t>(end - start);
  last_ = std::max(last_, end);
  return event;
}

KinetoEvent& ProcessBuilder::add_gpu(KinetoCategory category, std::string_view name, const capture::GpuTimes& gpu) {
  KinetoEvent& event = add(category, name, gpu.start, gpu.end);
  event.device = gpu.device;
  event.stream = static_cast<std::int32_t>(gpu.stream & 0x7fffffff);
  event.correlation = correlation_of(gpu.correlation);
  if (gpu.graph_node != 0 || (category == KinetoCategory::kernel && is_collective_kernel(event.name)))
    out_.details.push_back({&event, gpu.graph_node, std::nullopt});
  return event;
}

void ProcessBuilder::kernel(const capture::KernelRecord& record, std::string_view name) {
  if (!possible(record.gpu.start, record.gpu.end)) return;
  KinetoEvent& event = add_gpu(KinetoCategory::kernel, name, record.gpu);
  LaunchShape shape;
  double threads = 1, blocks = 1;
  for (std::size_t i = 0; i < 3; ++i) {
    blocks *= shape.grid[i] = record.grid[i];
    threads *= shape.block[i] = record.block[i];
  }
  if (threads < 1 || threads > 1024 || blocks < 1 || blocks > 0x1p40) return;
  shape.registers_per_thread = record.registers_per_thread;
  shape.shared_memory_bytes = record.static_shared_bytes + record.dynamic_shared_bytes;
  shape.set_cluster({record.cluster[0], record.cluster[1], record.cluster[2]});
  const LaunchShape*& known =
      shapes_[{shape.grid, shape.block, shape.registers_per_thread, shape.shared_memory_bytes, shape.cluster_blocks}];
  if (known == nullptr) known = &out_.profile.shapes.emplace_back(shape);
  event.shape = known;
}

// Names as profilers of PyTorch have them: importers tell directions and pageable memory by them.
void ProcessBuilder::copy(const capture::CopyRecord& record) {
  if (!possible(record.gpu.start, record.gpu.end)) return;
  constexpr std::array<const char*, 5> kDirections{"", "HtoD", "DtoH", "DtoD", "PtoP"};
  constexpr std::array<const char*, 4> kMemories{"Unknown", "Pageable", "Pinned", "Device"};
  const auto word = [](const auto& words, auto value) {
    const auto index = static_cast<std::size_t>(value);
    return words[index < words.size() ? index : 0];
  };
  KinetoEvent& event = add_gpu(KinetoCategory::copy,
                               fmt::format("Memcpy {} ({} -> {})", word(kDirections, record.kind),
                                           word(kMemories, record.from), word(kMemories, record.to)),
                               record.gpu);
  event.bytes = static_cast<std::int64_t>(std::min(record.bytes, kLatest));
}

void ProcessBuilder::memset(const capture::MemsetRecord& record) {
  if (!possible(record.gpu.start, record.gpu.end)) return;
  KinetoEvent& event = add_gpu(KinetoCategory::memset, "Memset (Device)", record.gpu);
  event.bytes = static_cast<std::int64_t>(std::min(record.bytes, kLatest));
}

void ProcessBuilder::call(const capture::CallRecord& record, std::string_view name) {
  if (!possible(record.start, record.end)) return;
  KinetoEvent& event = add(KinetoCategory::runtime, name, record.start, record.end);
  event.thread = record.thread;
  event.correlation = correlation_of(record.correlation);
}

void ProcessBuilder::range(std::uint64_t start, std::uint64_t end, std::uint32_t thread, std::string_view name,
                           bool of_library) {
  if (!possible(start, end)) return;
  NvtxRange range = nvtx_range(name);
  if (of_library && range.category == KinetoCategory::cpu_operator)
    range = {KinetoCategory::annotation, std::string(name), -1};
  KinetoEvent& event = add(range.category, range.name, start, end);
  event.thread = thread;
  event.sequence = range.sequence;
  if (range.category != KinetoCategory::annotation) return;
  if (event.name.starts_with(kIteration))
    iterations_.push_back(&event);
  else if (named_phase(event.name))
    phases_[thread].push_back(&event);
}

void ProcessBuilder::nccl_call(std::uint64_t start, std::uint64_t end, std::uint32_t thread,
                               std::string_view function) {
  if (!possible(start, end)) return;
  add(KinetoCategory::annotation, fmt::format("nccl:{}", function), start, end).thread = thread;
}

void ProcessBuilder::thread(std::uint32_t thread, std::string_view name) {
  if (is_autograd_thread(name)) out_.profile.autograd_threads.insert(thread);
}

void ProcessBuilder::event_record(const capture::EventRecord& record) {
  if (record.event_sync != 0) event_records_[record.event_sync] = {record.correlation, record.stream};
}

void ProcessBuilder::traffic(const capture::TrafficRecord& record) {
  if (possible(record.start, record.end)) out_.traffic.push_back(record);
}

void ProcessBuilder::join_synchronizations() {
  for (const capture::SynchronizationRecord& record : synchronizations_) {
    KinetoEvent& event = add(KinetoCategory::synchronization, "", 0, 0);
    event.start = static_cast<std::int64_t>(last_);  // not earlier than the file's first
    event.correlation = record.correlation;
    event.stream = record.stream;
    const auto waited = event_records_.find(record.event_sync);
    if (record.event_sync == 0 || waited == event_records_.end()) continue;
    event.waited_record = waited->second.first;
    event.waited_stream = waited->second.second;
  }
}

// Those of the thread that marks most of its time, its first if several do: the one that calls the others, within whose
// ranges theirs lie, however many they are.
ProcessBuilder::ByThread::const_iterator ProcessBuilder::most_phases() const {
  const auto marked = [](const auto& thread) {
    std::int64_t time = 0;
    for (const MarkedPhase& phase : outermost_phases(thread.second)) time += phase.span.end - phase.span.start;
    return time;
  };
  return std::max_element(phases_.begin(), phases_.end(),
                          [&](const auto& a, const auto& b) { return marked(a) < marked(b); });
}

// "step 3" within "iteration 1" is a part of it: of an accumulated gradient, of a schedule.
void ProcessBuilder::keep_outermost_iterations() {
  std::sort(iterations_.begin(), iterations_.end(), [](const KinetoEvent* a, const KinetoEvent* b) {
    return std::tuple(a->start, -a->duration, a->number) < std::tuple(b->start, -b->duration, b->number);
  });
  std::int64_t end = -1;
  for (KinetoEvent* iteration : iterations_) {
    if (iteration->end() <= end) iteration->name = {};
    end = std::max(end, iteration->end());
  }
}

void ProcessBuilder::find_iterations() {
  if (!iterations_.empty()) {
    keep_outermost_iterations();
    return;
  }
  const auto most = most_phases();
  std::size_t number = 0;
  for (const TrainingStep& step : most == phases_.end() ? steps_by_launches() : steps_by_phases(most->second))
    add(KinetoCategory::annotation, fmt::format("{}{}", kIteration, number++), static_cast<std::uint64_t>(step.start),
        static_cast<std::uint64_t>(step.end));
}

std::vector<TrainingStep> ProcessBuilder::steps_by_launches() const {
  std::unordered_map<std::int64_t, const KinetoEvent*> calls;
  std::map<std::int64_t, std::vector<const KinetoEvent*>> kernels;  // by device
  for (const KinetoEvent& event : out_.profile.events) {
    if (event.category == KinetoCategory::runtime) calls.emplace(event.correlation, &event);
    if (event.category == KinetoCategory::kernel) kernels[event.device].push_back(&event);
  }
  if (kernels.empty()) return {};
  auto& launched = std::max_element(kernels.begin(), kernels.end(), [](const auto& a, const auto& b) {
                     return a.second.size() < b.second.size();
                   })->second;
  const auto launch = [&](const KinetoEvent* kernel) {
    const auto call = calls.find(kernel->correlation);
    return call == calls.end() ? kernel : call->second;
  };
  std::sort(launched.begin(), launched.end(), [&](const KinetoEvent* a, const KinetoEvent* b) {
    return std::tuple(launch(a)->start, a->start, a->number) < std::tuple(launch(b)->start, b->start, b->number);
  });
  std::map<std::pair<std::string_view, const LaunchShape*>, std::uint32_t> numbers;
  std::vector<std::uint32_t> launches;
  std::vector<std::int64_t> pauses;
  std::int64_t end = launch(launched.front())->start;
  for (const KinetoEvent* kernel : launched) {
    launches.push_back(numbers.try_emplace({kernel->name, kernel->shape}, numbers.size()).first->second);
    pauses.push_back(launch(kernel)->start - end);
    end = launch(kernel)->end();
  }
  std::vector<TrainingStep> steps;
  const std::optional<Repetition> found = repeated_launches(launches, pauses);
  for (std::size_t k = 0; found && k < found->times; ++k) {
    const std::size_t first = found->first + k * found->period;
    steps.push_back({launch(launched[first])->start, launch(launched[first + found->period - 1])->end()});
  }
  return steps;
}

// A range belongs to its thread, but a phase to all that works for it: autograd's threads launch the backward pass
// while the one that marked it waits. So threads take the phases of the one that marks most, around what they mark
// themselves (DeepSpeed's hooks). Not those that train on their own: theirs begin and end at other times.
void ProcessBuilder::spread_phases() {
  const auto most = most_phases();
  if (most == phases_.end()) return;
  const std::vector<MarkedPhase> spans = outermost_phases(most->second);
  const auto crosses = [&](const KinetoEvent* range) {
    const auto span = std::upper_bound(spans.begin(), spans.end(), range->start,
                                       [](std::int64_t t, const MarkedPhase& s) { return t < s.span.end; });
    return span != spans.end() && span->span.start < range->end() &&
           (range->start < span->span.start || span->span.end < range->end());
  };
  std::set<std::int64_t> marking{most->first}, callers;
  for (const auto& [thread, phases] : phases_)
    if (std::any_of(phases.begin(), phases.end(), crosses)) marking.insert(thread);
  for (const KinetoEvent& event : out_.profile.events) {
    if (event.category == KinetoCategory::runtime) callers.insert(event.thread);
    if (event.category == KinetoCategory::cpu_operator && (event.sequence >= 0 || is_autograd_node(event.name)))
      marking.insert(event.thread);
  }
  for (const std::int64_t thread : callers) {
    if (marking.contains(thread)) continue;
    for (const KinetoEvent* marked : most->second) {
      KinetoEvent copy = *marked;
      copy.thread = thread;
      copy.number = out_.profile.events.size();
      out_.profile.events.push_back(copy);
    }
  }
}

}  // namespace weft
