#include "workloads/single_sample/attention_reference.h"

#include <cmath>
#include <random>

namespace weft {

namespace {

// Row-major, rows x columns by use.
using Values = std::vector<double>;

// out[rows, features] = in[rows, columns] * weight[features, columns]^T + bias
Values linear(const Values& in, std::size_t columns, const Values& weight, const Values& bias) {
  const std::size_t features = bias.size(), rows = in.size() / columns;
  Values out(rows * features);
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t f = 0; f < features; ++f) {
      double sum = bias[f];
      for (std::size_t c = 0; c < columns; ++c) sum += in[r * columns + c] * weight[f * columns + c];
      out[r * features + f] = sum;
    }
  }
  return out;
}

void linear_backward(const Values& in, std::size_t columns, const Values& weight, const Values& gradient,
                     const std::string& name, Numbers& results, Values& in_gradient) {
  const std::size_t features = weight.size() / columns, rows = in.size() / columns;
  Values& of_weight = results[name + ".weight.grad"];
  Values& of_bias = results[name + ".bias.grad"];
  of_weight.assign(weight.size(), 0);
  of_bias.assign(features, 0);
  in_gradient.resize(in.size(), 0);
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t f = 0; f < features; ++f) {
      const double g = gradient[r * features + f];
      of_bias[f] += g;
      for (std::size_t c = 0; c < columns; ++c) {
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
  const auto tokens = static_cast<std::size_t>(g.tokens), batch = static_cast<std::size_t>(g.batch);
  const auto heads = static_cast<std::size_t>(g.heads), key_heads = static_cast<std::size_t>(g.key_heads);
  const auto d = static_cast<std::size_t>(g.head_size);
  const std::size_t hidden = heads * d, of_keys = key_heads * d;
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
  const auto at = [&](std::size_t t, std::size_t b, std::size_t width, std::size_t h) {
    return (t * batch + b) * width + h * d;
  };
  std::vector<Values> probabilities;
  for (std::size_t b = 0; b < batch; ++b) {
    for (std::size_t h = 0; h < heads; ++h) {
      const std::size_t kh = h / (heads / key_heads);
      Values p(tokens * tokens, 0);
      for (std::size_t i = 0; i < tokens; ++i) {
        const std::size_t seen = g.causal ? i + 1 : tokens;
        double sum = 0;
        for (std::size_t j = 0; j < seen; ++j) {
          double score = 0;
          for (std::size_t c = 0; c < d; ++c) score += q[at(i, b, hidden, h) + c] * k[at(j, b, of_keys, kh) + c];
          p[i * tokens + j] = std::exp(scale * score);
          sum += p[i * tokens + j];
        }
        for (std::size_t j = 0; j < seen; ++j) {
          p[i * tokens + j] /= sum;
          for (std::size_t c = 0; c < d; ++c) {
            context[at(i, b, hidden, h) + c] += p[i * tokens + j] * v[at(j, b, of_keys, kh) + c];
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
  for (std::size_t b = 0; b < batch; ++b) {
    for (std::size_t h = 0; h < heads; ++h) {
      const std::size_t kh = h / (heads / key_heads);
      const Values& p = probabilities[b * heads + h];
      for (std::size_t i = 0; i < tokens; ++i) {
        Values dp(tokens, 0);
        double weighted = 0;
        for (std::size_t j = 0; j < tokens; ++j) {
          for (std::size_t c = 0; c < d; ++c) {
            dp[j] += dcontext[at(i, b, hidden, h) + c] * v[at(j, b, of_keys, kh) + c];
            dv[at(j, b, of_keys, kh) + c] += p[i * tokens + j] * dcontext[at(i, b, hidden, h) + c];
          }
          weighted += dp[j] * p[i * tokens + j];
        }
        for (std::size_t j = 0; j < tokens; ++j) {
          const double ds = scale * p[i * tokens + j] * (dp[j] - weighted);
          for (std::size_t c = 0; c < d; ++c) {
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
