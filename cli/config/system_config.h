// A simulated system and one simulation of it, as a configuration describes them (../docs/formats.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "gpu_model/collective_kernel.h"
#include "gpu_model/gpu_spec.h"
#include "gpu_model/resident_blocks.h"
#include "network/collective_spec.h"
#include "network/network_spec.h"
#include "network/value_sets.h"
#include "sim/json_reader.h"
#include "switch_reduce/aggregation_spec.h"
#include "switch_reduce/reduce_spec.h"
#include "workloads/single_sample/attention_layer.h"
#include "workloads/single_sample/temporal_network.h"

namespace weft {

struct SystemSpec {
  std::string name;
  std::string description;
  std::uint32_t max_gpus = 0;
  GpuSpec gpu;
  NetworkSpec network;
  std::optional<ReduceSpec> switch_reduce;        // absent: no switch reduces
  std::optional<AggregationSpec> network_reduce;  // absent: no router sums
  CollectiveSpec collectives;
};

struct TraceWorkload {
  std::string file;
  std::optional<std::uint32_t> rank;  // that every GPU replays; absent: each its own, or the only one there is
  double host_time_scale = 1;
  bool recorded_waits = true;
  bool fit_overlapped = true;  // kernels that never ran alone, to their shortest time beside communication
  std::string demands;         // file of fitted demands; empty: calibrate in the run
  std::string recorded_on;     // system with the recorded GPU, on which kernels are fitted; empty: the simulated one
};
struct ModelWorkload {
  std::string model;
  std::uint32_t batch = 0;
  std::string precision;
  std::uint32_t sequence = 0;
  std::uint32_t layers = 0;
  std::uint32_t key_heads = 0;  // 0: the model's own
};
struct CollectiveWorkload {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Bytes bytes;
  std::uint32_t root = 0;                               // place in each group
  std::vector<std::vector<std::uint32_t>> groups = {};  // of GPUs, at the same time; empty: one of all
  std::vector<double> start_delay_us = {};              // by GPU
  double start_jitter_ns = 0;                           // of each GPU's start, at most, at random by RunConfig::seed
  NumberFormat type = NumberFormat::fp32;
};

// One layer of attention, or several of them; forward and backward pass without an optimizer.
struct AttentionWorkload {
  std::int64_t sequence = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t key_heads = 0;  // 0: as many
  std::uint32_t layers = 1;
  std::int64_t batch = 1;  // samples that are split together
  bool causal = false;
  std::string precision = "amp";
};
struct ProductWorkload {
  DistributedProduct product = DistributedProduct::nt;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::optional<std::int64_t> offset;  // absent: all at once
  std::string precision = "fp32";
};
// A network of convolutions along time; a whole training step.
struct TemporalWorkload {
  std::int64_t sequence = 0;
  TemporalShape shape;
  std::int64_t batch = 1;  // samples that are split together
  std::string precision = "amp";
};

// Functional mode: the GPUs' buffers hold numbers, and packets carry them.
struct FunctionalConfig {
  ValueSet values = ValueSet::normal;
  std::uint64_t seed = 1;
};

enum class Fidelity { cycle, sampled };

struct SchemeConfig {
  SampleScheme sample = SampleScheme::whole;  // name
  bool overlap = true;
  double bucket_MiB = 25;
  double first_bucket_MiB = 1;
  // Of workloads of which a sample can be split.
  std::uint32_t sample_gpus = 0;  // that share a sample; 0: all
  SequenceSplit split = SequenceSplit::plain;
  std::optional<std::int64_t> offset;  // absent: all at once
  PartialSum gradient_sums = PartialSum::all_reduce;
  std::uint32_t ulysses_gpus = 0;  // 0: as the system and the heads suggest
  bool interior_first = true;      // of convolutions along time
  bool sequence_parallel = true;   // megatron: ranks have rows of their own
  bool fused = false;              // megatron: kernels push what is summed to switches
};

struct RunConfig {
  SystemSpec system;
  std::uint32_t gpus = 1;
  std::variant<TraceWorkload, ModelWorkload, CollectiveWorkload, AttentionWorkload, ProductWorkload, TemporalWorkload>
      workload;
  SchemeConfig scheme;
  CollectiveWish collective;   // all_reduce: algorithm, protocol, channels, mover, registered
  std::string algorithm_file;  // all_reduce: of collective.user_algorithm; empty: none
  bool high_priority = false;  // all_reduce: streams of collectives before those of kernels
  HostSpec host;
  std::optional<FunctionalConfig> functional;
  PrivateParts private_parts;        // of communication: an experiment
  std::vector<ResidentSpec> beside;  // blocks on every GPU, beside the workload
  std::uint32_t iterations = 1;
  Fidelity fidelity = Fidelity::cycle;
  std::uint32_t threads = 1;
  std::uint64_t seed = 1;
  Json resolved;  // every default written out but threads, on which no result depends: runs again to the same result
  std::string sha256;  // of the resolved configuration
};

}  // namespace weft
