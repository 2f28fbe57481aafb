#include "workloads/tensor_math.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>

#include "sim/error.h"

namespace weft {

namespace {

using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Mapped = Eigen::Map<RowMajor, Eigen::Unaligned, Eigen::OuterStride<>>;

Mapped matrix(TensorValues& values, const Stack& stack, std::int64_t index) {
  const std::int64_t first = stack.first_of(index);
  WEFT_CHECK(first + (stack.rows - 1) * stack.row_stride + stack.columns <= values.elements(stack.tensor),
             "a matrix beyond its tensor");
  return {values.data(stack.tensor) + first, stack.rows, stack.columns, Eigen::OuterStride<>(stack.row_stride)};
}

// -infinity where nobody looks.
void put_mask(RowMajor& scores, const AttentionMask& mask) {
  const std::vector<std::int64_t> queries = listed(mask.queries);
  const std::vector<std::int64_t> keys = listed(mask.keys);
  for (Eigen::Index i = 0; i < scores.rows(); ++i) {
    const std::int64_t query = queries[static_cast<std::size_t>(i)];
    for (Eigen::Index j = 0; j < scores.cols(); ++j) {
      const std::int64_t key = keys[static_cast<std::size_t>(j)];
      const bool looks = query < mask.tokens && key < mask.tokens && (!mask.causal || key <= query);
      if (!looks) scores(i, j) = -INFINITY;
    }
  }
}

RowMajor masked_scores(const BlockAttention& block, const Mapped& query, const Mapped& key) {
  RowMajor scores = block.scale * query * key.transpose();
  put_mask(scores, block.mask);
  return scores;
}

}  // namespace

void multiply(TensorValues& values, const Stack& a, const Stack& b, const Stack& c, const ProductForm& form) {
  for (std::int64_t i = 0; i < c.count * c.repeat; ++i) {
    const RowMajor left =
        form.transpose_a ? RowMajor(matrix(values, a, i).transpose()) : RowMajor(matrix(values, a, i));
    const RowMajor right =
        form.transpose_b ? RowMajor(matrix(values, b, i).transpose()) : RowMajor(matrix(values, b, i));
    const RowMajor result = form.scale * left * right;
    Mapped to = matrix(values, c, i);
    const bool add = form.add || (c.repeat > 1 && i % c.repeat > 0);
    if (add) to += result;
    if (!add) to = result;
  }
}

void add_row(TensorValues& values, TensorId row, const Stack& to) {
  const Eigen::Map<const Eigen::RowVectorXf> addend(values.data(row), to.columns);
  for (std::int64_t i = 0; i < to.count; ++i) matrix(values, to, i).rowwise() += addend;
}

void copy(TensorValues& values, const Stack& from, const Stack& to, bool add) {
  for (std::int64_t i = 0; i < to.count; ++i) {
    const RowMajor moved = matrix(values, from, i);
    if (add) matrix(values, to, i) += moved;
    if (!add) matrix(values, to, i) = moved;
  }
}

void sum_parts(TensorValues& values, const Stack& from, const Stack& to, std::int64_t parts) {
  for (std::int64_t i = 0; i < to.count; ++i) {
    RowMajor sum = matrix(values, from, i);
    for (std::int64_t n = 1; n < parts; ++n) sum += matrix(values, from, n * to.count + i);
    matrix(values, to, i) = sum;
  }
}

void column_sums(TensorValues& values, const Stack& from, TensorId to) {
  Eigen::Map<Eigen::RowVectorXf>(values.data(to), from.columns) = matrix(values, from, 0).colwise().sum();
}

void rectify(TensorValues& values, const Stack& stack) {
  Mapped all = matrix(values, stack, 0);
  all = all.cwiseMax(0.0F);
}

void rectify_gradient(TensorValues& values, const Stack& result, const Stack& gradient, const Stack& to) {
  matrix(values, to, 0) =
      (matrix(values, result, 0).array() > 0).select(matrix(values, gradient, 0).array(), 0.0F).matrix();
}

void gate(TensorValues& values, const Stack& halves, const Stack& to) {
  const Mapped both = matrix(values, halves, 0);
  const auto a = both.leftCols(to.columns).array();
  const auto b = both.rightCols(to.columns).array();
  matrix(values, to, 0) = (a.tanh() / (1 + (-b).exp())).matrix();
}

void gate_gradient(TensorValues& values, const Stack& halves, const Stack& gradient, const Stack& to) {
  const Mapped both = matrix(values, halves, 0);
  const Mapped given = matrix(values, gradient, 0);
  const RowMajor t = both.leftCols(given.cols()).array().tanh().matrix();
  const RowMajor s = (1 / (1 + (-both.rightCols(given.cols()).array()).exp())).matrix();
  Mapped out = matrix(values, to, 0);
  out.leftCols(given.cols()) = (given.array() * s.array() * (1 - t.array().square())).matrix();
  out.rightCols(given.cols()) = (given.array() * t.array() * s.array() * (1 - s.array())).matrix();
}

void masked_softmax(TensorValues& values, const Stack& scores, const Stack& probabilities, float scale,
                    const AttentionMask& mask) {
  for (std::int64_t i = 0; i < scores.count; ++i) {
    RowMajor masked = scale * matrix(values, scores, i);
    put_mask(masked, mask);
    Mapped out = matrix(values, probabilities, i);
    for (std::int64_t q = 0; q < scores.rows; ++q) {
      const float most = masked.row(q).maxCoeff();
      if (most > -INFINITY) {
        const Eigen::RowVectorXf weights = (masked.row(q).array() - most).exp();
        out.row(q) = weights / weights.sum();
      } else {
        out.row(q).setZero();
      }
    }
  }
}

void softmax_gradient(TensorValues& values, const Stack& probabilities, const Stack& gradient,
                      const Stack& scores_gradient, float scale) {
  for (std::int64_t i = 0; i < probabilities.count; ++i) {
    const Mapped p = matrix(values, probabilities, i);
    const RowMajor weighted = p.cwiseProduct(matrix(values, gradient, i));
    matrix(values, scores_gradient, i) = scale * (weighted - weighted.rowwise().sum().asDiagonal() * p);
  }
}

void attend(TensorValues& values, const BlockAttention& block, const Stack& sum_so_far, const Stack& output) {
  for (std::int64_t i = 0; i < block.query.count; ++i) {
    const RowMajor scores = masked_scores(block, matrix(values, block.query, i), matrix(values, block.key, i));
    const Mapped value = matrix(values, block.value, i);
    float* most = values.data(block.statistics.tensor) + block.statistics.first_of(i);
    float* sum = most + block.query.rows;
    for (std::int64_t q = 0; q < block.query.rows; ++q) {
      const float before = block.first ? -INFINITY : most[q];
      const float now = std::max(before, scores.row(q).maxCoeff());
      Eigen::RowVectorXf total = Eigen::RowVectorXf::Zero(block.value.columns);
      float weight = 0;
      if (!block.first && before > -INFINITY) {
        const float faded = std::exp(before - now);
        weight = faded * sum[q];
        total = faded * matrix(values, sum_so_far, i).row(q);
      }
      if (now > -INFINITY) {
        const Eigen::RowVectorXf p = (scores.row(q).array() - now).exp();
        weight += p.sum();
        total += p * value;
      }
      most[q] = now;
      sum[q] = weight;
      if (!block.last) {
        matrix(values, sum_so_far, i).row(q) = total;
        continue;
      }
      matrix(values, output, i).row(q) = weight > 0 ? Eigen::RowVectorXf(total / weight) : total;
      most[q] = weight > 0 ? now + std::log(weight) : INFINITY;
    }
  }
}

void row_products(TensorValues& values, const Stack& a, const Stack& b, TensorId sums) {
  float* to = values.data(sums);
  for (std::int64_t i = 0; i < a.count; ++i) {
    const RowMajor products = matrix(values, a, i).cwiseProduct(matrix(values, b, i));
    for (std::int64_t q = 0; q < a.rows; ++q) to[i * a.rows + q] = products.row(q).sum();
  }
}

void attend_backward(TensorValues& values, const BlockAttention& block, const Stack& output_gradient,
                     TensorId row_products, const Stack& query_gradient, const Stack& key_gradient,
                     const Stack& value_gradient, bool add) {
  for (std::int64_t i = 0; i < block.query.count; ++i) {
    const Mapped query = matrix(values, block.query, i);
    const Mapped key = matrix(values, block.key, i);
    RowMajor p = masked_scores(block, query, key);
    const float* log_sum = values.data(block.statistics.tensor) + block.statistics.first_of(i);
    for (std::int64_t q = 0; q < p.rows(); ++q) p.row(q) = (p.row(q).array() - log_sum[q]).exp();
    const Mapped gradient = matrix(values, output_gradient, i);
    RowMajor scores = gradient * matrix(values, block.value, i).transpose();
    const float* deltas = values.data(row_products) + i * block.query.rows;
    for (std::int64_t q = 0; q < p.rows(); ++q) scores.row(q).array() -= deltas[q];
    scores = block.scale * p.cwiseProduct(scores);
    const bool more = add || i % block.key.repeat > 0;
    const RowMajor keys = scores.transpose() * query;
    const RowMajor of_values = p.transpose() * gradient;
    matrix(values, query_gradient, i) += scores * key;
    if (more) {
      matrix(values, key_gradient, i) += keys;
      matrix(values, value_gradient, i) += of_values;
    } else {
      matrix(values, key_gradient, i) = keys;
      matrix(values, value_gradient, i) = of_values;
    }
  }
}

}  // namespace weft
