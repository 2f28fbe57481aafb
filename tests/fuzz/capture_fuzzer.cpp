#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "tests/fuzz/fuzzed_file.h"
#include "traces/capture/capture_import.h"
#include "traces/capture/inject/record_file.h"
#include "traces/trace_info.h"

// The checksum of a block keeps damage from the records in it. So, but for inputs that begin as files do, the bytes are
// the records of a file's only block.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  const auto read = [](const std::filesystem::path& file) {
    std::vector<std::string> notes;
    (void)trace_info_json(import_capture({file}, notes)).dump();
  };
  if (size >= sizeof(capture::kMagic) && std::memcmp(data, capture::kMagic, sizeof(capture::kMagic)) == 0)
    return fuzz::read_fuzzed(data, size, read);
  const int block = ::memfd_create("records", 0);
  capture::RecordFile(::dup(block)).put_bytes(data, size);
  std::vector<std::uint8_t> file(static_cast<std::size_t>(::lseek(block, 0, SEEK_END)));
  if (::pread(block, file.data(), file.size(), 0) != static_cast<ssize_t>(file.size())) std::abort();
  ::close(block);
  return fuzz::read_fuzzed(file.data(), file.size(), read);
}
