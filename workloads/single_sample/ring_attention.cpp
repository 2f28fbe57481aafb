#include <algorithm>
#include <array>

#include "workloads/single_sample/block_attention.h"
#include "workloads/single_sample/sequence_attention.h"

namespace weft {

namespace {

// One rank's way round the ring: in step j it has the keys of the rank that is j places before it.
class RingAttention {
 public:
  RingAttention(TrainingStep& step, const AttentionGeometry& geometry, SequenceRanks ranks, const Projected& in)
      : step_(&step), geometry_(geometry), ranks_(std::move(ranks)), in_(in) {}

  Matrix forward() {
    packed_ = pack_keys(*step_, in_);
    std::uint32_t last = 0;
    for (std::uint32_t j = 0; j < ranks_.size(); ++j) last = works(j) ? j : last;
    state_ = new_state(*step_, geometry_, in_.query.rows, last > 0);
    const auto buffers = new_buffers("keys_of_others", bytes(packed_), MemoryClass::communication);
    TensorId here = packed_;
    for (std::uint32_t j = 0; j < ranks_.size(); ++j) {
      const TensorId next = buffers[j % 2];
      if (j + 1 < ranks_.size()) shift("ring_keys", here, next);
      if (works(j)) attend_block(*step_, block(here, j, j == 0, j == last), state_);
      here = next;
    }
    return {state_.output, in_.query.rows, in_.query.columns};
  }

  void backward() {
    const AttentionGradient gradient =
        prepare_gradient(*step_, geometry_, in_.query.rows, state_, step_->take_gradient(state_.output));
    const std::int64_t elements = 2 * in_.key.elements();
    const auto keys = new_buffers("keys_of_others", bytes(packed_), MemoryClass::communication);
    const auto sums = new_buffers("key_gradients_of_others", 4 * elements, MemoryClass::communication);
    const TensorId part = step_->activation("key_gradient_part", elements);
    TensorId here = packed_;
    // What is summed for the keys that are here comes while the kernel computes what this rank adds.
    TensorId sum = sums[0];
    for (std::uint32_t j = 0; j < ranks_.size(); ++j) {
      const TensorId next = keys[j % 2];
      if (j + 1 < ranks_.size()) shift("ring_keys_backward", here, next);
      if (works(j)) {
        const std::int64_t rows = in_.key.rows;
        attend_block_backward(*step_, block(here, j, true, true), state_, gradient, key_heads(geometry_, part, rows),
                              key_heads(geometry_, part, rows, in_.key.elements()));
        add(part, sum, elements, j == 0);
      }
      // From the last one they go home.
      if (ranks_.size() > 1) {
        const TensorId arrives = sum == sums[0] ? sums[1] : sums[0];
        shift("ring_key_gradients", sum, arrives, DataType::fp32);
        sum = arrives;
      }
      here = next;
    }
    step_->add_gradient(in_.query.tensor, finish_gradient(*step_, in_.query.elements(), gradient));
    unpack_gradient(*step_, in_, sum);
  }

 private:
  [[nodiscard]] std::uint32_t source(std::uint32_t j) const {
    return (ranks_.rank + ranks_.size() - j) % ranks_.size();
  }
  // A rank looks at its own keys in any case: its rows must have a result.
  [[nodiscard]] bool works(std::uint32_t j) const {
    return j == 0 || looks(geometry_, ranks_.own(), ranks_.positions[source(j)]);
  }
  [[nodiscard]] std::int64_t bytes(TensorId tensor) const { return static_cast<std::int64_t>(step_->bytes(tensor)); }

  [[nodiscard]] AttentionBlock block(TensorId packed, std::uint32_t j, bool first, bool last) const {
    const std::int64_t rows = in_.key.rows;
    return {geometry_,
            query_heads(geometry_, in_.query.tensor, in_.query.rows),
            key_heads(geometry_, packed, rows),
            key_heads(geometry_, packed, rows, in_.key.elements()),
            ranks_.own(),
            ranks_.positions[source(j)],
            first,
            last};
  }

  std::array<TensorId, 2> new_buffers(const char* name, std::int64_t bytes, MemoryClass memory_class) {
    return {step_->temporary(name, bytes, memory_class), step_->temporary(name, bytes, memory_class)};
  }

  void shift(const char* name, TensorId from, TensorId to, std::optional<DataType> type = std::nullopt) {
    communicate(*step_, name, CollectiveKind::shift, ranks_.gpus, whole(*step_, from), whole(*step_, to), type);
  }

  void add(TensorId part, TensorId sum, std::int64_t elements, bool first) {
    std::vector<TensorId> reads{part};
    if (!first) reads.push_back(sum);
    const OpId op = step_->elementwise("add_key_gradients", elements, reads, {sum});
    step_->computes(op, [=](TensorValues& values) {
      copy(values, behind(part, 1, 1, elements), behind(sum, 1, 1, elements), !first);
    });
  }

  TrainingStep* step_;
  AttentionGeometry geometry_;
  SequenceRanks ranks_;
  Projected in_;
  TensorId packed_;
  AttentionState state_;
};

}  // namespace

TensorId pack_keys(TrainingStep& step, const Projected& in) {
  const std::int64_t elements = in.key.elements();
  const TensorId packed = step.activation("keys_and_values", 2 * elements);
  rearrange(step, "pack_keys",
            {{behind(in.key.tensor, 1, 1, elements), behind(packed, 1, 1, elements)},
             {behind(in.value.tensor, 1, 1, elements), behind(packed, 1, 1, elements, elements)}});
  return packed;
}

void unpack_gradient(TrainingStep& step, const Projected& in, TensorId packed) {
  const std::int64_t elements = in.key.elements();
  const TensorId key = step.activation("key_gradient", elements);
  const TensorId value = step.activation("value_gradient", elements);
  const OpId op = step.elementwise("unpack_key_gradients", 2 * elements, {packed}, {key, value}, 0);
  step.computes(op, [=](TensorValues& values) {
    copy(values, behind(packed, 1, 1, elements), behind(key, 1, 1, elements));
    copy(values, behind(packed, 1, 1, elements, elements), behind(value, 1, 1, elements));
  });
  step.add_gradient(in.key.tensor, key);
  step.add_gradient(in.value.tensor, value);
}

Matrix ring_attention(TrainingStep& step, const AttentionGeometry& geometry, const SequenceRanks& ranks,
                      const Projected& in) {
  if (ranks.size() == 1) return attend_whole(step, geometry, ranks.own(), in.query, in.key, in.value);
  const auto ring = std::make_shared<RingAttention>(step, geometry, ranks, in);
  const Matrix out = ring->forward();
  step.on_backward([ring] { ring->backward(); });
  return out;
}

}  // namespace weft
