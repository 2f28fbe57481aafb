#include "gpu_model/tlb.h"

#include <bit>
#include <utility>

#include "sim/error.h"

namespace weft {

namespace {
constexpr std::uint32_t kWays = 16;
}

Tlb::Tlb(std::uint32_t entries, std::int64_t page_bytes)
    : page_shift_(static_cast<std::uint32_t>(std::countr_zero(static_cast<std::uint64_t>(page_bytes / kLineBytes)))),
      page_mask_((LineAddress{1} << page_shift_) - 1),
      ways_(std::clamp(entries, 1U, kWays)),
      sets_(entries / ways_) {
  WEFT_CHECK(page_bytes >= kLineBytes && std::has_single_bit(static_cast<std::uint64_t>(page_bytes)),
             "pages of a power of two");
  WEFT_CHECK(entries == ways_ * sets_, "a multiple of 16 entries, or fewer");
}

Tlb::Found Tlb::find(LineAddress line) {
  if (entries_.empty()) grow();
  const std::uint32_t page = line >> page_shift_;
  Entry* set = set_of(page);
  std::uint32_t at = 0;
  while (at < ways_ - 1 && set[at].page != page) ++at;
  const bool hit = set[at].page == page;
  while (!hit && set[ways_ - 1].page != kNoPage && held_ < sets_) {  // the last one keeps its place in its set
    grow();
    set = set_of(page);
  }
  const Entry entry = hit ? set[at] : Entry{page, 0};
  std::copy_backward(set, set + at, set + at + 1);
  set[0] = entry;
  return {&set[0].ready, hit};
}

// Each set becomes two, of pages in the order in which they were used.
void Tlb::grow() {
  held_ = held_ == 0 ? sets_ >> std::countr_zero(sets_) : 2 * held_;
  const std::vector<Entry> before = std::exchange(entries_, std::vector<Entry>(std::size_t{held_} * ways_));
  for (const Entry& entry : before) {
    if (entry.page == kNoPage) continue;
    *std::ranges::find(set_of(entry.page), set_of(entry.page) + ways_, kNoPage, &Entry::page) = entry;
  }
}

void Tlb::rest() {
  for (Entry& entry : entries_) entry.ready = 0;
}

PageTable::PageTable(const TlbSpec& spec)
    : tlb_(spec.entries, spec.page),
      full_clock_latency_(cycles(std::int64_t{spec.latency_cycles})),
      full_clock_walk_(cycles(std::int64_t{spec.walk_latency_cycles})),
      latency_(full_clock_latency_),
      walk_(full_clock_walk_),
      walkers_(spec.walks, 0) {}

void PageTable::set_stretch(Stretch stretch) {
  latency_ = stretch(full_clock_latency_);
  walk_ = stretch(full_clock_walk_);
}

SubCycle PageTable::translate(LineAddress line, SubCycle now) {
  const SubCycle asked = now + latency_;
  if (!tlb_.translates()) return asked;
  const Tlb::Found found = tlb_.find(line);
  if (!found.hit) {
    const auto walker = std::min_element(walkers_.begin(), walkers_.end());
    *walker = std::max(*walker, asked) + walk_;
    *found.ready = *walker;
    ++walked_;
  }
  return std::max(asked, *found.ready);
}

void PageTable::rest() {
  tlb_.rest();
  std::fill(walkers_.begin(), walkers_.end(), 0);
}

}  // namespace weft
