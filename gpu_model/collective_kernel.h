// Collectives as kernels: what the communication library's thread blocks load, add, store and signal, on every rank.
// All of it goes through compute units, L2, HBM and links like any other kernel's work.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gpu_model/gpu_spec.h"
#include "gpu_model/phase.h"
#include "network/collective_spec.h"
#include "network/ring_orders.h"

namespace weft {

struct CollectivePlan {
  std::string algorithm;  // "in_switch", or as CollectiveAlgorithm's names
  std::string protocol;   // "Simple" | "LL" | "LL128"
  std::uint32_t channels = 0;
  std::uint32_t flags = 0;            // counters it uses on every GPU, from `first_flag`
  std::vector<ScriptedKernel> ranks;  // by place in the group
};

// Who moves the data of collectives, and who adds. compute_units: thread blocks of the library, NCCL. The others are
// engines of the GPU (GpuSpec::engines); those that cannot do a collective refuse it.
enum class Mover { compute_units, copy_engine, endpoint_engine, near_memory };
[[nodiscard]] const char* to_string(Mover mover);

// What the user asks for; the tuner chooses the rest.
struct CollectiveWish {
  Mover mover = Mover::compute_units;
  bool registered = false;  // the user's buffers are known to the library and the switch: no staging copies
  AllReduceAlgorithm algorithm = AllReduceAlgorithm::automatic;  // of all_reduce
  CollectiveProtocol protocol = CollectiveProtocol::automatic;
  std::uint32_t channels = 0;  // 0: automatic
};

struct CollectiveContext {
  const GpuSpec* gpu = nullptr;
  const CollectiveSpec* library = nullptr;
  bool switch_reduces = false;
  std::uint32_t gpus = 0;  // of the system: a multicast goes to all of them
  std::uint32_t links_per_gpu = 0;
  Bandwidth link;                                           // of one, each way
  std::shared_ptr<const RingOrders> ring_orders = nullptr;  // for rings of all GPUs, where each is linked to each other
};

// Buffers of the communication library, at the end of the memory of each GPU.
[[nodiscard]] std::int64_t communication_buffer_bytes(const CollectiveSpec& library, std::uint32_t gpus);

// Plans one collective of the group. Engines take in_switch only where the wish names it. Counters first_flag ... are
// its own. Throws InputError for what no algorithm here does, for in_switch where it cannot be: the switch does not
// reduce, or the group is not the whole system, and for engines that the GPU does not have.
[[nodiscard]] CollectivePlan plan_collective(const CollectiveContext& context, const CollectiveDemand& demand,
                                             const CollectiveWish& wish, std::uint32_t first_flag);

}  // namespace weft
