#include "cli/config/sample_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "cli/config/why_not_in_switch.h"
#include "sim/error.h"
#include "workloads/data_parallel.h"
#include "workloads/single_sample/transformer.h"

namespace weft {

namespace {

ModelSpec spec_of(const RunConfig& config, const std::string& model, const std::string& precision) {
  return {.model = model,
          .batch = 1,
          .precision = precision,
          .compute_units = config.system.gpu.compute_units,
          .block_shared_memory = config.system.gpu.compute_unit.shared_memory_bytes};
}

ModelSpec spec_of(const RunConfig& config, const ModelWorkload& model) {
  ModelSpec spec = spec_of(config, model.model, model.precision);
  spec.batch = model.batch;
  spec.sequence = model.sequence;
  spec.key_heads = model.key_heads;
  spec.layers = model.layers;
  return spec;
}

// Of a workload with attention.
AttentionGeometry geometry_of(const RunConfig& config) {
  if (const auto* attention = std::get_if<AttentionWorkload>(&config.workload)) return geometry_of(*attention);
  const auto& model = std::get<ModelWorkload>(config.workload);
  return geometry_of(*transformer_shape(model.model), spec_of(config, model));
}

Graph graph_of(const RunConfig& config, const SampleSplit& split) {
  if (const auto* model = std::get_if<ModelWorkload>(&config.workload)) {
    const ModelSpec spec = spec_of(config, *model);
    return is_temporal(config) ? make_wavenet(spec, split) : make_transformer(spec, split);
  }
  if (const auto* temporal = std::get_if<TemporalWorkload>(&config.workload)) {
    return make_temporal_convolution(spec_of(config, "temporal_convolution", temporal->precision),
                                     {split, temporal->sequence, temporal->batch}, temporal->shape)
        .graph;
  }
  if (const auto* attention = std::get_if<AttentionWorkload>(&config.workload)) {
    return make_attention(spec_of(config, "attention", attention->precision),
                          {geometry_of(*attention), attention->layers}, split)
        .graph;
  }
  const auto& product = std::get<ProductWorkload>(config.workload);
  SampleSplit with_offset = split;
  with_offset.offset = product.offset.value_or(0);
  return make_distributed_product(spec_of(config, "distributed_product", product.precision), product.product,
                                  product.rows, product.columns, with_offset);
}

}  // namespace

bool is_temporal(const RunConfig& config) {
  const auto* model = std::get_if<ModelWorkload>(&config.workload);
  return std::holds_alternative<TemporalWorkload>(config.workload) || (model != nullptr && model->model == kWaveNet);
}

bool is_sample_workload(const RunConfig& config) {
  const auto* model = std::get_if<ModelWorkload>(&config.workload);
  if (model != nullptr && transformer_shape(model->model) != nullptr) return true;
  return is_temporal(config) || std::holds_alternative<AttentionWorkload>(config.workload) ||
         std::holds_alternative<ProductWorkload>(config.workload);
}

AttentionGeometry geometry_of(const AttentionWorkload& workload) {
  return {workload.sequence,
          workload.batch,
          workload.heads,
          workload.key_heads == 0 ? workload.heads : workload.key_heads,
          workload.hidden / workload.heads,
          workload.causal};
}

void check_sample(RunConfig& config, const std::string& file) {
  SchemeConfig& scheme = config.scheme;
  const auto fail = [&](const char* path, const std::string& message) { throw InputError(file, path, message); };
  if (!is_sample_workload(config)) {
    if (scheme.sample != SampleScheme::whole) {
      fail("/scheme/name",
           "expected \"data_parallel\": samples can be split of attention, distributed_product, "
           "bert-large-encoder, gpt2, llama2-7b, temporal_convolution and wavenet");
    }
    return;
  }
  if (scheme.sample == SampleScheme::whole) scheme.sample_gpus = 1;
  if (scheme.sample_gpus == 0) scheme.sample_gpus = config.gpus;
  if (config.gpus % scheme.sample_gpus != 0) {
    fail("/scheme/sample_gpus", fmt::format("expected a divisor of {} GPUs, got {}", config.gpus, scheme.sample_gpus));
  }
  if (std::holds_alternative<ProductWorkload>(config.workload)) {
    const auto& product = std::get<ProductWorkload>(config.workload);
    if (scheme.sample != SampleScheme::single_sample) {
      fail("/scheme/name", "expected \"single_sample\" for a distributed product");
    }
    if (product.rows < scheme.sample_gpus) {
      fail("/workload/rows",
           fmt::format("expected a row for each of {} GPUs, got {}", scheme.sample_gpus, product.rows));
    }
    return;
  }
  const auto checked = [&](const auto& check) {
    try {
      check();
    } catch (const InputError& error) {
      throw InputError(file, "", error.what());
    }
  };
  if (is_temporal(config)) {
    checked([&] { validate(time_axis(config, 0)); });
    return;
  }
  const auto* attention = std::get_if<AttentionWorkload>(&config.workload);
  if (attention != nullptr && attention->hidden % attention->heads != 0) {
    fail("/workload/heads",
         fmt::format("expected a divisor of hidden = {}, got {}", attention->hidden, attention->heads));
  }
  const AttentionGeometry geometry = geometry_of(config);
  if (scheme.ulysses_gpus == 0) {
    // Neighbours in a node, as far as heads go round; on one node half of them.
    const auto& cluster = config.system.network.cluster;
    const std::uint32_t node = cluster ? cluster->gpus_per_node : std::max(1U, scheme.sample_gpus / 2);
    const auto heads = static_cast<std::uint32_t>(std::max<std::int64_t>(1, geometry.key_heads));
    scheme.ulysses_gpus = std::gcd(std::gcd(node, scheme.sample_gpus), heads);
  }
  checked([&] {
    validate(sample_split(config, 0), geometry);
    const auto* model = std::get_if<ModelWorkload>(&config.workload);
    if (model != nullptr) validate(*transformer_shape(model->model), sample_split(config, 0));
  });
  if (!scheme.sequence_parallel && scheme.sample != SampleScheme::megatron) {
    fail("/scheme/sequence_parallel", "expected true: only megatron can do without");
  }
  if (scheme.fused && scheme.sample != SampleScheme::megatron) {
    fail("/scheme/fused", "expected false: only megatron has kernels whose output is summed as it is");
  }
}

SampleSplit sample_split(const RunConfig& config, std::uint32_t gpu) {
  const SchemeConfig& scheme = config.scheme;
  SampleSplit split{.scheme = scheme.sample,
                    .split = scheme.split,
                    .offset = scheme.offset.value_or(0),
                    .sums = scheme.gradient_sums,
                    .overlap = scheme.overlap,
                    .ulysses_gpus = scheme.ulysses_gpus,
                    .interior_first = scheme.interior_first,
                    .sequence_parallel = scheme.sequence_parallel,
                    .fused = scheme.fused,
                    .gpus = {},
                    .rank = gpu % scheme.sample_gpus};
  for (std::uint32_t r = 0; r < scheme.sample_gpus; ++r) split.gpus.push_back(gpu - split.rank + r);
  return split;
}

TimeAxis time_axis(const RunConfig& config, std::uint32_t gpu) {
  const SampleSplit split = sample_split(config, gpu);
  if (const auto* model = std::get_if<ModelWorkload>(&config.workload)) {
    return wavenet_axis(spec_of(config, *model), split);
  }
  const auto& temporal = std::get<TemporalWorkload>(config.workload);
  return {split, temporal.sequence, temporal.batch};
}

std::vector<Program> sample_programs(const RunConfig& config, std::vector<std::string>* notes) {
  const auto mebibytes = [](double n) { return Bytes(static_cast<std::int64_t>(n * (1 << 20))); };
  const DataParallelSpec spec{.gpus = config.gpus,
                              .overlap = config.scheme.overlap,
                              .bucket = mebibytes(config.scheme.bucket_MiB),
                              .first_bucket = mebibytes(config.scheme.first_bucket_MiB),
                              .iterations = config.iterations,
                              .high_priority = config.high_priority};
  std::vector<Program> programs;
  const GpuGroup all = GpuGroup::first(config.gpus);
  for (std::uint32_t gpu = 0; gpu < config.gpus; ++gpu) {
    SampleSplit split = sample_split(config, gpu);
    const std::string fault = split.fused ? fault_of_group(config, split.gpus) : "";
    if (!fault.empty()) {
      split.fused = false;
      if (notes != nullptr && split.rank == 0)
        notes->push_back(fmt::format("Kernels are not fused with their sums: {}.", fault));
    }
    std::vector<GpuId> same_part;
    for (std::uint32_t other = split.rank; other < config.gpus; other += split.size())
      same_part.push_back(GpuId{other});
    programs.push_back(sample_parallel(graph_of(config, split), spec, {all, GpuGroup(same_part)}));
  }
  return programs;
}

}  // namespace weft
