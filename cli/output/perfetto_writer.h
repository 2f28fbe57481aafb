// Writes a Perfetto trace (perfetto.proto): tracks, slices on them, values of counters.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace perfetto::protos {
class TracePacket;
}

namespace weft {

using PerfettoTrack = std::uint64_t;  // its uuid; 0: the trace itself

struct PerfettoSlice {
  PerfettoTrack track = 0;
  std::uint64_t begin_ns = 0, end_ns = 0;
  std::string name;
  std::vector<std::string> categories;
  std::vector<std::pair<const char*, std::variant<double, std::string>>> annotations;
  std::uint64_t flow = 0;  // 0: none
};

// Tracks of a parent stand in the order of `place`. All packets are one sequence, in which strings that repeat are sent
// once and then by number: a quarter of the size for a training step.
class PerfettoWriter {
 public:
  PerfettoWriter();

  PerfettoTrack process(const std::string& name, std::int32_t place);
  PerfettoTrack thread(PerfettoTrack process, const std::string& name, std::int32_t place);
  // A track without a thread of its own.
  PerfettoTrack child(PerfettoTrack parent, const std::string& name, std::int32_t place);
  PerfettoTrack counter(PerfettoTrack parent, const std::string& name, const std::string& unit);

  // Slices of a track must nest. One that ends before it begins has no length.
  void slice(const PerfettoSlice& slice);
  // Holds until the next one; the same again is not written.
  void value(PerfettoTrack counter, std::uint64_t ns, double value);

  // A serialised perfetto.protos.Trace. Nothing may be written behind it.
  [[nodiscard]] std::string finish() { return std::move(bytes_); }

 private:
  using Numbers = std::map<std::string, std::uint64_t>;

  void emit(perfetto::protos::TracePacket packet);

  PerfettoTrack next_track_ = 1;
  // Process and thread ids are unique over the trace and not 0 (the idle thread of a Linux trace).
  std::int32_t next_id_ = 1;
  bool first_ = true;
  std::map<PerfettoTrack, std::int32_t> pids_;
  std::map<PerfettoTrack, double> values_;  // the last
  Numbers names_, categories_, annotations_;
  std::string bytes_;
};

}  // namespace weft
