// The profiles of one run as one trace.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/execution_join.h"
#include "traces/kineto_events.h"
#include "traces/peer_transfers.h"
#include "traces/trace.h"

namespace weft {

class KinetoRun {
 public:
  // `notes`: what was left out or changed, told as it is found.
  explicit KinetoRun(std::vector<std::string>& notes) : notes_(notes) {}

  // `alone`: the run has no other profile. `execution`: what the file was joined with. Throws InputError: a rank twice,
  // several GPUs in a profile of several, worlds that differ.
  void add(const KinetoFile& file, bool alone, const ExecutionJoin* execution = nullptr);
  // Throws InputError: ranks more than 2.5 hours apart that no collectives join, what validate() refuses.
  [[nodiscard]] Trace finish(std::string source);

 private:
  // What is kept of a file when its events are gone.
  struct Part {
    std::string file;
    std::int64_t origin;  // ns: its earliest time
    TraceRank rank;
    std::vector<PeerKernel> exchanges;
  };

  void see_world(const KinetoFile& file);
  [[nodiscard]] std::uint32_t world_size() const;

  std::vector<std::string>& notes_;
  std::vector<Part> parts_;
  std::int64_t stated_world_ = 0;
  std::int64_t seen_world_ = 0;
};

}  // namespace weft
