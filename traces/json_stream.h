// JSON that does not fit into memory: walked value by value, each handed out as text for a parser of whole documents.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "traces/packed_file.h"

namespace weft {

// A window over the file that holds one value at a time, so memory is bounded by the largest value asked for. Checks
// what it walks over, brackets and ends of strings, and nothing inside of values. All functions throw InputError with
// the position in the unpacked file.
class JsonStream {
 public:
  // Behind every value handed out follow as many bytes that may be read; simdjson wants 64 (SIMDJSON_PADDING).
  static constexpr std::size_t kPadding = 64;
  static constexpr std::size_t kMostValue = std::size_t{256} << 20;

  explicit JsonStream(const std::filesystem::path& file, const UnpackLimits& limits = {});

  // The next byte that is not white space, which stays; '\0' at the end.
  char peek();
  // Takes the next byte that is not white space if it is this one.
  bool take_if(char c);
  void take(char c);
  // The next value, as it stands in the file. Valid until the next call.
  std::string_view value();
  void skip_value();
  // The key of an object's next member and the colon behind it, without quotes and with escapes as they are; false when
  // the object ends here. `first`: no comma is expected before it.
  bool next_key(bool first, std::string& key);
  // Before each value of an array: false when it ends here.
  bool next_element(bool first);
  // Throws when anything follows.
  void end();

 private:
  [[noreturn]] void fail(const std::string& message) const;
  bool more(bool keep);
  std::size_t scan(bool keep);

  PackedFile file_;
  std::vector<char> window_;
  std::size_t begin_ = 0;       // of what is not taken yet, in the window
  std::size_t end_ = 0;         // of what was read
  std::uint64_t position_ = 0;  // of `begin_` in the file
};

}  // namespace weft
