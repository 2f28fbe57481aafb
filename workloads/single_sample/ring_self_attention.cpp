#include <array>
#include <cmath>
#include <functional>
#include <memory>

#include "workloads/single_sample/block_attention.h"
#include "workloads/single_sample/sequence_attention.h"

namespace weft {

namespace {

class RingSelfAttention {
 public:
  RingSelfAttention(TrainingStep& step, const SampleSplit& split, const AttentionGeometry& geometry,
                    SequenceRanks ranks, const Projected& in)
      : step_(&step), sums_(split.sums), geometry_(geometry), ranks_(std::move(ranks)), in_(in) {}

  Matrix forward() {
    const std::int64_t heads = geometry_.batch * geometry_.heads;
    const TensorId scores = step_->activation("scores", heads * rows() * all_rows());
    go_round("ring_keys", in_.key.tensor, [&](TensorId keys, std::uint32_t of, bool) {
      product(*step_, "scores", rows_of(in_.query.tensor), rows_of(keys), columns(scores, of), {false, true, 1, false});
    });
    Positions keys;
    for (const Positions& positions : ranks_.positions) append(keys, positions);
    probabilities_ = row_softmax(*step_, behind(scores, heads, rows(), all_rows()), scale(),
                                 {ranks_.own(), keys, geometry_.tokens, geometry_.causal});
    output_ = {step_->activation("context", in_.query.elements()), rows(), in_.query.columns};
    go_round("ring_values", in_.value.tensor, [&](TensorId values, std::uint32_t of, bool first) {
      product(*step_, "context", columns(probabilities_, of), rows_of(values), rows_of(output_.tensor),
              {false, false, 1, !first});
    });
    return output_;
  }

  void backward() {
    const std::int64_t heads = geometry_.batch * geometry_.heads;
    const TensorId gradient = step_->take_gradient(output_.tensor);
    const TensorId of_probabilities = step_->activation("probabilities_gradient", heads * rows() * all_rows());
    go_round("ring_values_backward", in_.value.tensor, [&](TensorId values, std::uint32_t of, bool) {
      product(*step_, "probabilities_gradient", rows_of(gradient), rows_of(values), columns(of_probabilities, of),
              {false, true, 1, false});
    });
    step_->add_gradient(in_.value.tensor, summed("value_gradient", probabilities_, gradient));
    const TensorId of_scores =
        row_softmax_backward(*step_, behind(probabilities_, heads, rows(), all_rows()), of_probabilities, scale());
    const TensorId of_query = step_->activation("query_gradient", in_.query.elements());
    go_round("ring_keys_backward", in_.key.tensor, [&](TensorId keys, std::uint32_t of, bool first) {
      product(*step_, "query_gradient", columns(of_scores, of), rows_of(keys), rows_of(of_query),
              {false, false, 1, !first});
    });
    step_->add_gradient(in_.query.tensor, of_query);
    step_->add_gradient(in_.key.tensor, summed("key_gradient", of_scores, in_.query.tensor));
  }

 private:
  [[nodiscard]] std::int64_t rows() const { return in_.query.rows; }
  [[nodiscard]] std::int64_t all_rows() const { return rows() * ranks_.size(); }
  [[nodiscard]] float scale() const { return 1 / std::sqrt(static_cast<float>(geometry_.head_size)); }
  [[nodiscard]] Stack rows_of(TensorId tensor) const { return query_heads(geometry_, tensor, rows()); }
  // The columns of rows of scores that belong to the keys of one rank.
  [[nodiscard]] Stack columns(TensorId scores, std::uint32_t of) const {
    Stack stack = behind(scores, geometry_.batch * geometry_.heads, rows(), all_rows(), of * rows());
    stack.columns = rows();
    return stack;
  }

  // Each rank's `own` comes by, beginning with this rank's; the next one is under way meanwhile.
  void go_round(const char* name, TensorId own, const std::function<void(TensorId, std::uint32_t, bool)>& work) {
    const auto bytes = static_cast<std::int64_t>(step_->bytes(own));
    std::array<TensorId, 2> buffers;
    if (ranks_.size() > 1) {
      for (TensorId& buffer : buffers) buffer = step_->temporary("ring_buffer", bytes, MemoryClass::communication);
    }
    TensorId here = own;
    for (std::uint32_t j = 0; j < ranks_.size(); ++j) {
      const TensorId next = buffers[j % 2];
      if (j + 1 < ranks_.size()) {
        communicate(*step_, name, CollectiveKind::shift, ranks_.gpus, whole(*step_, here), whole(*step_, next));
      }
      work(here, (ranks_.rank + ranks_.size() - j) % ranks_.size(), j == 0);
      here = next;
    }
  }

  // Columns of all ranks, transposed, times rows of this one: a sum over ranks of which each keeps its rows.
  TensorId summed(const char* name, TensorId scores, TensorId factor) {
    const std::int64_t size = in_.query.elements();
    const TensorId result = step_->activation(name, size);
    const TensorId all = ranks_.size() == 1 ? result : step_->activation("gradient_parts", ranks_.size() * size);
    for (std::uint32_t of = 0; of < ranks_.size(); ++of) {
      Stack part = rows_of(all);
      part.offset = of * size;
      product(*step_, name, columns(scores, of), rows_of(factor), part, {true, false, 1, false});
    }
    if (ranks_.size() == 1) return result;
    if (sums_ == PartialSum::reduce_scatter) {
      communicate(*step_, "sum_gradients", CollectiveKind::reduce_scatter, ranks_.gpus, whole(*step_, all),
                  whole(*step_, result));
      return result;
    }
    communicate(*step_, "sum_gradients", CollectiveKind::all_reduce, ranks_.gpus, whole(*step_, all),
                whole(*step_, all));
    rearrange(*step_, "keep_own", {{behind(all, 1, 1, size, ranks_.rank * size), behind(result, 1, 1, size)}});
    return result;
  }

  TrainingStep* step_;
  PartialSum sums_;
  AttentionGeometry geometry_;
  SequenceRanks ranks_;
  Projected in_;
  TensorId probabilities_;
  Matrix output_;
};

}  // namespace

Matrix ring_self_attention(TrainingStep& step, const SampleSplit& split, const AttentionGeometry& geometry,
                           const SequenceRanks& ranks, const Projected& in) {
  const auto ring = std::make_shared<RingSelfAttention>(step, split, geometry, ranks, in);
  const Matrix out = ring->forward();
  step.on_backward([ring] { ring->backward(); });
  return out;
}

}  // namespace weft
