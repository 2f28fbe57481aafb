// From the steps of a schedule to phases of warps: each step waits for its flags, loads what came and what is its own,
// stores and passes it on. Works for every CollectiveSchedule.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gpu_model/gpu_spec.h"
#include "gpu_model/phase.h"
#include "network/collective_schedule.h"
#include "network/protocol.h"

namespace weft {

// What a plan of a schedule needs to know.
struct SchedulePlace {
  const GpuSpec* gpu = nullptr;
  ProtocolShape protocol;
  SubCycle fence = 0;
  SubCycle node_latency = 0;  // of a message from one node to another
  double adds_per_cycle = 0;  // FP32, of who runs the steps
  // The user's buffers are known to all ranks: what is complete is written to the next rank's output (or read from the
  // one before), not passed through a FIFO. Only for rings without flags in the data.
  bool registered = false;
  GpuGroup group;
  std::int64_t input_address = 0;  // the same on all GPUs
  std::int64_t output_address = 0;
  std::int64_t buffer_end = 0;  // the connections' buffers and scratch memory end here
  std::uint32_t first_flag = 0;
};

// Connections, their buffers and flags, of all ranks. A connection (from, to, channel) has a FIFO of slots: with the
// receiver, or with the sender where the receiver reads. Its flags are "come", counted with the receiver, in pieces or,
// where the flags are in the data, in lines; and "taken", counted with the sender, in pieces.
class ScheduleLayout {
 public:
  // In time and memory linear in connections, not steps. Throws InternalError when two groups of warps share one end of
  // a connection.
  ScheduleLayout(std::shared_ptr<const CollectiveSchedule> schedule, SchedulePlace place);

  struct Connection {
    std::uint32_t from = 0, to = 0, channel = 0;  // ranks
    std::uint32_t come = 0;                       // flags
    std::uint32_t taken = 0;
    std::int64_t fifo = 0;  // address, with who holds it
  };

  [[nodiscard]] const CollectiveSchedule& schedule() const { return *schedule_; }
  [[nodiscard]] const SchedulePlace& place() const { return place_; }
  [[nodiscard]] std::uint32_t flags() const { return flags_; }  // of a GPU, from first_flag
  [[nodiscard]] const Connection& connection(std::uint32_t from, std::uint32_t to, std::uint32_t channel) const;
  // Where a group counts its steps, if another one of the rank waits for them; else kNoFlag.
  [[nodiscard]] std::uint32_t steps_done(std::uint32_t rank, std::uint32_t block, std::uint32_t group) const;
  [[nodiscard]] std::int64_t address(ScheduleBuffer buffer, std::uint32_t rank) const;

 private:
  struct DoneFlag {
    std::uint32_t rank = 0, block = 0, group = 0, flag = 0;
  };

  std::shared_ptr<const CollectiveSchedule> schedule_;
  SchedulePlace place_;
  std::uint32_t flags_ = 0;
  std::vector<Connection> connections_;  // ascending
  std::vector<DoneFlag> done_;           // ascending
  std::int64_t scratch_ = 0;
};

// What the blocks of one rank do.
[[nodiscard]] std::shared_ptr<const BlockPrograms> schedule_programs(std::shared_ptr<const ScheduleLayout> layout,
                                                                     std::uint32_t rank);

}  // namespace weft
