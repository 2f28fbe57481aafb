// Translations of addresses: sets of up to 16 pages, least recently used first out. An entry is there before its
// translation is: who asks meanwhile waits for it. Sets come into being as pages do: where an entry would have to make
// room in fewer sets, they double first, so nothing is forgotten earlier and a GPU that touched little holds little.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gpu_model/clock_domain.h"
#include "gpu_model/gpu_spec.h"
#include "network/packet.h"

namespace weft {

class Tlb {
 public:
  // A multiple of 16 entries, or fewer; `page_bytes` is a power of two.
  Tlb(std::uint32_t entries, std::int64_t page_bytes);
  [[nodiscard]] bool translates() const { return sets_ > 0; }
  // Whether a group of lines touches a page that its stream did not touch with the line before.
  [[nodiscard]] bool enters_page(LineAddress first, std::uint32_t count) const {
    return ((first + count - 1) & page_mask_) < count;
  }
  struct Found {
    SubCycle* ready = nullptr;  // when the translation is there; to be filled in after a miss
    bool hit = false;
  };
  Found find(LineAddress line);
  // All translations are there: the state of an idle GPU at time 0.
  void rest();

 private:
  static constexpr std::uint32_t kNoPage = ~std::uint32_t{0};
  struct Entry {
    std::uint32_t page = kNoPage;
    SubCycle ready = 0;
  };
  [[nodiscard]] Entry* set_of(std::uint32_t page) { return &entries_[std::size_t{page % held_} * ways_]; }
  void grow();

  std::uint32_t page_shift_;  // of a line address
  LineAddress page_mask_;
  std::uint32_t ways_;
  std::uint32_t sets_;
  std::uint32_t held_ = 0;      // of these, so far
  std::vector<Entry> entries_;  // of a set, most recently used first; from the first access on
};

// The GPU's own TLB and the walks of its page table.
class PageTable {
 public:
  explicit PageTable(const TlbSpec& spec);
  // When the translation of the line is at the unit that asked at `now`.
  SubCycle translate(LineAddress line, SubCycle now);
  [[nodiscard]] std::int64_t walks() const { return walked_; }
  void set_stretch(Stretch stretch);  // of a lower clock, from now on
  void rest();

 private:
  Tlb tlb_;
  SubCycle full_clock_latency_, full_clock_walk_;
  SubCycle latency_;
  SubCycle walk_;
  std::vector<SubCycle> walkers_;  // free from
  std::int64_t walked_ = 0;
};

}  // namespace weft
