#include "traces/mended_json.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>

#include "traces/readable_text.h"

namespace weft {
namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

class Mender {
 public:
  explicit Mender(std::string_view json) : json_(json) { out_.reserve(json.size()); }

  std::string mend() {
    while (at_ < json_.size()) {
      const char c = json_[at_];
      if (c == '"') {
        mend_string();
      } else if (is_letter(c) || ((c == '-' || c == '+') && is_letter(peek(1)))) {
        mend_word();
      } else if (is_digit(c) || c == '-') {
        mend_number();
      } else {
        if ((c == ',' || c == '}') && out_.find_last_not_of(" \t\r\n") != std::string::npos &&
            out_[out_.find_last_not_of(" \t\r\n")] == ':')
          out_ += "null";
        if (c == '{' || c == '[') open_ += c;
        if ((c == '}' || c == ']') && !open_.empty()) open_.pop_back();
        take();
      }
    }
    return std::move(out_);
  }

 private:
  [[nodiscard]] char peek(std::size_t ahead) const { return at_ + ahead < json_.size() ? json_[at_ + ahead] : '\0'; }
  void take() { out_ += json_[at_++]; }

  // "nan(ind)" is what Windows writes.
  void mend_word() {
    const auto rest = json_.substr(at_);
    const auto ends = [](char c) { return !is_letter(c) && c != '/' && c != '-' && c != '+' && c != '(' && c != ')'; };
    const auto word = rest.substr(0, static_cast<std::size_t>(std::ranges::find_if(rest, ends) - rest.begin()));
    std::string plain;
    for (const char c : word)
      if (c != '-' && c != '+') plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    constexpr std::array<std::string_view, 5> kNoNumbers{"inf", "infinity", "nan", "nan(ind)", "n/a"};
    out_ += std::ranges::find(kNoNumbers, plain) != kNoNumbers.end() ? "null" : word;
    at_ += word.size();
  }

  // In an object a comma is followed by a key: a digit there is a fraction's. In a list it may be either.
  void mend_number() {
    const auto of_number = [](char c) {
      return is_digit(c) || c == '.' || c == 'e' || c == 'E' || c == '+' || c == '-';
    };
    while (of_number(peek(0))) take();
    if (peek(0) != ',' || !is_digit(peek(1)) || !open_.ends_with('{')) return;
    out_ += '.';
    ++at_;
    while (of_number(peek(0))) take();
  }

  void mend_string() {
    take();
    std::string text;
    while (at_ < json_.size() && json_[at_] != '"') {
      const char c = json_[at_++];
      if (c == '\\') {
        text += c;
        text += is_escape() ? json_[at_++] : c;
      } else {
        text += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
      }
    }
    out_ += readable(text);
    if (at_ < json_.size()) take();
  }
  // Whether what stands here makes an escape of the backslash before it.
  [[nodiscard]] bool is_escape() const {
    if (peek(0) == 'u') {
      const auto digits = json_.substr(at_ + 1, 4);
      return digits.size() == 4 && std::ranges::all_of(digits, [](unsigned char d) { return std::isxdigit(d) != 0; });
    }
    return std::string_view("\"\\/bfnrt").find(peek(0)) != std::string_view::npos;
  }

  std::string_view json_;
  std::size_t at_ = 0;
  std::string open_;  // brackets
  std::string out_;
};

}  // namespace

std::string mended_json(std::string_view json) { return Mender(json).mend(); }

}  // namespace weft
