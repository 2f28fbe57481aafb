// Each distinct value once: many events of a trace share few names.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace weft {

struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

// Views stay valid as long as this, and when it is moved.
class InternedText {
 public:
  std::string_view operator()(std::string_view text) {
    const auto found = texts_.find(text);
    return found != texts_.end() ? *found : *texts_.emplace(text).first;
  }

 private:
  std::unordered_set<std::string, TextHash, std::equal_to<>> texts_;
};

// Values by the text that they were read from; pointers stay valid like the views above.
template <class T>
using ByText = std::unordered_map<std::string, T, TextHash, std::equal_to<>>;

}  // namespace weft
