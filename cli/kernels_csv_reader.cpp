#include "cli/kernels_csv_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "sim/config_file.h"
#include "sim/error.h"

namespace weft {

namespace {

class CsvReader {
 public:
  explicit CsvReader(const std::filesystem::path& file) : file_(file.string()), text_(read_file(file)) {
    next_line();
    for (std::size_t i = 0; i < fields_.size(); ++i) columns_[fields_[i]] = i;
  }

  // Moves to the next line; false at the end.
  bool next_line() {
    fields_.clear();
    if (at_ >= text_.size()) return false;
    ++line_;
    for (;;) {
      fields_.push_back(field());
      if (at_ >= text_.size()) return true;
      if (text_[at_++] == '\n') return true;
    }
  }

  [[nodiscard]] const std::string& text(const char* column) const {
    const auto found = columns_.find(column);
    if (found == columns_.end()) fail(fmt::format("expected a column \"{}\", got none", column));
    if (found->second >= fields_.size())
      fail(fmt::format("expected {} fields, got {}", columns_.size(), fields_.size()));
    return fields_[found->second];
  }
  template <class Number>
  [[nodiscard]] Number number(const char* column) const {
    const std::string& written = text(column);
    Number value{};
    const auto [end, error] = std::from_chars(written.data(), written.data() + written.size(), value);
    if (error != std::errc() || end != written.data() + written.size())
      fail(fmt::format("expected a number in column \"{}\", got \"{}\"", column, written.substr(0, 40)));
    return value;
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw InputError(file_, fmt::format("line {}", line_), message);
  }

  // RFC 4180: quoted fields hold commas and line breaks, a quote in them is doubled.
  std::string field() {
    std::string out;
    if (at_ >= text_.size() || text_[at_] != '"') {
      const std::size_t end = std::min(text_.find_first_of(",\n", at_), text_.size());
      out = text_.substr(at_, end - at_);
      at_ = end;
      return out;
    }
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '"' && (++at_ >= text_.size() || text_[at_] != '"')) return out;
      out += text_[at_];
    }
    fail("expected a quoted field to end, got the end of the file");
  }

  std::string file_;
  std::string text_;
  std::size_t at_ = 0;
  std::size_t line_ = 0;
  std::vector<std::string> fields_;
  std::map<std::string, std::size_t, std::less<>> columns_;
};

}  // namespace

std::vector<KernelsCsvRow> read_kernels_csv(const std::filesystem::path& file) {
  CsvReader csv(file);
  std::vector<KernelsCsvRow> rows;
  while (csv.next_line()) {
    KernelsCsvRow row;
    row.gpu = csv.number<std::uint32_t>("gpu");
    row.stream = csv.number<std::uint32_t>("stream");
    row.iteration = csv.number<std::uint32_t>("iteration");
    row.op = csv.number<std::uint32_t>("op");
    row.communication = csv.text("kind") == "communication";
    row.name = csv.text("name");
    row.start_s = csv.number<double>("start_s");
    row.end_s = csv.number<double>("end_s");
    if (!csv.text("isolated_s").empty()) row.isolated_s = csv.number<double>("isolated_s");
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace weft
