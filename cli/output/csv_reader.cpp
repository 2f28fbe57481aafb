#include "cli/output/csv_reader.h"

#include <algorithm>

#include "sim/config_file.h"
#include "sim/error.h"

namespace weft {

CsvReader::CsvReader(const std::filesystem::path& file) : file_(file.string()), text_(read_file(file)) {
  next_line();
  header_ = fields_;
  for (std::size_t i = 0; i < header_.size(); ++i) columns_[header_[i]] = i;
}

bool CsvReader::next_line() {
  fields_.clear();
  if (at_ >= text_.size()) return false;
  ++line_;
  for (;;) {
    fields_.push_back(field());
    if (at_ >= text_.size()) return true;
    if (text_[at_++] == '\n') return true;
  }
}

const std::string& CsvReader::text(std::string_view column) const {
  const auto found = columns_.find(column);
  if (found == columns_.end()) fail(fmt::format("expected a column \"{}\", got none", column));
  return text(found->second);
}

const std::string& CsvReader::text(std::size_t column) const {
  if (column >= fields_.size()) fail(fmt::format("expected {} fields, got {}", columns_.size(), fields_.size()));
  return fields_[column];
}

void CsvReader::fail(const std::string& message) const {
  throw InputError(file_, fmt::format("line {}", line_), message);
}

// Quoted fields hold commas and line breaks, a quote in them is doubled.
std::string CsvReader::field() {
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

}  // namespace weft
