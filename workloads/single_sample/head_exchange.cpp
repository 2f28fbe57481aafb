#include "workloads/single_sample/sequence_attention.h"

namespace weft {

namespace {

// A matrix of some rows is sent as [ranks][rows][batch][heads of one rank]; a matrix of all rows is that already.
struct Exchange {
  std::vector<std::uint32_t> gpus;
  std::int64_t rows = 0;  // of a rank
  std::int64_t batch = 1;
  std::int64_t columns = 0;  // of all heads of a sample
  [[nodiscard]] std::int64_t ranks() const { return static_cast<std::int64_t>(gpus.size()); }
  [[nodiscard]] std::int64_t elements() const { return rows * batch * columns; }
};

// Rows of all heads and, for each rank, its heads of them.
std::vector<Move> sorted_by_rank(const Exchange& e, TensorId rows, TensorId by_rank, bool back) {
  const std::int64_t part = e.columns / e.ranks();
  std::vector<Move> moves;
  for (std::int64_t n = 0; n < e.ranks(); ++n) {
    Stack of_rows = behind(rows, 1, e.rows * e.batch, e.columns, n * part);
    of_rows.columns = part;
    const Stack sorted = behind(by_rank, 1, e.rows * e.batch, part, n * e.elements() / e.ranks());
    back ? moves.push_back({sorted, of_rows}) : moves.push_back({of_rows, sorted});
  }
  return moves;
}

TensorId to_heads(TrainingStep& step, const Exchange& e, TensorId rows) {
  const TensorId sorted =
      step.temporary("heads_to_send", e.elements() * step.precision().element_bytes, MemoryClass::communication);
  rearrange(step, "sort_heads", sorted_by_rank(e, rows, sorted, false));
  const TensorId result = step.activation("rows_of_heads", e.elements());
  communicate(step, "exchange_heads", CollectiveKind::all_to_all, e.gpus, whole(step, sorted), whole(step, result));
  return result;
}

TensorId to_rows(TrainingStep& step, const Exchange& e, TensorId heads) {
  const TensorId sorted =
      step.temporary("heads_received", e.elements() * step.precision().element_bytes, MemoryClass::communication);
  communicate(step, "exchange_rows", CollectiveKind::all_to_all, e.gpus, whole(step, heads), whole(step, sorted));
  const TensorId result = step.activation("heads_of_rows", e.elements());
  rearrange(step, "join_heads", sorted_by_rank(e, result, sorted, true));
  return result;
}

}  // namespace

Matrix rows_to_heads(TrainingStep& step, const std::vector<std::uint32_t>& gpus, const Matrix& in, std::int64_t batch) {
  const Exchange e{gpus, in.rows, batch, in.columns / batch};
  if (e.ranks() == 1) return in;
  const Matrix out{to_heads(step, e, in.tensor), in.rows * e.ranks(), in.columns / e.ranks()};
  step.on_backward(
      [&step, e, in, out] { step.add_gradient(in.tensor, to_rows(step, e, step.take_gradient(out.tensor))); });
  return out;
}

Matrix heads_to_rows(TrainingStep& step, const std::vector<std::uint32_t>& gpus, const Matrix& in, std::int64_t batch) {
  const auto ranks = static_cast<std::int64_t>(gpus.size());
  if (ranks == 1) return in;
  const Exchange e{gpus, in.rows / ranks, batch, in.columns / batch * ranks};
  const Matrix out{to_rows(step, e, in.tensor), e.rows, in.columns * ranks};
  step.on_backward(
      [&step, e, in, out] { step.add_gradient(in.tensor, to_heads(step, e, step.take_gradient(out.tensor))); });
  return out;
}

}  // namespace weft
