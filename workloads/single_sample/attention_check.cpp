#include "workloads/single_sample/attention_check.h"

#include "workloads/single_sample/attention_reference.h"

namespace weft {

namespace {

SamplePart part_of(const AttentionGeometry& geometry, const SampleSplit& split, std::uint32_t rank,
                   const std::string& name) {
  const std::int64_t hidden = geometry.heads * geometry.head_size;
  SamplePart part;
  part.columns = part.own_columns = hidden;
  if (name.find('.') == std::string::npos) {
    part.rows = geometry.tokens * geometry.batch;
    const bool all = split.has_all_rows();
    part.repeated = all && rank > 0;
    for (std::uint32_t r = all ? 0 : rank; r <= (all ? split.size() - 1 : rank); ++r) {
      for (const std::int64_t place : listed(positions_of(split.split, geometry.tokens, split.size(), r))) {
        part.take(place * geometry.batch, geometry.batch);
      }
    }
    return part;
  }
  const bool keys = name.starts_with("key") || name.starts_with("value");
  const std::int64_t features = keys ? geometry.key_heads * geometry.head_size : hidden;
  const bool distributed = split.scheme == SampleScheme::megatron;
  const std::int64_t share = distributed ? split.size() : 1;
  const bool bias = name.find(".bias") != std::string::npos;
  if (bias) part.columns = part.own_columns = 1;
  part.rows = features;
  if (!name.starts_with("output")) {
    part.take(distributed ? rank * features / share : 0, features / share);
  } else {
    part.take(0, features);
    part.repeated = bias && split.has_all_rows() && rank > 0;
    if (!bias) {
      part.own_columns = hidden / share;
      part.first_column = distributed ? rank * part.own_columns : 0;
    }
  }
  return part;
}

// Without the layers around it.
std::string short_name(const std::string& name) {
  const std::string layer = "attention.0.";
  if (name.starts_with(layer)) return name.substr(layer.size());
  return name.substr(name.find('.') + 1);
}

}  // namespace

ValueErrors check_attention(const AttentionGeometry& geometry, const SampleSplit& split, std::uint32_t ranks,
                            std::uint64_t seed) {
  const ModelSpec spec{.model = "attention", .batch = 1, .precision = "fp32", .compute_units = 8};
  SampleSplit shared = split;
  for (std::uint32_t r = 0; r < ranks; ++r) shared.gpus.push_back(r);
  SampleCheck check;
  for (shared.rank = 0; shared.rank < ranks; ++shared.rank) {
    validate(shared, geometry, true);
    check.graphs.push_back(make_attention(spec, {geometry, 1}, shared));
  }
  check.operands = random_operands(geometry, seed);
  check.expected = reference_attention(geometry, check.operands);
  check.short_name = short_name;
  check.part_of = [&](std::uint32_t rank, const std::string& name) { return part_of(geometry, shared, rank, name); };
  return check_values(std::move(check));
}

}  // namespace weft
