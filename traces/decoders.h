// Decoders and encoders of packed files; for packed_file.cpp only.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "traces/packed_file.h"

namespace weft {

// By the magic number at the front of a file; one that copies when there is none.
[[nodiscard]] std::unique_ptr<Decoder> make_decoder(std::string_view front);

[[nodiscard]] std::string pack_gzip(std::string_view content);
[[nodiscard]] std::string pack_zstd(std::string_view content);

}  // namespace weft
