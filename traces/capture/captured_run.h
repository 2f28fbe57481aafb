// The processes of one run as one trace.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/capture/captured_process.h"
#include "traces/capture/captured_rank.h"
#include "traces/trace.h"

namespace weft {

class CapturedRun {
 public:
  // Notes of all that is added and joined go to `notes`.
  explicit CapturedRun(std::vector<std::string>& notes) : notes_(notes) {}

  // Each GPU that the process uses is a rank. `alone`: the run has no other process. Throws InputError as
  // captured_rank, and where one process of several drives GPUs whose ranks nothing tells.
  void add(const CapturedProcess& process, bool alone);

  // Numbers ranks, turns communicators into groups of ranks, and aligns clocks. Throws InputError: no operation on any
  // GPU, one rank twice, what validate() refuses.
  [[nodiscard]] Trace finish(std::string source);

 private:
  using Numbers = std::vector<std::uint32_t>;

  // A part of the run on one GPU.
  struct Part {
    std::string file;
    CapturedRank captured;
    std::optional<std::uint32_t> said_rank, nccl_rank;
    std::uint64_t nccl_world = 0;  // its communicator's number
  };

  template <class Number>
  [[nodiscard]] std::optional<Numbers> distinct(Number number) const;
  void number_ranks();
  [[nodiscard]] std::optional<Numbers> members(std::uint64_t communicator) const;
  void place_groups();

  std::vector<std::string>& notes_;
  std::vector<Part> parts_;
  std::size_t without_gpu_ = 0;
  std::uint32_t said_world_ = 0, nccl_world_ = 0, world_ = 1;
};

}  // namespace weft
