#include "workloads/single_sample/block_attention.h"
#include "workloads/single_sample/sequence_attention.h"

namespace weft {

namespace {

// The buffers of all ranks, [ranks][2][rows][columns].
TensorId gather_keys(TrainingStep& step, const SequenceRanks& ranks, TensorId packed) {
  const TensorId all = step.temporary("all_keys", static_cast<std::int64_t>(step.bytes(packed)) * ranks.size(),
                                      MemoryClass::communication);
  communicate(step, "gather_keys", CollectiveKind::all_gather, ranks.gpus, whole(step, packed), whole(step, all));
  return all;
}

}  // namespace

Matrix gathered_attention(TrainingStep& step, const AttentionGeometry& geometry, const SequenceRanks& ranks,
                          const Projected& in) {
  if (ranks.size() == 1) return attend_whole(step, geometry, ranks.own(), in.query, in.key, in.value);
  const std::int64_t rows = in.key.rows;
  const std::int64_t size = in.key.elements();
  Positions keys;
  for (const Positions& positions : ranks.positions) append(keys, positions);
  // Keys of rank n lie behind values of rank n - 1: brought into one matrix each, in the order of the ranks.
  const auto all_rows = rows * std::int64_t{ranks.size()};
  const auto ordered = [&step, rows, size, all_rows, columns = in.key.columns, parts = std::int64_t{ranks.size()}](
                           TensorId gathered, TensorId keys_and_values, bool back) {
    std::vector<Move> moves;
    for (std::int64_t part = 0; part < 2; ++part) {
      for (std::int64_t n = 0; n < parts; ++n) {
        const Stack from = behind(gathered, 1, rows, columns, (2 * n + part) * size);
        const Stack to = behind(keys_and_values, 1, rows, columns, part * all_rows * columns + n * size);
        back ? moves.push_back({to, from}) : moves.push_back({from, to});
      }
    }
    rearrange(step, back ? "order_key_gradients" : "order_keys", moves);
  };
  const TensorId packed = pack_keys(step, in);
  const auto block_of = [geometry, in, ranks, keys, all_rows](TensorId both) {
    return AttentionBlock{geometry,
                          query_heads(geometry, in.query.tensor, in.query.rows),
                          key_heads(geometry, both, all_rows),
                          key_heads(geometry, both, all_rows, all_rows * in.key.columns),
                          ranks.own(),
                          keys};
  };
  const auto gathered_keys = [&step, ranks, packed, ordered] {
    const TensorId gathered = gather_keys(step, ranks, packed);
    const TensorId both =
        step.temporary("ordered_keys", static_cast<std::int64_t>(step.bytes(gathered)), MemoryClass::workspace);
    ordered(gathered, both, false);
    return both;
  };
  const AttentionState state = new_state(step, geometry, in.query.rows, false);
  attend_block(step, block_of(gathered_keys()), state);
  step.on_backward([&step, geometry, ranks, in, state, block_of, gathered_keys, ordered, all_rows] {
    const AttentionGradient gradient =
        prepare_gradient(step, geometry, in.query.rows, state, step.take_gradient(state.output));
    const TensorId both = gathered_keys();
    const std::int64_t elements = 2 * in.key.elements() * ranks.size();
    const TensorId gradients = step.activation("all_key_gradients", elements);
    attend_block_backward(step, block_of(both), state, gradient, key_heads(geometry, gradients, all_rows),
                          key_heads(geometry, gradients, all_rows, all_rows * in.key.columns));
    const TensorId by_rank = step.activation("key_gradients_by_rank", elements);
    ordered(by_rank, gradients, true);
    const TensorId own = step.activation("own_key_gradients", 2 * in.key.elements());
    communicate(step, "scatter_key_gradients", CollectiveKind::reduce_scatter, ranks.gpus, whole(step, by_rank),
                whole(step, own));
    step.add_gradient(in.query.tensor, finish_gradient(step, in.query.elements(), gradient));
    unpack_gradient(step, in, own);
  });
  return {state.output, in.query.rows, in.query.columns};
}

}  // namespace weft
