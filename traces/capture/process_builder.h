// Makes a CapturedProcess of records, whatever file they stood in.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "traces/capture/captured_process.h"
#include "traces/capture/record.h"
#include "traces/capture/training_steps.h"

namespace weft {

class ProcessBuilder {
 public:
  explicit ProcessBuilder(std::string file);

  // Who it is; its communicators, graphs and notes.
  [[nodiscard]] CapturedProcess& process() { return out_; }

  // Of records with names the name is what counts, not its number. Those with impossible times are counted.
  void device(const capture::DeviceRecord& record, std::string_view name);
  void kernel(const capture::KernelRecord& record, std::string_view name);
  void copy(const capture::CopyRecord& record);
  void memset(const capture::MemsetRecord& record);
  void call(const capture::CallRecord& record, std::string_view name);
  // `of_library`: in a domain of its own, so that it is no operator of PyTorch's.
  void range(std::uint64_t start, std::uint64_t end, std::uint32_t thread, std::string_view name, bool of_library);
  // A call of NCCL on its thread: not a phase, but what waits and launches within it are its own.
  void nccl_call(std::uint64_t start, std::uint64_t end, std::uint32_t thread, std::string_view function);
  void synchronization(const capture::SynchronizationRecord& record) { synchronizations_.push_back(record); }
  void thread(std::uint32_t thread, std::string_view name);
  void event_record(const capture::EventRecord& record);
  void collective(const capture::CollectiveRecord& record) { collectives_.push_back(record); }

  void traffic(const capture::TrafficRecord& record);

  // Of all that was added so far, at least 0.
  [[nodiscard]] std::uint64_t last() const { return last_; }
  // Joins what belongs together. Nothing may be added behind it.
  [[nodiscard]] CapturedProcess finish();

 private:
  using Triple = std::array<std::uint32_t, 3>;
  using ByThread = std::map<std::int64_t, std::vector<const KinetoEvent*>>;

  bool possible(std::uint64_t start, std::uint64_t end);
  KinetoEvent& add(KinetoCategory category, std::string_view name, std::uint64_t start, std::uint64_t end);
  KinetoEvent& add_gpu(KinetoCategory category, std::string_view name, const capture::GpuTimes& gpu);
  void join_synchronizations();
  [[nodiscard]] ByThread::const_iterator most_phases() const;
  void find_iterations();
  void keep_outermost_iterations();
  [[nodiscard]] std::vector<TrainingStep> steps_by_launches() const;
  void spread_phases();

  CapturedProcess out_;
  std::uint64_t last_ = 0, impossible_ = 0;
  std::map<std::tuple<Triple, Triple, std::uint32_t, std::uint32_t, std::uint32_t>, const LaunchShape*> shapes_;
  ByThread phases_;                       // annotations that name one
  std::vector<KinetoEvent*> iterations_;  // annotations
  std::vector<capture::SynchronizationRecord> synchronizations_;
  std::unordered_map<std::uint64_t, std::pair<std::uint32_t, std::int32_t>> event_records_;
  std::vector<capture::CollectiveRecord> collectives_;
};

}  // namespace weft
