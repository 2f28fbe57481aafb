#include "sim/hash.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>

#include "sim/error.h"

namespace weft {

std::string sha256(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int length = 0;
  const int done = EVP_Digest(bytes.data(), bytes.size(), digest.data(), &length, EVP_sha256(), nullptr);
  WEFT_CHECK(done == 1 && length == 32, "libcrypto cannot compute SHA-256");
  std::string text;
  for (unsigned int i = 0; i < length; ++i) text += fmt::format("{:02x}", digest.at(i));
  return text;
}

}  // namespace weft
