#include "traces/json_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "sim/error.h"

namespace weft {
namespace {

constexpr std::size_t kWindow = std::size_t{1} << 16;

enum class Byte : std::uint8_t { other, quote, open, close, separator };

constexpr std::array<Byte, 256> kBytes = [] {
  std::array<Byte, 256> bytes{};
  for (const char c : {'{', '['}) bytes[static_cast<unsigned char>(c)] = Byte::open;
  for (const char c : {'}', ']'}) bytes[static_cast<unsigned char>(c)] = Byte::close;
  for (const char c : {' ', '\t', '\n', '\r', ',', ':'}) bytes[static_cast<unsigned char>(c)] = Byte::separator;
  bytes[static_cast<unsigned char>('"')] = Byte::quote;
  return bytes;
}();
constexpr Byte kind(char c) { return kBytes[static_cast<unsigned char>(c)]; }

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

}  // namespace

JsonStream::JsonStream(const std::filesystem::path& file, const UnpackLimits& limits)
    : file_(file, limits), window_(kWindow + kPadding) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  while (end_ < kByteOrderMark.size() && more(true)) {
  }
  if (std::string_view(window_.data(), end_).starts_with(kByteOrderMark)) begin_ = position_ = kByteOrderMark.size();
}

void JsonStream::fail(const std::string& message) const {
  throw InputError(file_.name(), fmt::format("byte {}", position_), message);
}

// Reads on; what was not taken stays if `keep`. False at the end.
bool JsonStream::more(bool keep) {
  if (!keep) {
    position_ += end_ - begin_;
    begin_ = end_;
  }
  std::memmove(window_.data(), window_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  if (end_ + kPadding == window_.size()) {
    if (end_ >= kMostValue) fail(fmt::format("expected values of at most {} B, got a longer one", kMostValue));
    window_.resize(2 * end_ + kPadding);
  }
  const std::size_t n = file_.read({window_.data() + end_, window_.size() - kPadding - end_});
  end_ += n;
  return n != 0;
}

char JsonStream::peek() {
  while (true) {
    while (begin_ != end_ && is_space(window_[begin_])) {
      ++begin_;
      ++position_;
    }
    if (begin_ != end_) return window_[begin_];
    if (!more(true)) return '\0';
  }
}

bool JsonStream::take_if(char c) {
  if (peek() != c) return false;
  ++begin_;
  ++position_;
  return true;
}

void JsonStream::take(char c) {
  const char got = peek();
  if (got == '\0') fail(fmt::format("expected '{}', got the end of the file: is it truncated?", c));
  if (!take_if(c)) fail(fmt::format("expected '{}' (JSON), got '{}'", c, got));
}

// The length of the value that begins here; without `keep` it is taken while it is read, and 0 is returned.
std::size_t JsonStream::scan(bool keep) {
  (void)peek();
  std::size_t at = begin_;
  std::size_t depth = 0;
  bool in_string = false;
  bool any = false;
  const auto taken = [&] {
    if (keep) return at - begin_;
    position_ += at - begin_;
    begin_ = at;
    return std::size_t{0};
  };
  while (true) {
    // A string's last byte may be a backslash, which stays for the next round.
    const bool escape_cut = in_string && at + 1 == end_ && window_[at] == '\\';
    if (at == end_ || escape_cut) {
      const std::size_t offset = at - begin_;
      if (!keep) {
        position_ += offset;
        begin_ = at;
      }
      const std::size_t kept = keep ? offset : 0;
      if (!more(true)) {
        if (any && depth == 0 && !in_string) return taken();
        fail("expected a JSON value, got the end of the file: is it truncated?");
      }
      at = begin_ + kept;
    }
    if (in_string) {
      while (at != end_ && window_[at] != '"' && window_[at] != '\\') ++at;
      if (at == end_) continue;
      if (window_[at] == '\\') {
        if (at + 1 != end_) at += 2;
        continue;
      }
      ++at;
      in_string = false;
      if (depth == 0) return taken();
      continue;
    }
    const char c = window_[at];
    switch (kind(c)) {
      case Byte::other:
        any = true;
        ++at;
        break;
      case Byte::quote:
        if (any && depth == 0) fail("expected a JSON value, got a '\"' within one");
        any = in_string = true;
        ++at;
        break;
      case Byte::open:
        if (any && depth == 0) fail(fmt::format("expected a JSON value, got a '{}' within one", c));
        any = true;
        ++depth;
        ++at;
        break;
      case Byte::close:
        if (depth == 0) {
          if (!any) fail(fmt::format("expected a JSON value, got '{}'", c));
          return taken();
        }
        ++at;
        if (--depth == 0) return taken();
        break;
      case Byte::separator:
        if (depth == 0) {
          if (!any) fail(fmt::format("expected a JSON value, got '{}'", c));
          return taken();
        }
        ++at;
        break;
    }
  }
}

std::string_view JsonStream::value() {
  const std::size_t size = scan(true);
  const std::string_view value(window_.data() + begin_, size);
  begin_ += size;
  position_ += size;
  return value;
}

void JsonStream::skip_value() { (void)scan(false); }

bool JsonStream::next_key(bool first, std::string& key) {
  if (take_if('}')) return false;
  if (!first) take(',');
  if (peek() != '"') fail("expected a key in quotes");
  key = value();
  key = key.substr(1, key.size() - 2);
  take(':');
  return true;
}

bool JsonStream::next_element(bool first) {
  if (take_if(']')) return false;
  if (!first) take(',');
  return true;
}

void JsonStream::end() {
  if (const char c = peek(); c != '\0') fail(fmt::format("expected the end of the JSON document, got '{}'", c));
}

}  // namespace weft
