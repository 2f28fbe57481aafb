// Writes a capture file (traces/capture/record.h), block by block.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "traces/capture/record.h"

struct ZSTD_CCtx_s;

namespace weft::capture {

// CUPTI names kernels as their object files do: "_Z3addPf" becomes "add(float*)". Other names stay.
[[nodiscard]] std::string demangled(std::string_view name);

// Not for several threads at once. What cannot be written (a full disk) is dropped, and so is all that follows: the
// file stays readable. Allocates when made, and when a name is new; not for records.
class RecordFile {
 public:
  // Takes over `descriptor`, which is open for writing.
  explicit RecordFile(int descriptor);
  ~RecordFile();  // writes what is left
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;

  template <class Record>
  void put(const Record& record) {
    put_bytes(&record, sizeof(Record));
  }
  // A whole record, or several.
  void put_bytes(const void* records, std::size_t bytes);
  // The number of a name, written before it is used, demangled.
  std::uint32_t text(std::string_view name);
  void note(std::string_view message);
  // Writes the block as far as it is filled, so that it outlives the process.
  void flush();
  [[nodiscard]] bool failed() const { return failed_; }

 private:
  struct Name {
    std::uint64_t hash = 0;
    std::uint32_t number = 0;  // 0: free
  };

  template <class Header>
  void put_with_text(Header header, std::string_view characters);
  void grow_names();

  int descriptor_;
  bool failed_ = false;
  std::uint32_t block_number_ = 0;
  std::uint32_t names_used_ = 0;
  std::size_t filled_ = 0;
  std::vector<Name> names_;  // open addressing, a power of two
  std::vector<char> plain_, packed_;
  ZSTD_CCtx_s* compressor_;
};

}  // namespace weft::capture
