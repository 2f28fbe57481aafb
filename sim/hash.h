// Fingerprints of configurations.
#pragma once

#include <string>
#include <string_view>

namespace weft {

// SHA-256 (FIPS 180-4) of the bytes, as 64 lower-case hexadecimal digits.
[[nodiscard]] std::string sha256(std::string_view bytes);

}  // namespace weft
