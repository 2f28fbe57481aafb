// Files that are either there whole or not at all.
#pragma once

#include <filesystem>
#include <string_view>

namespace weft {

// Writes `bytes` to `path`: first beside it under a temporary name, then renamed over it, so that a reader or a crash
// never sees a part. The folder must exist. Throws InputError naming the file when it cannot be written; then a file
// that was there before is untouched and nothing new is left.
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

}  // namespace weft
