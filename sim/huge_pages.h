// An allocator for large tables that are accessed at random: it asks the kernel for huge pages, so that an access does
// not also miss in the host's translation caches. Where there are none it is an ordinary aligned allocation. Tables
// from 32 KiB to half a huge page are mapped by themselves: those of thousands of GPUs grow by doubling, and the holes
// that the halves would leave in the heap add up to as much as the tables.
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
  static constexpr std::size_t kMapped = std::size_t{32} << 10;

  HugePageAllocator() = default;
  template <class U>
  explicit HugePageAllocator(const HugePageAllocator<U>&) {}

  T* allocate(std::size_t n) {
    if (is_mapped(n)) {
      void* memory = mmap(nullptr, n * sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (memory == MAP_FAILED) throw std::bad_alloc();
      return static_cast<T*>(memory);
    }
    const std::size_t unit = n * sizeof(T) < kPage / 2 ? kCacheLine : kPage;
    const std::size_t bytes = (n * sizeof(T) + unit - 1) / unit * unit;
    void* memory = std::aligned_alloc(unit, bytes);
    if (memory == nullptr) throw std::bad_alloc();
    if (unit == kPage) madvise(memory, bytes, MADV_HUGEPAGE);  // a hint: its failure changes nothing but speed
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t n) {
    is_mapped(n) ? static_cast<void>(munmap(memory, n * sizeof(T))) : std::free(memory);
  }
  bool operator==(const HugePageAllocator&) const = default;

 private:
  static bool is_mapped(std::size_t n) { return n * sizeof(T) >= kMapped && n * sizeof(T) < kPage / 2; }
};

template <class T>
using HugeVector = std::vector<T, HugePageAllocator<T>>;

}  // namespace weft
