// Reads a capture file (record.h) record by record.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "traces/capture/record.h"

struct ZSTD_DCtx_s;

namespace weft {

// Treats the file as untrusted. Memory: two blocks and the names.
class CaptureFile {
 public:
  // Throws MissingInput when it cannot be opened, InputError when it is no capture file.
  explicit CaptureFile(const std::filesystem::path& path);
  ~CaptureFile() = default;
  CaptureFile(const CaptureFile&) = delete;
  CaptureFile& operator=(const CaptureFile&) = delete;

  // False at the end, or where the rest is damaged or missing: what was read before is whole.
  [[nodiscard]] bool next();
  [[nodiscard]] capture::RecordKind kind() const { return header_.kind; }
  // The record, if it is long enough to be one; else zeros.
  template <class Record>
  [[nodiscard]] Record as() const {
    Record record{};
    if (header_.bytes >= sizeof(Record)) std::memcpy(&record, record_, sizeof(Record));
    return record;
  }
  // The characters behind a NoteRecord or a CountersRecord.
  template <class Record>
  [[nodiscard]] std::string text_behind() const {
    return text_behind(sizeof(Record), as<Record>().length);
  }
  [[nodiscard]] std::string note() const { return text_behind<capture::NoteRecord>(); }
  // A name by its number; empty when there is none. Valid UTF-8.
  [[nodiscard]] const std::string& text(std::uint32_t number) const;
  // After the last record: why it was the last, in words; empty: the process ended in order.
  [[nodiscard]] const std::string& damage() const { return damage_; }
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  struct FreeDecompressor {
    void operator()(ZSTD_DCtx_s* context) const;
  };

  bool next_block();
  bool damaged(std::string what);
  void add_text();
  [[nodiscard]] std::string text_behind(std::size_t at, std::uint32_t length) const;

  std::string name_;
  std::ifstream file_;
  std::unique_ptr<ZSTD_DCtx_s, FreeDecompressor> decompressor_;
  std::vector<char> packed_, plain_;
  std::size_t at_ = 0, filled_ = 0;  // in plain_
  std::uint32_t block_ = 0;
  capture::RecordHeader header_{};
  const char* record_ = nullptr;
  std::vector<std::string> texts_{""};
  bool ended_ = false;
  std::string damage_;
};

}  // namespace weft
