#include "cli/sample_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "sim/error.h"
#include "workloads/data_parallel.h"
#include "workloads/single_sample/transformer.h"

namespace weft {

namespace {

const EnumNames<SequenceSplit>& split_table() {
  static const EnumNames<SequenceSplit> names{
      {SequenceSplit::plain, "plain"}, {SequenceSplit::zigzag, "zigzag"}, {SequenceSplit::striped, "striped"}};
  return names;
}
const EnumNames<PartialSum>& sum_table() {
  static const EnumNames<PartialSum> names{{PartialSum::all_reduce, "all_reduce"},
                                           {PartialSum::reduce_scatter, "reduce_scatter"}};
  return names;
}
const EnumNames<DistributedProduct>& product_table() {
  static const EnumNames<DistributedProduct> names{
      {DistributedProduct::nt, "nt"}, {DistributedProduct::all, "all"}, {DistributedProduct::tn, "tn"}};
  return names;
}
const EnumNames<std::string>& precision_table() {
  static const EnumNames<std::string> names{{"fp32", "fp32"}, {"tf32", "tf32"}, {"amp", "amp"}};
  return names;
}

constexpr std::int64_t kMost = std::int64_t{1} << 32;

// Absent: all at once.
template <class Fields>
void offset_field(Fields& f, std::optional<std::int64_t>& offset) {
  f.maybe("offset", offset, [](auto& at, const char* key, std::int64_t& value) { at.count(key, value, 1, kMost); });
}

// The name is the variant's, not the user's to choose.
template <class Fields>
void model_name(Fields& f, const char* name) {
  std::string model = name;
  f.text("model", model);
}

template <class Fields>
void all_fields(Fields& f, AttentionWorkload& attention) {
  model_name(f, "attention");
  f.count("sequence", attention.sequence, 1, kMost);
  f.count("hidden", attention.hidden, 1, 1 << 24);
  f.count("heads", attention.heads, 1, 1 << 16);
  f.count("key_heads", attention.key_heads, 0, 1 << 16, Presence::optional);
  f.count("layers", attention.layers, 1, 1 << 16, Presence::optional);
  f.count("batch", attention.batch, 1, 1 << 24, Presence::optional);
  f.flag("causal", attention.causal, Presence::optional);
  f.choice("precision", attention.precision, precision_table(), Presence::optional);
}

template <class Fields>
void all_fields(Fields& f, ProductWorkload& product) {
  model_name(f, "distributed_product");
  f.choice("product", product.product, product_table());
  f.count("rows", product.rows, 1, kMost);
  f.count("columns", product.columns, 1, 1 << 24);
  offset_field(f, product.offset);
  f.choice("precision", product.precision, precision_table(), Presence::optional);
}

template <class Fields>
void all_fields(Fields& f, SchemeConfig& scheme) {
  f.count("sample_gpus", scheme.sample_gpus, 0, 1 << 24, Presence::optional);
  f.choice("split", scheme.split, split_table(), Presence::optional);
  offset_field(f, scheme.offset);
  f.choice("gradient_sums", scheme.gradient_sums, sum_table(), Presence::optional);
  f.count("ulysses_gpus", scheme.ulysses_gpus, 0, 1 << 24, Presence::optional);
}

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
    return make_transformer(spec_of(config, *model), split);
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

const EnumNames<SampleScheme>& scheme_table() {
  static const EnumNames<SampleScheme> names{{SampleScheme::whole, "data_parallel"},
                                             {SampleScheme::single_sample, "single_sample"},
                                             {SampleScheme::ring_self_attention, "ring_self_attention"},
                                             {SampleScheme::ring_attention, "ring_attention"},
                                             {SampleScheme::context_parallel, "context_parallel"},
                                             {SampleScheme::ulysses, "ulysses"},
                                             {SampleScheme::ulysses_ring, "ulysses_ring"},
                                             {SampleScheme::megatron, "megatron"}};
  return names;
}

std::string describe(SampleScheme scheme) {
  switch (scheme) {
    case SampleScheme::whole:
      return "replicas; gradients in buckets, reduced beside the backward pass or after it";
    case SampleScheme::single_sample:
      return "one sample over the GPUs: distributed products nt, all, tn";
    case SampleScheme::ring_self_attention:
      return "one sample over the GPUs: keys go round, then values; scores are kept";
    case SampleScheme::ring_attention:
      return "one sample over the GPUs: keys and values go round, block by block";
    case SampleScheme::context_parallel:
      return "one sample over the GPUs: keys and values are gathered";
    case SampleScheme::ulysses:
      return "one sample over the GPUs: all-to-all between rows and heads";
    case SampleScheme::ulysses_ring:
      return "one sample over the GPUs: heads exchanged among neighbours, keys round the others";
    case SampleScheme::megatron:
      return "one sample over the GPUs: weights and heads distributed, rows gathered and scattered";
  }
  return "";
}

bool is_sample_model(const std::string& model) { return model == "attention" || model == "distributed_product"; }

bool is_sample_workload(const RunConfig& config) {
  const auto* model = std::get_if<ModelWorkload>(&config.workload);
  if (model != nullptr) return transformer_shape(model->model) != nullptr;
  return std::holds_alternative<AttentionWorkload>(config.workload) ||
         std::holds_alternative<ProductWorkload>(config.workload);
}

void workload_fields(FieldReader& fields, AttentionWorkload& workload) { all_fields(fields, workload); }
void workload_fields(FieldWriter& fields, AttentionWorkload& workload) { all_fields(fields, workload); }
void workload_fields(FieldReader& fields, ProductWorkload& workload) { all_fields(fields, workload); }
void workload_fields(FieldWriter& fields, ProductWorkload& workload) { all_fields(fields, workload); }
void sample_fields(FieldReader& fields, SchemeConfig& scheme) { all_fields(fields, scheme); }
void sample_fields(FieldWriter& fields, SchemeConfig& scheme) { all_fields(fields, scheme); }

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
           "bert-large-encoder, gpt2 and llama2-7b");
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
  try {
    validate(sample_split(config, 0), geometry);
  } catch (const InputError& error) {
    throw InputError(file, "", error.what());
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
                    .gpus = {},
                    .rank = gpu % scheme.sample_gpus};
  for (std::uint32_t r = 0; r < scheme.sample_gpus; ++r) split.gpus.push_back(gpu - split.rank + r);
  return split;
}

std::vector<Program> sample_programs(const RunConfig& config) {
  const auto mebibytes = [](double n) { return Bytes(static_cast<std::int64_t>(n * (1 << 20))); };
  const DataParallelSpec spec{.gpus = config.gpus,
                              .overlap = config.scheme.overlap,
                              .bucket = mebibytes(config.scheme.bucket_MiB),
                              .first_bucket = mebibytes(config.scheme.first_bucket_MiB),
                              .iterations = config.iterations};
  std::vector<Program> programs;
  const GpuGroup all = GpuGroup::first(config.gpus);
  for (std::uint32_t gpu = 0; gpu < config.gpus; ++gpu) {
    const SampleSplit split = sample_split(config, gpu);
    std::vector<GpuId> same_part;
    for (std::uint32_t other = split.rank; other < config.gpus; other += split.size())
      same_part.push_back(GpuId{other});
    programs.push_back(sample_parallel(graph_of(config, split), spec, {all, GpuGroup(same_part)}));
  }
  return programs;
}

}  // namespace weft
