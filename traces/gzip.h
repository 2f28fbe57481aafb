// Files that may be gzip: read whole into memory with a bound, written atomically.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace weft {

// Limits on what a file may unpack to. The default is what the JSON parser can address (simdjson: 32-bit offsets).
struct UnpackLimits {
  std::uint64_t bytes = (std::uint64_t{4} << 30) - 4096;
  // A file that unpacks to more than `ratio_free_bytes` may not be larger than `ratio` times its packed size. Deflate
  // packs at most 1032:1 (zlib.net/zlib_tech.html), traces about 10:1 to 60:1; a bomb is near the former.
  std::uint64_t ratio_free_bytes = std::uint64_t{128} << 20;
  std::uint64_t ratio = 500;
};

// The content of `file`, unpacked if it begins with gzip's magic number (concatenated members too). Throws MissingInput
// when it cannot be opened; InputError when it is empty, truncated, corrupt or beyond the limits.
[[nodiscard]] std::string read_maybe_gzip(const std::filesystem::path& file, const UnpackLimits& limits = {});

// Writes beside `file` and renames, so that a reader never sees a part; gzip when the name ends in ".gz". The same
// content gives the same bytes. Throws InputError when the folder cannot be written.
void write_atomically(const std::filesystem::path& file, std::string_view content);

}  // namespace weft
