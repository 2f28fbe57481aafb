#include "workloads/single_sample/attention_layer.h"

#include <fmt/format.h>

#include "sim/error.h"
#include "workloads/single_sample/block_attention.h"
#include "workloads/single_sample/distributed_products.h"
#include "workloads/single_sample/sequence_attention.h"
#include "workloads/single_sample/tensor_parallel.h"

namespace weft {

namespace {

SequenceRanks all_ranks(const SampleSplit& split, std::int64_t tokens) {
  SequenceRanks ranks{split.gpus, split.rank, {}};
  for (std::uint32_t r = 0; r < split.size(); ++r) {
    ranks.positions.push_back(positions_of(split.split, tokens, split.size(), r));
  }
  return ranks;
}

// Of neighbours that exchange heads, one rank each: those who have the same heads.
SequenceRanks ring_of_groups(const SampleSplit& split, const SequenceRanks& ranks) {
  const std::uint32_t inner = split.ulysses_gpus;
  SequenceRanks ring;
  ring.rank = split.rank / inner;
  for (std::uint32_t group = 0; group < split.size() / inner; ++group) {
    ring.gpus.push_back(split.gpus[group * inner + split.rank % inner]);
    Positions rows;
    for (std::uint32_t i = 0; i < inner; ++i) append(rows, ranks.positions[group * inner + i]);
    ring.positions.push_back(rows);
  }
  return ring;
}

AttentionGeometry with_heads_of(AttentionGeometry geometry, std::uint32_t gpus) {
  geometry.heads /= gpus;
  geometry.key_heads /= gpus;
  return geometry;
}

// One head of keys for each of the queries, for schemes whose products are those of equal shapes.
Matrix repeated_heads(TrainingStep& step, const AttentionGeometry& g, const Matrix& in) {
  const std::int64_t repeat = g.heads / g.key_heads;
  if (repeat == 1) return in;
  const Matrix out{step.activation("repeated_heads", in.elements() * repeat), in.rows, in.columns * repeat};
  const std::int64_t heads = g.batch * g.key_heads;
  std::vector<Move> there;
  const auto of_copy = [=](TensorId tensor, std::int64_t copy) {
    return Stack{tensor, heads, in.rows, g.head_size, copy * g.head_size, repeat * g.head_size, out.columns};
  };
  for (std::int64_t copy = 0; copy < repeat; ++copy) {
    there.push_back({beside(in.tensor, in.rows, heads, g.head_size), of_copy(out.tensor, copy)});
  }
  rearrange(step, "repeat_heads", there);
  step.on_backward([&step, in, out, heads, repeat, of_copy, size = g.head_size] {
    const TensorId gradient = step.take_gradient(out.tensor);
    const TensorId sum = step.activation("heads_gradient", in.elements());
    for (std::int64_t copy = 0; copy < repeat; ++copy) {
      rearrange(step, "sum_repeated_heads", {{of_copy(gradient, copy), beside(sum, in.rows, heads, size), copy > 0}});
    }
    step.add_gradient(in.tensor, sum);
  });
  return out;
}

Matrix ulysses(TrainingStep& step, const SampleSplit& split, const AttentionGeometry& geometry, std::uint32_t inner,
               const Projected& in) {
  SampleSplit outer = split;
  outer.ulysses_gpus = inner;
  const std::uint32_t first = split.rank / inner * inner;
  const std::vector<std::uint32_t> neighbours(split.gpus.begin() + first, split.gpus.begin() + first + inner);
  const Projected heads{rows_to_heads(step, neighbours, in.query, geometry.batch),
                        rows_to_heads(step, neighbours, in.key, geometry.batch),
                        rows_to_heads(step, neighbours, in.value, geometry.batch)};
  const SequenceRanks ring = ring_of_groups(outer, all_ranks(split, geometry.tokens));
  const Matrix context = ring_attention(step, with_heads_of(geometry, inner), ring, heads);
  return heads_to_rows(step, neighbours, context, geometry.batch);
}

Matrix distributed(TrainingStep& step, const SampleSplit& split, const AttentionGeometry& geometry, Projected in) {
  const SequenceRanks ranks = all_ranks(split, geometry.tokens);
  if (split.scheme == SampleScheme::single_sample || split.scheme == SampleScheme::ring_self_attention) {
    AttentionGeometry equal = geometry;
    in.key = repeated_heads(step, geometry, in.key);
    in.value = repeated_heads(step, geometry, in.value);
    equal.key_heads = equal.heads;
    return split.scheme == SampleScheme::single_sample ? product_attention(step, split, equal, ranks, in)
                                                       : ring_self_attention(step, split, equal, ranks, in);
  }
  if (split.scheme == SampleScheme::context_parallel) return gathered_attention(step, geometry, ranks, in);
  if (split.scheme == SampleScheme::ulysses) return ulysses(step, split, geometry, split.size(), in);
  if (split.scheme == SampleScheme::ulysses_ring) return ulysses(step, split, geometry, split.ulysses_gpus, in);
  return ring_attention(step, geometry, ranks, in);
}

// Pairs of numbers of a head are turned by an angle: in place, by sines and cosines that lie in a table.
void turn(TrainingStep& step, const Matrix& matrix, std::int64_t head_size) {
  const TensorId table = step.temporary("rotary_table", 4 * matrix.rows * head_size, MemoryClass::activations);
  const auto emit = [&step, table, elements = matrix.elements()](const char* name, TensorId tensor) {
    step.elementwise(name, elements, {tensor, table}, {tensor}, 3);
  };
  emit("rotary", matrix.tensor);
  step.on_backward([&step, emit, tensor = matrix.tensor] {
    const TensorId gradient = step.take_gradient(tensor);
    emit("rotary_backward", gradient);
    step.add_gradient(tensor, gradient);
  });
}

Matrix megatron_layer(TrainingStep& step, const SampleSplit& split, const AttentionGeometry& geometry,
                      const std::string& layer, const Matrix& in, const ProjectionForm& form) {
  const std::uint32_t gpus = split.size();
  const AttentionGeometry own = with_heads_of(geometry, gpus);
  step.in_layer(layer);
  const auto gathered = gather_rows(step, tensor_group(split), in);
  const auto projected = [&](const char* name, std::int64_t heads) {
    step.in_layer(layer + name);
    // Rows of all samples; a row of a matrix of attention has those of one place.
    const Matrix out = column_parallel(step, gathered, heads * own.head_size, form.biased);
    const Matrix rows{out.tensor, out.rows / own.batch, out.columns * own.batch};
    if (form.rotary && std::string(name) != ".value") turn(step, rows, own.head_size);
    return rows;
  };
  const Projected heads{projected(".query", own.heads), projected(".key", own.key_heads),
                        projected(".value", own.key_heads)};
  step.in_layer(layer);
  Positions rows;
  for (const Positions& part : all_ranks(split, geometry.tokens).positions) append(rows, part);
  const Matrix context = attend_whole(step, own, rows, heads.query, heads.key, heads.value);
  step.in_layer(layer + ".output");
  return row_parallel(step, tensor_group(split),
                      {context.tensor, context.rows * own.batch, context.columns / own.batch},
                      geometry.heads * geometry.head_size, form.biased);
}

[[noreturn]] void fail(const char* path, const std::string& message) { throw InputError("", path, message); }

}  // namespace

void validate(const SampleSplit& split, const AttentionGeometry& geometry, bool allow_idle) {
  const std::int64_t gpus = split.size();
  if (split.scheme == SampleScheme::spatial) {
    fail("/scheme/name", "expected a scheme for attention, got \"spatial\", which splits convolutions along time");
  }
  if (geometry.tokens < 1) fail("/workload/sequence", fmt::format("expected 1 or more, got {}", geometry.tokens));
  if (geometry.key_heads < 1 || geometry.heads % geometry.key_heads != 0) {
    fail("/workload/key_heads",
         fmt::format("expected a divisor of {} heads, got {}", geometry.heads, geometry.key_heads));
  }
  if (split.offset < 0) fail("/scheme/offset", fmt::format("expected 1 or more, or 0 for all, got {}", split.offset));
  const std::int64_t rows = rows_of_rank(split.split, geometry.tokens, split.size());
  if (!allow_idle && (gpus - 1) * rows >= geometry.tokens && gpus > 1) {
    fail("/workload/sequence",
         fmt::format("expected enough tokens that each of {} GPUs has some, got {} ({} rows each)", gpus,
                     geometry.tokens, rows));
  }
  const bool exchanges = split.scheme == SampleScheme::ulysses || split.scheme == SampleScheme::megatron;
  const std::int64_t inner = split.scheme == SampleScheme::ulysses_ring ? split.ulysses_gpus : gpus;
  if (split.scheme == SampleScheme::ulysses_ring && (inner < 1 || gpus % inner != 0)) {
    fail("/scheme/ulysses_gpus", fmt::format("expected a divisor of the {} GPUs of a sample, got {}", gpus, inner));
  }
  if ((exchanges || split.scheme == SampleScheme::ulysses_ring) && geometry.key_heads % inner != 0) {
    fail("/scheme", fmt::format("expected GPUs that divide the heads of keys among themselves ({} heads), got {} GPUs",
                                geometry.key_heads, inner));
  }
}

std::int64_t rows_of(const SampleSplit& split, const AttentionGeometry& geometry) {
  const std::int64_t rows = rows_of_rank(split.split, geometry.tokens, split.size());
  return split.has_all_rows() ? rows * split.size() : rows;
}

Matrix attention_layer(TrainingStep& step, const SampleSplit& split, const AttentionGeometry& geometry,
                       const Matrix& in, const ProjectionForm& form) {
  const std::string layer = step.layer();
  if (split.scheme == SampleScheme::megatron) return megatron_layer(step, split, geometry, layer, in, form);
  const std::int64_t batch = geometry.batch;
  const auto projected = [&](const char* name, std::int64_t heads) {
    step.in_layer(layer + name);
    const std::int64_t features = heads * geometry.head_size;
    const Matrix out = form.biased ? linear(step, in, features) : linear_without_bias(step, in, features);
    const Matrix rows{out.tensor, out.rows / batch, out.columns * batch};
    if (form.rotary && std::string(name) != ".value") turn(step, rows, geometry.head_size);
    return rows;
  };
  const Projected heads{projected(".query", geometry.heads), projected(".key", geometry.key_heads),
                        projected(".value", geometry.key_heads)};
  step.in_layer(layer);
  const Matrix context = distributed(step, split, geometry, heads);
  step.in_layer(layer + ".output");
  const Matrix rows{context.tensor, context.rows * batch, context.columns / batch};
  return form.biased ? linear(step, rows, in.columns) : linear_without_bias(step, rows, in.columns);
}

SampleGraph make_attention(const ModelSpec& spec, const AttentionModel& model, const SampleSplit& split) {
  const AttentionGeometry& g = model.geometry;
  TrainingStep step(spec, "attention");
  if (split.has_all_rows()) step.keep_gradients_apart();
  const std::int64_t rows = rows_of(split, g) * g.batch;
  const std::int64_t hidden = g.heads * g.head_size;
  SampleGraph result;
  step.in_layer("attention");
  result.input = step.activation("input", rows * hidden);
  Matrix x{result.input, rows, hidden};
  for (std::uint32_t layer = 0; layer < model.layers; ++layer) {
    step.in_layer(fmt::format("attention.{}", layer));
    x = attention_layer(step, split, g, x);
  }
  step.in_layer("attention");
  run_backward_from(step, x, result);
  step.begin_optimizer();
  result.graph =
      step.finish(static_cast<double>(g.batch) / split.size(), static_cast<double>(g.batch * g.tokens) / split.size());
  return result;
}

Graph make_distributed_product(const ModelSpec& spec, DistributedProduct product, std::int64_t rows,
                               std::int64_t columns, const SampleSplit& split) {
  TrainingStep step(spec, "distributed_product");
  step.in_layer("product");
  const std::int64_t own = rows_of_rank(split.split, rows, split.size());
  const std::int64_t all = own * split.size();
  const std::int64_t of_left = product == DistributedProduct::nt ? columns : all;
  const Stack left = plain(step.activation("left", own * of_left), own, of_left);
  const Stack right = plain(step.activation("right", own * columns), own, columns);
  TensorId result;
  switch (product) {
    case DistributedProduct::nt:
      result = product_nt(step, split, left, right);
      break;
    case DistributedProduct::all:
      result = product_all(step, split, left, right);
      break;
    case DistributedProduct::tn:
      result = product_tn(step, split, left, right);
      break;
  }
  // Who called has the operands, and takes the result.
  step.hold(left.tensor);
  step.hold(right.tensor);
  step.hold(result);
  step.begin_optimizer();
  return step.finish(1.0 / split.size(), static_cast<double>(rows) / split.size());
}

}  // namespace weft
