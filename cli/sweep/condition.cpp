#include "cli/sweep/condition.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <charconv>
#include <optional>

#include "sim/error.h"

namespace weft {

namespace {

bool starts_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool in_name(char c) { return starts_name(c) || std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '.'; }

// Reads and evaluates in one pass: an expression is a line, and a point is seldom judged twice.
class Evaluation {
 public:
  Evaluation(std::string_view text, const ConditionValues& values) : text_(text), rest_(text), values_(values) {}

  [[nodiscard]] bool whole() {
    const bool holds = truth(either());
    if (!peek().empty()) fail("an operator or the end", fmt::format("\"{}\"", rest_));
    return holds;
  }

 private:
  [[noreturn]] void fail(std::string_view expected, const std::string& got) const {
    throw InputError(fmt::format("expected {} in \"{}\", got {}", expected, text_, got));
  }

  std::string_view peek() {
    while (!rest_.empty() && std::isspace(static_cast<unsigned char>(rest_.front())) != 0) rest_.remove_prefix(1);
    return rest_;
  }
  bool take(std::string_view token) {
    if (!peek().starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }

  [[nodiscard]] bool truth(const Json& value) const {
    if (!value.is_boolean()) fail("a condition", describe(value));
    return value.get<bool>();
  }
  [[nodiscard]] double number(const Json& value) const {
    if (!value.is_number()) fail("a number", describe(value));
    return value.get<double>();
  }

  Json either() {
    Json left = both();
    while (take("||")) {
      const Json right = both();
      left = truth(left) || truth(right);
    }
    return left;
  }
  Json both() {
    Json left = negation();
    while (take("&&")) {
      const Json right = negation();
      left = truth(left) && truth(right);
    }
    return left;
  }
  Json negation() {
    if (peek().starts_with("!") && !peek().starts_with("!=")) {
      take("!");
      return !truth(negation());
    }
    return comparison();
  }

  Json comparison() {
    Json left = sum();
    for (const std::string_view op : {"==", "!=", "<=", ">=", "<", ">"}) {
      if (!take(op)) continue;
      const Json right = sum();
      if (op == "==") return left == right;
      if (op == "!=") return left != right;
      if (!left.is_string() || !right.is_string()) {
        static_cast<void>(number(left));
        static_cast<void>(number(right));
      }
      if (op == "<=") return left <= right;
      if (op == ">=") return left >= right;
      return op == "<" ? left < right : left > right;
    }
    return left;
  }
  Json sum() {
    Json left = product();
    for (;;) {
      if (take("+")) {
        left = number(left) + number(product());
      } else if (take("-")) {
        left = number(left) - number(product());
      } else {
        return left;
      }
    }
  }
  Json product() {
    Json left = operand();
    for (;;) {
      if (take("*")) {
        left = number(left) * number(operand());
      } else if (take("/")) {
        left = number(left) / number(operand());
      } else {
        return left;
      }
    }
  }

  Json operand() {
    if (take("(")) {
      Json inner = either();
      if (!take(")")) fail("\")\"", rest_.empty() ? "the end" : fmt::format("\"{}\"", rest_));
      return inner;
    }
    if (take("-")) return -number(operand());
    const std::string_view rest = peek();
    if (rest.empty()) fail("a value", "the end");
    if (rest.front() == '\'' || rest.front() == '"') return quoted(rest.front());
    if (starts_name(rest.front())) return named();
    double value = 0;
    const auto parsed = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (parsed.ec != std::errc()) fail("a path or a value", fmt::format("\"{}\"", rest));
    rest_.remove_prefix(static_cast<std::size_t>(parsed.ptr - rest.data()));
    return value;
  }
  Json quoted(char quote) {
    const std::size_t end = rest_.find(quote, 1);
    if (end == std::string_view::npos) fail("a closing quote", "the end");
    const std::string_view inside = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return inside;
  }
  Json named() {
    std::size_t length = 0;
    while (length < rest_.size() && in_name(rest_[length])) ++length;
    const std::string name(rest_.substr(0, length));
    rest_.remove_prefix(length);
    if (name == "true" || name == "false") return name == "true";
    if (name == "null") return nullptr;
    return values_(name);
  }

  std::string_view text_, rest_;
  const ConditionValues& values_;
};

}  // namespace

bool condition_holds(std::string_view text, const ConditionValues& values) { return Evaluation(text, values).whole(); }

}  // namespace weft
