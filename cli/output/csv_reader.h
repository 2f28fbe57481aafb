// Reads CSV as kernels_csv.h writes it: a header, fields quoted as in RFC 4180. Errors name file and line.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

class CsvReader {
 public:
  // Reads the file and its header. Throws InputError when there is no such file.
  explicit CsvReader(const std::filesystem::path& file);

  [[nodiscard]] const std::vector<std::string>& header() const { return header_; }
  [[nodiscard]] bool has(std::string_view column) const { return columns_.find(column) != columns_.end(); }

  // Moves to the next line; false at the end.
  bool next_line();

  // Of the line. Throw InputError when there is no such column, no such field, or no number in it.
  [[nodiscard]] const std::string& text(std::string_view column) const;
  [[nodiscard]] const std::string& text(std::size_t column) const;
  template <class Number>
  [[nodiscard]] Number number(std::string_view column) const {
    return parsed<Number>(text(column), column);
  }
  // A number in a part of a field of `column`.
  template <class Number>
  [[nodiscard]] Number parsed(std::string_view written, std::string_view column) const {
    Number value{};
    const auto [end, error] = std::from_chars(written.data(), written.data() + written.size(), value);
    if (error != std::errc() || end != written.data() + written.size())
      fail(fmt::format(R"(expected a number in column "{}", got "{}")", column, written.substr(0, 40)));
    return value;
  }

 private:
  [[noreturn]] void fail(const std::string& message) const;
  std::string field();

  std::string file_;
  std::string text_;
  std::size_t at_ = 0;
  std::size_t line_ = 0;
  std::vector<std::string> header_, fields_;
  std::map<std::string, std::size_t, std::less<>> columns_;
};

}  // namespace weft
