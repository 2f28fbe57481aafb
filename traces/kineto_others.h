// What a profile holds that is neither work of a GPU nor of its host, to say so where there is nothing else.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

namespace weft {

class OtherEvents {
 public:
  // Of a category; empty: of none.
  void add(std::string_view category);
  // Of a file with `events` events in all: what these are, and what may be the reason. `host`: some are the host's
  // work.
  [[nodiscard]] std::string words(std::size_t events, bool host) const;

 private:
  std::map<std::string, std::size_t, std::less<>> counts_;  // of the first few categories
};

}  // namespace weft
