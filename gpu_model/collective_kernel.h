// Collectives as kernels: what the communication library's thread blocks load, add, store and signal, on every rank.
// All of it goes through compute units, L2, HBM and links like any other kernel's work.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "gpu_model/gpu_spec.h"
#include "gpu_model/phase.h"
#include "network/collective_spec.h"
#include "network/ring_orders.h"
#include "network/user_algorithm.h"

namespace weft {

inline constexpr const char* kInSwitch = "in_switch";
inline constexpr const char* kInNetwork = "in_network";

struct CollectivePlan {
  std::string algorithm;  // kInSwitch, kInNetwork, as CollectiveAlgorithm's names, or a user's
  std::string protocol;   // "Simple" | "LL" | "LL128"
  std::uint32_t channels = 0;
  std::uint32_t flags = 0;            // counters it uses on every GPU, from `first_flag`
  std::vector<ScriptedKernel> ranks;  // by place in the group
  std::vector<GpuGroup> multicasts;   // the groups that its multicasts name, from the context's number on
  bool fell_back = false;             // it would be in the switch, had the context no `switch_fault`
};

// Who moves the data of collectives, and who adds. compute_units: thread blocks of the library, NCCL. The others are
// engines of the GPU (GpuSpec::engines); those that cannot do a collective refuse it.
enum class Mover { compute_units, copy_engine, endpoint_engine, near_memory };
[[nodiscard]] const char* to_string(Mover mover);

// Messages, and as how many bytes, over how many channels, they are cut, so that all ranks have the same share: what
// the tuner chooses is for what they are.
using Message =  // bytes of a rank's input, distance, first, ranks, the last of them
    std::tuple<CollectiveKind, std::int64_t, DataType, std::uint32_t, std::optional<std::uint32_t>, std::size_t,
               std::uint32_t>;
[[nodiscard]] Message message_of(const CollectiveDemand& demand);
struct EvenMessage {
  std::int64_t bytes = 0;
  std::uint32_t channels = 0;  // 0: those that the tuner chooses
};
using EvenMessages = std::map<Message, EvenMessage>;

// What the user asks for; the tuner chooses the rest.
struct CollectiveWish {
  Mover mover = Mover::compute_units;
  bool registered = false;  // the user's buffers are known to the library and the switch: no staging copies
  AllReduceAlgorithm algorithm = AllReduceAlgorithm::automatic;  // of all_reduce
  CollectiveProtocol protocol = CollectiveProtocol::automatic;
  std::uint32_t channels = 0;        // 0: automatic
  std::uint32_t ranks_per_node = 0;  // hierarchical; 0: as the GPUs lie in the system's nodes
  // So that some ranks can stand for all: cut finer than the library does, for equal shares, and trees of more than two
  // nodes without a root.
  bool alike_ranks = false;
  std::shared_ptr<const EvenMessages> even_messages =
      nullptr;              // of alike ranks; those that are missing stay as they are
  std::uint32_t grain = 1;  // lines of the memory that each of its lines stands for (coarse_programs.h)
  // Of a file: for collectives of its kind and number of ranks, before `algorithm`.
  std::shared_ptr<const UserAlgorithm> user_algorithm = nullptr;
};

struct CollectiveContext {
  const GpuSpec* gpu = nullptr;
  const CollectiveSpec* library = nullptr;
  std::string why_not_in_switch = "no switch reduces";  // in words; empty: switches can reduce this collective
  std::string switch_fault = "";  // in words: links that are out keep it from the switches; empty: none do
  std::uint32_t links_per_gpu = 0;
  std::uint32_t gpus_per_node = 0;                          // as many, by number, are one node
  std::uint32_t gpus_per_nic = 1;                           // of a node, by number
  std::uint32_t gpus_per_process = 1;                       // by number
  Bandwidth link;                                           // of one, each way
  double nic_GBps = 0;                                      // a GPU's share of its node's NICs; one node: 0
  Time node_latency;                                        // of a message from one node to another
  bool values_travel = false;                               // so a flag must not overtake its data
  std::string why_not_in_network = "no router sums";        // as why_not_in_switch, of routers
  std::uint16_t aggregation_group = 0;                      // of routers that sum
  std::uint16_t multicast_group = 0;                        // the first of the collective
  std::uint32_t fan_in = 255;                               // GPUs of a multicast group, at most
  std::shared_ptr<const RingOrders> ring_orders = nullptr;  // of the collective's group; null: by number
};

// The size nccl-tests reports: the larger of what a rank gives and gets.
[[nodiscard]] std::int64_t reported_bytes(const CollectiveDemand& demand);

// Buffers of the communication library, at the end of the memory of each GPU: of rings, those from which NICs take
// what goes to other nodes included, or of the switch.
[[nodiscard]] std::int64_t communication_buffer_bytes(const CollectiveSpec& library, std::uint32_t gpus,
                                                      std::uint32_t gpus_per_node, bool in_switch);

// Plans one collective of the group. Engines take in_switch only where the wish names it. Counters first_flag ... are
// its own. Throws InputError for what no algorithm here does, for in_switch where it cannot be: no switch reduces, or
// nodes have different numbers of members, and for engines that the GPU does not have.
[[nodiscard]] CollectivePlan plan_collective(const CollectiveContext& context, const CollectiveDemand& demand,
                                             const CollectiveWish& wish, std::uint32_t first_flag);

}  // namespace weft
