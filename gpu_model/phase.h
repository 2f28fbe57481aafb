// What a group of warps does: a script of phases. One phase moves lines in rounds: load, compute, store. Kernels have
// one or two phases a block, collectives one for each slice they pass on. This is the warp program of a kernel, as
// data.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "gpu_model/clock_domain.h"
#include "network/packet.h"
#include "sim/program.h"

namespace weft {

enum class Target : std::uint8_t { local, remote, multicast };

// Consecutive lines that a phase reads or writes.
struct LineStream {
  LineAddress first = 0;
  std::uint32_t lines = 0;
  std::uint16_t gpu = 0;  // target == remote
  Target target = Target::local;
  bool through_l1 = false;
  std::uint8_t first_sectors = 15;  // of the first line, as a mask; all others are whole
  std::uint8_t last_sectors = 15;
};

struct FlagWait {
  std::uint32_t flag = 0;
  std::uint32_t value = 0;  // wait until the flag has counted to it
};

struct FlagPost {
  std::uint32_t flag = 0;
  Target target = Target::local;
  std::uint16_t gpu = 0;
};

struct Phase {
  static constexpr std::size_t kMaxLoads = 6;
  static constexpr std::size_t kMaxStores = 4;

  std::array<LineStream, kMaxLoads> loads{};
  std::array<LineStream, kMaxStores> stores{};
  std::uint8_t load_count = 0;
  std::uint8_t store_count = 0;
  std::uint8_t wait_count = 0;
  std::uint8_t post_count = 0;
  Pipe pipe = Pipe::fp32;
  std::uint32_t rounds = 1;
  std::uint32_t stages = 1;         // rounds whose loads may be in flight
  SubCycle compute = 0;             // pipe time of a round
  std::array<FlagWait, 2> waits{};  // before the first round
  std::array<FlagPost, 2> posts{};  // after the last; a post waits until all stores of the phase are done (a fence)

  void load(const LineStream& stream) { loads.at(load_count++) = stream; }
  void store(const LineStream& stream) { stores.at(store_count++) = stream; }
  void wait(const FlagWait& w) { waits.at(wait_count++) = w; }
  void post(const FlagPost& p) { posts.at(post_count++) = p; }
};

// The warps of one block that follow one script together.
struct WarpScript {
  std::vector<Phase> phases;
  std::uint32_t lines_in_flight = 0;  // loads these warps keep outstanding
};

// A kernel of blocks that each have a script of their own: a collective's part on one GPU, or a copy.
struct ScriptedKernel {
  std::uint32_t threads_per_block = 0;
  std::uint32_t registers_per_thread = 0;
  std::uint32_t shared_memory_bytes = 0;
  SubCycle start_latency = 0;                   // from a block's start to its first phase
  std::vector<std::vector<WarpScript>> blocks;  // by block, the groups of warps
};

}  // namespace weft
