// The keys of workloads that GPUs can share a sample of, and of how they do.
#include "cli/config/sample_config.h"

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
const EnumNames<TemporalBlock>& block_table() {
  static const EnumNames<TemporalBlock> names{
      {TemporalBlock::plain, "plain"}, {TemporalBlock::tcn, "tcn"}, {TemporalBlock::wavenet, "wavenet"}};
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
void all_fields(Fields& f, TemporalWorkload& temporal) {
  model_name(f, "temporal_convolution");
  TemporalShape& shape = temporal.shape;
  f.count("sequence", temporal.sequence, 1, kMost);
  f.count("channels", shape.channels, 1, 1 << 20);
  f.count("kernel", shape.kernel, 2, 1 << 16);
  f.counts("dilations", shape.dilations, 1, kMost, 4096);
  f.count("layers", shape.layers, 1, 1 << 16, Presence::optional);
  f.choice("block", shape.block, block_table(), Presence::optional);
  if (shape.block == TemporalBlock::wavenet) f.count("skip_channels", shape.skip_channels, 1, 1 << 20);
  f.flag("causal", shape.causal, Presence::optional);
  f.count("batch", temporal.batch, 1, 1 << 24, Presence::optional);
  f.choice("precision", temporal.precision, precision_table(), Presence::optional);
}

template <class Fields>
void all_fields(Fields& f, RunConfig& config) {
  SchemeConfig& scheme = config.scheme;
  f.count("sample_gpus", scheme.sample_gpus, 0, 1 << 24, Presence::optional);
  if (is_temporal(config)) {
    f.flag("interior_first", scheme.interior_first, Presence::optional);
    return;
  }
  f.choice("split", scheme.split, split_table(), Presence::optional);
  offset_field(f, scheme.offset);
  f.choice("gradient_sums", scheme.gradient_sums, sum_table(), Presence::optional);
  f.count("ulysses_gpus", scheme.ulysses_gpus, 0, 1 << 24, Presence::optional);
  f.flag("sequence_parallel", scheme.sequence_parallel, Presence::optional);
  f.flag("fused", scheme.fused, Presence::optional);
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
                                             {SampleScheme::megatron, "megatron"},
                                             {SampleScheme::spatial, "spatial"}};
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
    case SampleScheme::spatial:
      return "one sample over the GPUs: rows of time; convolutions take halos from neighbours";
  }
  return "";
}

void workload_fields(FieldReader& fields, AttentionWorkload& workload) { all_fields(fields, workload); }
void workload_fields(FieldWriter& fields, AttentionWorkload& workload) { all_fields(fields, workload); }
void workload_fields(FieldReader& fields, ProductWorkload& workload) { all_fields(fields, workload); }
void workload_fields(FieldWriter& fields, ProductWorkload& workload) { all_fields(fields, workload); }
void workload_fields(FieldReader& fields, TemporalWorkload& workload) { all_fields(fields, workload); }
void workload_fields(FieldWriter& fields, TemporalWorkload& workload) { all_fields(fields, workload); }
void sample_fields(FieldReader& fields, RunConfig& config) { all_fields(fields, config); }
void sample_fields(FieldWriter& fields, RunConfig& config) { all_fields(fields, config); }

}  // namespace weft
