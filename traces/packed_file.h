// Files that may be packed, with gzip or zstd: read as a stream or whole, with bounds, and written atomically.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

// Limits on what a file may unpack to.
struct UnpackLimits {
  std::uint64_t bytes = UINT64_MAX;
  // A file that unpacks to more than `ratio_free_bytes` may not be larger than `ratio` times its packed size. Deflate
  // packs at most 1032:1 (zlib.net/zlib_tech.html), traces about 10:1 to 60:1; a bomb is near the former.
  std::uint64_t ratio_free_bytes = std::uint64_t{128} << 20;
  std::uint64_t ratio = 500;
};

// Turns packed bytes into plain ones.
class Decoder {
 public:
  virtual ~Decoder() = default;
  // Takes from the front of `packed` and fills `out` from the front: all of one or the other. Returns the bytes that it
  // wrote. Throws std::runtime_error with what is wrong.
  virtual std::size_t decode(std::string_view& packed, std::span<char> out) = 0;
  // What was taken so far is whole.
  [[nodiscard]] virtual bool complete() const = 0;
};

// The content of a file, unpacked if it begins with the magic number of gzip or zstd (parts that follow each other
// too). Memory: a buffer, and of zstd its window, at most 128 MiB.
class PackedFile {
 public:
  // Throws MissingInput when it cannot be opened; InputError when it is a folder or empty.
  explicit PackedFile(const std::filesystem::path& file, const UnpackLimits& limits = {});

  // The next bytes; fewer than `out` holds only at the end. Throws InputError when the file is truncated, corrupt or
  // beyond the limits.
  std::size_t read(std::span<char> out);
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  struct FileCloser {
    void operator()(std::FILE* f) const;
  };

  void fill();
  void check_limits() const;

  std::string name_;
  UnpackLimits limits_;
  std::unique_ptr<std::FILE, FileCloser> file_;
  std::vector<char> buffer_;
  std::string_view packed_;  // in `buffer_`, not yet taken
  std::uint64_t packed_bytes_ = 0;
  std::uint64_t bytes_ = 0;
  std::unique_ptr<Decoder> decoder_;
};

// The whole content. By default at most what a JSON parser can address (simdjson: 32-bit offsets).
[[nodiscard]] std::string read_packed(const std::filesystem::path& file,
                                      const UnpackLimits& limits = {.bytes = (std::uint64_t{4} << 30) - 4096});

// Writes beside `file` and renames, so that a reader never sees a part; gzip when the name ends in ".gz", zstd for
// ".zst". The same content gives the same bytes. Throws InputError when the folder cannot be written.
void write_atomically(const std::filesystem::path& file, std::string_view content);

}  // namespace weft
