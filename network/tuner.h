// Which algorithm, protocol and number of channels the communication library takes: those of the lowest predicted time,
// by NCCL's own model of latency and bandwidth (src/graph/tuning.cc, commit 5067397c). It predicts with NCCL's
// constants, not with the simulated machine: what matters is what NCCL would choose.
//
// Over several nodes: NCCL takes the bandwidth of a channel from its search for rings and trees, which here is the
// smaller of a GPU's links and its share of the NICs, in the node that has fewest (NCCL takes the least of all ranks'
// graphs). Of trees over two nodes with different numbers of ranks these NICs carry a message once each way, half of
// what they do in larger trees; of equal ones that is not counted, since two nodes of eight A100 take rings from 16
// MiB on (docs/validation.md, Two nodes). A choice: NCCL's search counts it as far as its list of speeds goes, 48 GB/s
// between nodes (src/graph/search.cc), and takes trees with a node of one GPU for 0.85 as fast. The limits of a channel
// of a tree and of NVLSTree are left out, as they are above that in the systems here.
#pragma once

#include <cstdint>
#include <optional>

#include "network/collective_spec.h"
#include "sim/program.h"

namespace weft {

struct TunerQuery {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::int64_t bytes = 0;  // as nccl-tests counts them
  std::uint32_t ranks = 0;
  std::uint32_t links_per_gpu = 0;
  double link_GBps = 0;    // of one link, each way, where the library has no rate of its own for it
  bool in_switch = false;  // switches can do it, in all nodes
  std::uint32_t nodes = 1;
  std::uint32_t ranks_per_node = 0;  // of several nodes: of the one with the fewest, whose NICs are the least
  double nic_GBps = 0;               // of several nodes: a rank's share of the NICs of its node
  bool user_algorithm = false;       // so not made of the library's sends and receives
};

struct TunerChoice {
  AllReduceAlgorithm algorithm = AllReduceAlgorithm::ring;
  CollectiveProtocol protocol = CollectiveProtocol::simple;
  std::uint32_t channels = 1;
  std::uint32_t channels_to_peer = 1;  // of an all_to_all, gather or scatter
};

// What the configuration leaves open is chosen: `algorithm` and `protocol` may be automatic, `channels` may be 0. An
// automatic algorithm is a ring, in_switch or, of an all-reduce over several nodes, a double binary tree: NCCL's trees
// never win on one node of up to 8 GPUs. Throws InputError for a protocol that the algorithm does not have.
[[nodiscard]] TunerChoice choose(const CollectiveSpec& library, const TunerQuery& query, AllReduceAlgorithm algorithm,
                                 CollectiveProtocol protocol, std::uint32_t channels);

// Made of sends and receives (ncclSend, ncclRecv).
[[nodiscard]] bool is_point_to_point(CollectiveKind kind);

// The time the model predicts, in microseconds; nullopt where the library has no such pair.
[[nodiscard]] std::optional<double> predicted_us(const CollectiveSpec& library, const TunerQuery& query,
                                                 AllReduceAlgorithm algorithm, CollectiveProtocol protocol);

}  // namespace weft
