#include <zstd.h>

#include <cstring>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "tests/fuzz/fuzzed_file.h"
#include "traces/capture/capture_import.h"
#include "traces/capture/record.h"
#include "traces/trace_info.h"

namespace {

using namespace weft;
namespace fs = std::filesystem;
using RawBytes = std::span<const std::uint8_t>;

constexpr std::size_t kMostProcesses = 4;

// A run's folder whose second pass is the folder itself: each reader takes the records that are for it.
struct RunFolder {
  RunFolder() {
    fs::create_directories(path);
    fs::create_directory_symlink(".", path / capture::kCountersFolder);
  }
  ~RunFolder() { fs::remove_all(path); }
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  [[nodiscard]] fs::path file(std::size_t process) const {
    return path / (std::to_string(process) + capture::kFileSuffix);
  }

  const fs::path path = fs::temp_directory_path() / ("weft-fuzz-" + std::to_string(::getpid()));
};

void write(std::ofstream& file, const void* data, std::size_t size) {
  file.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
}

// Where the next process begins behind the first record: at a session; else the end.
std::size_t length_of_process(RawBytes records) {
  capture::RecordHeader header{};
  for (std::size_t at = 0; at + sizeof(header) <= records.size(); at += header.bytes) {
    std::memcpy(&header, records.data() + at, sizeof(header));
    if (at > 0 && header.kind == capture::RecordKind::session) return at;
    if (header.bytes < sizeof(header) || header.bytes > records.size() - at) break;
  }
  return records.size();
}

// A file of one block. RecordFile would take megabytes for it each time.
void write_block(RawBytes records, const fs::path& path) {
  std::vector<char> packed(ZSTD_compressBound(records.size()));
  packed.resize(ZSTD_compress(packed.data(), packed.size(), records.data(), records.size(), 1));
  const capture::BlockHeader header{capture::kBlockMagic, static_cast<std::uint32_t>(packed.size()),
                                    static_cast<std::uint32_t>(records.size()), 0};
  std::ofstream file(path, std::ios::binary);
  write(file, capture::kMagic, sizeof(capture::kMagic));
  write(file, &header, sizeof(header));
  write(file, packed.data(), packed.size());
}

}  // namespace

// The checksum of a block keeps damage from the records in it. So, but for inputs that begin as files do, the bytes are
// records, those of each process for a file.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const RunFolder folder;
  for (std::size_t process = 0; process < kMostProcesses; ++process) fs::remove(folder.file(process));
  RawBytes bytes(data, size);
  if (size >= sizeof(capture::kMagic) && std::memcmp(data, capture::kMagic, sizeof(capture::kMagic)) == 0) {
    std::ofstream file(folder.file(0), std::ios::binary);
    write(file, data, size);
  } else {
    for (std::size_t process = 0; process < kMostProcesses && (process == 0 || !bytes.empty()); ++process) {
      const std::size_t length = process + 1 < kMostProcesses ? length_of_process(bytes) : bytes.size();
      write_block(bytes.first(length), folder.file(process));
      bytes = bytes.subspan(length);
    }
  }
  try {
    std::vector<std::string> notes;
    (void)trace_info_json(import_capture({folder.path}, notes)).dump();
  } catch (const InputError&) {
  }
  return 0;
}
