#include "workloads/single_sample/attention_reference.h"

#include <cmath>
#include <random>

namespace weft {

namespace {

// Row-major, rows x columns by use.
using Values = std::vector<double>;

// out[rows, features] = in[rows, columns] * weight[features, columns]^T + bias
Values linear(const Values& in, std::int64_t columns, const Values& weight, const Values& bias) {
  const auto features = static_cast<std::int64_t>(bias.size());
  const auto rows = static_cast<std::int64_t>(in.size()) / columns;
  Values out(static_cast<std::size_t>(rows * features));
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t f = 0; f < features; ++f) {
      double sum = bias[f];
      for (std::int64_t c = 0; c < columns; ++c) sum += in[r * columns + c] * weight[f * columns + c];
      out[r * features + f] = sum;
    }
  }
  return out;
}

void linear_backward(const Values& in, std::int64_t columns, const Values& weight, const Values& gradient,
                     const std::string& name, Numbers& results, Values& in_gradient) {
  const auto features = static_cast<std::int64_t>(weight.size()) / columns;
  const auto rows = static_cast<std::int64_t>(in.size()) / columns;
  Values& of_weight = results[name + ".weight.grad"];
  Values& of_bias = results[name + ".bias.grad"];
  of_weight.assign(weight.size(), 0);
  of_bias.assign(static_cast<std::size_t>(features), 0);
  in_gradient.resize(in.size(), 0);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t f = 0; f < features; ++f) {
      const double g = gradient[r * features + f];
      of_bias[f] += g;
      for (std::int64_t c = 0; c < columns; ++c) {
        of_weight[f * columns + c] += g * in[r * columns + c];
        in_gradient[r * columns + c] += g * weight[f * columns + c];
      }
    }
  }
}

}  // namespace

Numbers random_operands(const AttentionGeometry& g, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  const std::int64_t hidden = g.heads * g.head_size;
  const std::int64_t of_keys = g.key_heads * g.head_size;
  Numbers operands;
  const auto draw = [&](const std::string& name, std::int64_t count, double scale) {
    for (std::int64_t i = 0; i < count; ++i) {
      operands[name].push_back(static_cast<double>(static_cast<float>(scale * normal(random))));
    }
  };
  draw("input", g.tokens * g.batch * hidden, 1);
  draw("output_gradient", g.tokens * g.batch * hidden, 1);
  const double scale = 1 / std::sqrt(static_cast<double>(hidden));
  for (const char* name : {"query", "key", "value", "output"}) {
    const bool keys = std::string(name) == "key" || std::string(name) == "value";
    const std::int64_t features = keys ? of_keys : hidden;
    draw(std::string(name) + ".weight", features * hidden, scale);
    draw(std::string(name) + ".bias", features, scale);
  }
  return operands;
}

Numbers reference_attention(const AttentionGeometry& g, const Numbers& operands) {
  const std::int64_t hidden = g.heads * g.head_size;
  const std::int64_t of_keys = g.key_heads * g.head_size;
  const std::int64_t d = g.head_size;
  const Values& x = operands.at("input");
  const auto project = [&](const std::string& name) {
    return linear(x, hidden, operands.at(name + ".weight"), operands.at(name + ".bias"));
  };
  const Values q = project("query");
  const Values k = project("key");
  const Values v = project("value");
  const double scale = 1 / std::sqrt(static_cast<double>(d));
  Values context(q.size(), 0), dq(q.size(), 0), dk(k.size(), 0), dv(v.size(), 0);
  Numbers results;
  // Row (t, b) of a matrix with `width` columns, from head h on.
  const auto at = [&](std::int64_t t, std::int64_t b, std::int64_t width, std::int64_t h) {
    return (t * g.batch + b) * width + h * d;
  };
  std::vector<Values> probabilities;
  for (std::int64_t b = 0; b < g.batch; ++b) {
    for (std::int64_t h = 0; h < g.heads; ++h) {
      const std::int64_t kh = h / (g.heads / g.key_heads);
      Values p(static_cast<std::size_t>(g.tokens * g.tokens), 0);
      for (std::int64_t i = 0; i < g.tokens; ++i) {
        const std::int64_t seen = g.causal ? i + 1 : g.tokens;
        double sum = 0;
        for (std::int64_t j = 0; j < seen; ++j) {
          double score = 0;
          for (std::int64_t c = 0; c < d; ++c) score += q[at(i, b, hidden, h) + c] * k[at(j, b, of_keys, kh) + c];
          p[i * g.tokens + j] = std::exp(scale * score);
          sum += p[i * g.tokens + j];
        }
        for (std::int64_t j = 0; j < seen; ++j) {
          p[i * g.tokens + j] /= sum;
          for (std::int64_t c = 0; c < d; ++c) {
            context[at(i, b, hidden, h) + c] += p[i * g.tokens + j] * v[at(j, b, of_keys, kh) + c];
          }
        }
      }
      probabilities.push_back(std::move(p));
    }
  }
  results["output"] = linear(context, hidden, operands.at("output.weight"), operands.at("output.bias"));
  Values dcontext;
  linear_backward(context, hidden, operands.at("output.weight"), operands.at("output_gradient"), "output", results,
                  dcontext);
  for (std::int64_t b = 0; b < g.batch; ++b) {
    for (std::int64_t h = 0; h < g.heads; ++h) {
      const std::int64_t kh = h / (g.heads / g.key_heads);
      const Values& p = probabilities[static_cast<std::size_t>(b * g.heads + h)];
      for (std::int64_t i = 0; i < g.tokens; ++i) {
        Values dp(static_cast<std::size_t>(g.tokens), 0);
        double weighted = 0;
        for (std::int64_t j = 0; j < g.tokens; ++j) {
          for (std::int64_t c = 0; c < d; ++c) {
            dp[j] += dcontext[at(i, b, hidden, h) + c] * v[at(j, b, of_keys, kh) + c];
            dv[at(j, b, of_keys, kh) + c] += p[i * g.tokens + j] * dcontext[at(i, b, hidden, h) + c];
          }
          weighted += dp[j] * p[i * g.tokens + j];
        }
        for (std::int64_t j = 0; j < g.tokens; ++j) {
          const double ds = scale * p[i * g.tokens + j] * (dp[j] - weighted);
          for (std::int64_t c = 0; c < d; ++c) {
            dq[at(i, b, hidden, h) + c] += ds * k[at(j, b, of_keys, kh) + c];
            dk[at(j, b, of_keys, kh) + c] += ds * q[at(i, b, hidden, h) + c];
          }
        }
      }
    }
  }
  Values& dx = results["input_gradient"];
  linear_backward(x, hidden, operands.at("query.weight"), dq, "query", results, dx);
  linear_backward(x, hidden, operands.at("key.weight"), dk, "key", results, dx);
  linear_backward(x, hidden, operands.at("value.weight"), dv, "value", results, dx);
  return results;
}

}  // namespace weft
