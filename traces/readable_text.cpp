#include "traces/readable_text.h"

#include <simdjson.h>

namespace weft {

std::string readable(std::string_view text) {
  std::string out(text);
  if (!simdjson::validate_utf8(out))
    for (char& c : out)
      if (static_cast<unsigned char>(c) >= 0x80) c = '?';
  return out;
}

}  // namespace weft
