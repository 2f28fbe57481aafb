#include "workloads/single_sample/distributed_products.h"

#include <fmt/format.h>

#include <algorithm>

namespace weft {

namespace {

// Gathers parts of a matrix one after another, the next one beside what is done with this one where that is wanted.
// Then two buffers take turns, otherwise each part has a new one, as the name of the program's buffer goes from one
// to the next.
class GatheredParts {
 public:
  using Part = std::function<TensorRange(std::int64_t index)>;
  GatheredParts(TrainingStep& step, const SampleSplit& split, const char* name, std::int64_t parts, std::uint64_t most,
                Part part)
      : step_(&step), split_(&split), name_(name), parts_(parts), most_(most), part_(std::move(part)) {}

  // The tensor that holds part `index` of all ranks; the one after it is under way.
  TensorId take(std::int64_t index) {
    if (split_->size() == 1) return part_(index).tensor;
    if (index == 0) gather(0);
    if (split_->overlap && index + 1 < parts_) gather(index + 1);
    if (!split_->overlap && index > 0) gather(index);
    return buffers_[static_cast<std::size_t>(split_->overlap ? index % 2 : index)];
  }

 private:
  void gather(std::int64_t index) {
    const TensorRange own = part_(index);
    if (!split_->overlap || index < 2) {
      const std::uint64_t bytes = split_->overlap ? most_ : own.bytes;
      buffers_.push_back(step_->temporary(fmt::format("{}_gathered", name_),
                                          static_cast<std::int64_t>(bytes) * split_->size(),
                                          MemoryClass::communication));
    }
    const TensorId to = buffers_[static_cast<std::size_t>(split_->overlap ? index % 2 : index)];
    communicate(*step_, fmt::format("{}_gather", name_), CollectiveKind::all_gather, split_->gpus, own,
                {to, 0, own.bytes * split_->size()});
    // The name goes on holding what was gathered before, until this is there.
    if (!split_->overlap && index > 0) step_->hold(buffers_[static_cast<std::size_t>(index - 1)]);
  }

  TrainingStep* step_;
  const SampleSplit* split_;
  const char* name_;
  std::int64_t parts_;
  std::uint64_t most_;
  Part part_;
  std::vector<TensorId> buffers_;
};

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

TensorId product_nt(TrainingStep& step, const SampleSplit& split, const Stack& a, const Stack& b) {
  const std::int64_t ranks = split.size();
  const std::int64_t rows = b.rows;
  const std::int64_t offset = split.offset == 0 ? rows : std::min(split.offset, rows);
  const std::int64_t parts = divide_up(rows, offset);
  const TensorId blocks = step.activation("nt_blocks", ranks * a.count * a.rows * rows);
  const auto part_rows = [&](std::int64_t i) { return std::min(offset, rows - i * offset); };
  GatheredParts gathered(
      step, split, "nt", parts, static_cast<std::uint64_t>(offset * b.row_stride * step.precision().element_bytes),
      [&](std::int64_t i) {
        return elements(step, b.tensor, b.offset + i * offset * b.row_stride, part_rows(i) * b.row_stride);
      });
  TensorId partial;
  TensorId last;
  for (std::int64_t i = 0; i < parts; ++i) {
    const std::int64_t o = part_rows(i);
    last = gathered.take(i);
    const TensorId before = partial;
    partial = step.temporary("nt_partial", ranks * a.count * a.rows * o * step.precision().element_bytes,
                             MemoryClass::workspace);
    const std::int64_t first = ranks == 1 ? b.offset + i * offset * b.row_stride : 0;
    // All ranks' rows are the matrices of one batched product.
    Stack right{last, ranks * b.count, o, b.columns, first, b.stride, b.row_stride};
    const OpId op = product(step, "nt", a, right, behind(partial, ranks * a.count, a.rows, o), {false, true, 1, false});
    step.computes(op, [=](TensorValues& values) {
      for (std::int64_t n = 0; n < ranks; ++n) {
        const Stack of_rank{last, b.count, o, b.columns, first + n * o * b.row_stride, b.stride, b.row_stride};
        multiply(values, a, of_rank, behind(partial, a.count, a.rows, o, n * a.count * a.rows * o),
                 {false, true, 1, false});
      }
    });
    if (i > 0) step.hold(before);
    Stack place = behind(blocks, ranks * a.count, a.rows, rows, i * offset);
    place.columns = o;
    rearrange(step, "nt_place", {{behind(partial, ranks * a.count, a.rows, o), place}});
  }
  const TensorId result = step.activation("nt_result", a.count * a.rows * ranks * rows);
  std::vector<Move> moves;
  for (std::int64_t n = 0; n < ranks; ++n) {
    Stack to = behind(result, a.count, a.rows, ranks * rows, n * rows);
    to.columns = rows;
    moves.push_back({behind(blocks, a.count, a.rows, rows, n * a.count * a.rows * rows), to});
  }
  rearrange(step, "nt_order", moves);
  step.hold(partial);
  if (ranks > 1) step.hold(last);
  return result;
}

TensorId product_all(TrainingStep& step, const SampleSplit& split, const Stack& a, const Stack& b) {
  const std::int64_t ranks = split.size();
  const std::int64_t rows = a.rows;
  const std::int64_t count = a.count;
  const std::int64_t offset = split.offset == 0 ? b.columns : std::min(split.offset, b.columns);
  const std::int64_t parts = divide_up(b.columns, offset);
  const std::int64_t element_bytes = step.precision().element_bytes;
  const auto width = [&](std::int64_t i) { return std::min(offset, b.columns - i * offset); };

  const TensorId splits = step.activation("all_splits", ranks * count * rows * rows);
  std::vector<Move> moves;
  for (std::int64_t n = 0; n < ranks; ++n) {
    Stack from = behind(a.tensor, count, rows, ranks * rows, a.offset + n * rows);
    from.columns = rows;
    moves.push_back({from, behind(splits, count, rows, rows, n * count * rows * rows)});
  }
  rearrange(step, "all_split", moves);
  const TensorId blocks = step.activation("all_blocks", ranks * count * rows * b.columns);

  // Columns that do not lie together are copied first; the copy's name holds it until the next one.
  TensorId columns = b.tensor;
  const auto part = [&](std::int64_t i) {
    if (parts == 1) return elements(step, b.tensor, b.offset, rows * b.row_stride);
    const TensorId before = columns;
    columns = step.temporary("all_columns", rows * b.count * width(i) * element_bytes, MemoryClass::communication);
    Stack from = b;
    from.offset += i * offset;
    from.columns = width(i);
    rearrange(step, "all_columns", {{from, beside(columns, rows, b.count, width(i))}});
    if (i > 0 && !split.overlap) step.hold(before);
    return whole(step, columns);
  };
  GatheredParts gathered(step, split, "all", parts, static_cast<std::uint64_t>(rows * b.count * offset * element_bytes),
                         part);
  TensorId block;
  TensorId last;
  for (std::int64_t i = 0; i < parts; ++i) {
    const std::int64_t o = width(i);
    last = gathered.take(i);
    const std::int64_t first = ranks == 1 && parts == 1 ? b.offset : 0;
    const TensorId before = block;
    block = step.temporary("all_block", ranks * count * rows * o * element_bytes, MemoryClass::workspace);
    const Stack left = behind(splits, ranks * count, rows, rows);
    const Stack right = {last, ranks * b.count, rows, o, first, o, b.count * o};
    const OpId op = product(step, "all", left, right, behind(block, ranks * count, rows, o), {});
    step.computes(op, [=](TensorValues& values) {
      for (std::int64_t n = 0; n < ranks; ++n) {
        multiply(values, behind(splits, count, rows, rows, n * count * rows * rows),
                 beside(last, rows, b.count, o, first + n * rows * b.count * o),
                 behind(block, count, rows, o, n * count * rows * o), {});
      }
    });
    if (i > 0) step.hold(before);
    Stack place = behind(blocks, ranks * count, rows, b.columns, i * offset);
    place.columns = o;
    rearrange(step, "all_place", {{behind(block, ranks * count, rows, o), place}});
  }
  const TensorId result = step.activation("all_result", count * rows * b.columns);
  const OpId sum = step.elementwise("all_sum", ranks * count * rows * b.columns, {blocks}, {result});
  step.computes(sum, [=](TensorValues& values) {
    sum_parts(values, behind(blocks, ranks * count, rows, b.columns), behind(result, count, rows, b.columns), ranks);
  });
  step.hold(block);
  step.hold(splits);
  if (columns != b.tensor) step.hold(columns);
  if (ranks > 1) step.hold(last);
  return result;
}

TensorId product_tn(TrainingStep& step, const SampleSplit& split, const Stack& a, const Stack& b) {
  const std::int64_t ranks = split.size();
  const std::int64_t rows = b.rows;
  const std::int64_t own = rows * b.count * b.columns;
  const TensorId result = step.activation("tn_result", own);
  const auto block_of_a = [&](std::int64_t n) {
    Stack block = behind(a.tensor, a.count, a.rows, ranks * rows, a.offset + n * rows);
    block.columns = rows;
    return block;
  };
  if (ranks == 1) {
    product(step, "tn", block_of_a(0), b, beside(result, rows, b.count, b.columns), {true, false, 1, false});
    return result;
  }
  if (split.sums == PartialSum::reduce_scatter) {
    const TensorId parts = step.activation("tn_parts", ranks * own);
    for (std::int64_t n = 0; n < ranks; ++n) {
      product(step, "tn", block_of_a(n), b, beside(parts, rows, b.count, b.columns, n * own), {true, false, 1, false});
    }
    communicate(step, "tn_reduce_scatter", CollectiveKind::reduce_scatter, split.gpus, whole(step, parts),
                whole(step, result));
    return result;
  }
  OpId last;
  for (std::int64_t n = 0; n < ranks; ++n) {
    const bool keeps = n == split.rank;
    const TensorId part = step.activation("tn_part", own);
    const TensorId sum =
        keeps ? result : step.temporary("tn_sum", own * step.precision().element_bytes, MemoryClass::communication);
    product(step, "tn", block_of_a(n), b, beside(part, rows, b.count, b.columns), {true, false, 1, false});
    last = communicate(step, "tn_all_reduce", CollectiveKind::all_reduce, split.gpus, whole(step, part),
                       whole(step, sum));
  }
  // All sums are waited for at the end: whoever keeps an early one would wait for the others in the next collective.
  step.graph().wait_also(result, last);
  return result;
}

}  // namespace weft
