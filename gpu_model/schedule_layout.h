// What the steps of a schedule need on each GPU: connections, their buffers and flags.
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
  std::uint32_t gpus_per_node = 0;  // 0: all are in one
  std::uint32_t gpus_per_nic = 0;   // 0: what goes to other nodes leaves by the sender's own NIC
  SubCycle node_latency = 0;        // of a message from one node to another
  SubCycle proxy_latency = 0;       // what host threads add to a piece to another node
  SubCycle nic_line = 0;            // that a GPU's share of the NICs takes for a line
  bool values_travel = false;       // so a flag must not overtake its data
  double adds_per_cycle = 0;        // FP32, of who runs the steps
  // The user's buffers are known to all ranks: what is complete is written to the next rank's output (or read from the
  // one before), not passed through a FIFO. Only for rings without flags in the data.
  bool registered = false;
  // So many GPUs, by number, are one process's, whose ranks know each other's buffers likewise; 0: none do.
  std::uint32_t gpus_per_process = 0;
  GpuGroup group;
  std::int64_t input_address = 0;  // the same on all GPUs
  std::int64_t output_address = 0;
  std::int64_t buffer_end = 0;  // the connections' buffers and scratch memory end here
  std::uint32_t first_flag = 0;
};

// Connections, their buffers and flags, of all ranks. A connection (from, to, channel) has a FIFO of slots: with the
// receiver, or with the sender where the receiver reads. Its flags are "come", counted with the receiver, in pieces or,
// where the flags are in the data, in lines; and "taken", counted with the sender, in pieces.
//
// To another node a piece goes through a second FIFO, from which the NIC takes it (NCCL src/transport/net.cc: GPUDirect
// RDMA, and a proxy thread that tells the NIC). It lies with the carrier, whose NIC it is: the sender, or that rank of
// its node which is on the receiver's rail (PXN; src/graph/search.cc, ncclTopoGetNetDev). Its flags are "filled" and
// "taken", with the carrier, and "sent", with the sender, in pieces.
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
    bool by_nic = false;
    std::uint32_t carrier = 0;  // rank; the sender where it is not by_nic
    bool read = false;          // by the receiver, from the sender's FIFO
    std::uint32_t filled = 0;
    std::uint32_t sent = 0;
    std::int64_t staging = 0;  // address of the second FIFO, with the carrier
  };

  [[nodiscard]] const CollectiveSchedule& schedule() const { return *schedule_; }
  [[nodiscard]] const SchedulePlace& place() const { return place_; }
  [[nodiscard]] std::uint32_t flags() const { return flags_; }  // of a GPU, from first_flag
  [[nodiscard]] const Connection& connection(std::uint32_t from, std::uint32_t to, std::uint32_t channel) const;
  // Where a group counts its steps, if another one of the rank waits for them; else kNoFlag.
  [[nodiscard]] std::uint32_t steps_done(std::uint32_t rank, std::uint32_t block, std::uint32_t group) const;
  [[nodiscard]] std::int64_t address(ScheduleBuffer buffer, std::uint32_t rank) const;
  // What a piece takes of a slot, and where the slot of the connection's piece lies in one of its FIFOs.
  [[nodiscard]] std::int64_t wire_bytes(std::int64_t bytes) const {
    const std::uint32_t data = place_.protocol.data_bytes_per_line;
    return (bytes + data - 1) / data * kLineBytes;
  }
  [[nodiscard]] std::int64_t slot(std::int64_t fifo, std::uint32_t piece) const {
    return fifo + piece % place_.protocol.slots * place_.protocol.slot_bytes;
  }
  [[nodiscard]] std::uint16_t gpu(std::uint32_t rank) const {
    return static_cast<std::uint16_t>(place_.group[rank].value);
  }
  // Where pieces from one rank to another go by the NIC.
  [[nodiscard]] bool by_nic(std::uint32_t from, std::uint32_t to) const {
    return place_.gpus_per_node > 0 && gpu(from) / place_.gpus_per_node != gpu(to) / place_.gpus_per_node;
  }

  // The sender knows where the receiver's buffers lie.
  [[nodiscard]] bool knows_buffers(std::uint32_t from, std::uint32_t to) const {
    const std::uint32_t process = place_.gpus_per_process;
    return place_.registered || (process > 0 && gpu(from) / process == gpu(to) / process);
  }

  // Ranks of the same node, the rank itself first, then by the places of their GPUs, in turns.
  [[nodiscard]] std::vector<std::uint32_t> node_from(std::uint32_t rank) const;

 private:
  static constexpr std::uint32_t kNoRank = ~std::uint32_t{0};

  [[nodiscard]] std::uint32_t carrier(const Connection& connection) const;
  [[nodiscard]] std::uint32_t rank_of(std::uint32_t gpu) const {
    return gpu < rank_of_gpu_.size() ? rank_of_gpu_[gpu] : kNoRank;
  }

  struct DoneFlag {
    std::uint32_t rank = 0, block = 0, group = 0, flag = 0;
  };

  std::shared_ptr<const CollectiveSchedule> schedule_;
  SchedulePlace place_;
  std::uint32_t flags_ = 0;
  std::vector<std::uint32_t> rank_of_gpu_;
  std::vector<Connection> connections_;  // ascending
  std::vector<DoneFlag> done_;           // ascending
  std::int64_t scratch_ = 0;
};

// A group of warps of a block, and its steps. The layout outlives it.
struct WarpGroup {
  const ScheduleLayout* layout;
  std::uint32_t rank, block, group;

  [[nodiscard]] std::uint32_t channel() const { return layout->schedule().channel(rank, block, group); }
  [[nodiscard]] std::uint64_t steps() const { return layout->schedule().steps(rank, block, group); }
  [[nodiscard]] ScheduleStep step(std::uint64_t i) const { return layout->schedule().step(rank, block, group, i); }
  [[nodiscard]] std::uint64_t skip_idle(std::uint64_t next) const {
    return layout->schedule().skip_idle(rank, block, group, next);
  }
};

}  // namespace weft
