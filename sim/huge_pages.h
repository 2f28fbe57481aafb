// An allocator for large tables that are accessed at random: it asks the kernel for huge pages, so that an access does
// not also miss in the host's translation caches. Where there are none, and for tables below half a page, it is an
// ordinary aligned allocation.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

namespace weft {

template <class T>
struct HugePageAllocator {
  using value_type = T;
  static constexpr std::size_t kPage = std::size_t{2} << 20;
  static constexpr std::size_t kCacheLine = 64;

  HugePageAllocator() = default;
  template <class U>
  explicit HugePageAllocator(const HugePageAllocator<U>&) {}

  T* allocate(std::size_t n) {
    const std::size_t unit = n * sizeof(T) < kPage / 2 ? kCacheLine : kPage;
    const std::size_t bytes = (n * sizeof(T) + unit - 1) / unit * unit;
    void* memory = std::aligned_alloc(unit, bytes);
    if (memory == nullptr) throw std::bad_alloc();
    if (unit == kPage) madvise(memory, bytes, MADV_HUGEPAGE);  // a hint: its failure changes nothing but speed
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t) { std::free(memory); }
  bool operator==(const HugePageAllocator&) const = default;
};

template <class T>
using HugeVector = std::vector<T, HugePageAllocator<T>>;

}  // namespace weft
