#include "traces/capture/inject/writer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/traces/temporary_file.h"
#include "traces/capture/capture_file.h"

namespace weft {
namespace {

using capture::RecordKind;
using capture::Writer;

int open_file(const std::filesystem::path& path) { return ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666); }

std::vector<RecordKind> kinds_in(const std::filesystem::path& path, std::uint64_t* dropped = nullptr) {
  std::vector<RecordKind> kinds;
  CaptureFile file(path);
  while (file.next()) {
    kinds.push_back(file.kind());
    if (dropped != nullptr && file.kind() == RecordKind::dropped) *dropped += file.as<capture::DroppedRecord>().records;
  }
  EXPECT_EQ(file.damage(), "");
  return kinds;
}

// Each byte of a buffer is a kernel.
void convert_bytes(const std::uint8_t* buffer, std::size_t bytes, capture::RecordFile& file) {
  for (std::size_t i = 0; i < bytes; ++i) {
    capture::KernelRecord record;
    record.gpu.stream = buffer[i];
    file.put(record);
  }
}

TEST(CaptureWriter, ConvertsBuffersInTheOrderInWhichTheyCame) {
  const testing::TemporaryFolder folder;
  Writer writer(open_file(folder.file("a")));
  writer.set_source({convert_bytes, nullptr, nullptr});
  for (std::uint8_t i = 0; i < 200; ++i) {
    std::uint8_t* buffer = nullptr;
    while ((buffer = writer.take_buffer()) == nullptr) std::this_thread::yield();
    buffer[0] = i;
    writer.give_buffer(buffer, 1);
  }
  writer.finish();
  CaptureFile file(folder.file("a"));
  for (std::uint32_t i = 0; i < 200; ++i) {
    ASSERT_TRUE(file.next());
    EXPECT_EQ(file.as<capture::KernelRecord>().gpu.stream, i);
  }
}

TEST(CaptureWriter, HandsOutNoMoreBuffersThanItsBound) {
  const testing::TemporaryFolder folder;
  Writer writer(open_file(folder.file("a")));
  writer.set_source({convert_bytes, nullptr, nullptr});
  std::vector<std::uint8_t*> taken;
  while (std::uint8_t* buffer = writer.take_buffer()) taken.push_back(buffer);
  EXPECT_EQ(taken.size(), capture::kMostBuffers);
  writer.give_buffer(taken.back(), 0);
  EXPECT_EQ(writer.take_buffer(), taken.back());
}

TEST(CaptureWriter, CountsWhatIsLostAndNeverWaits) {
  const testing::TemporaryFolder folder;
  static std::atomic<bool> held;
  held = true;
  Writer writer(open_file(folder.file("a")));
  // The writer's thread is kept busy, so nothing is taken from what other threads put.
  writer.set_source({[](const std::uint8_t*, std::size_t, capture::RecordFile&) {
                       while (held) std::this_thread::yield();
                     },
                     nullptr, [] { return std::uint64_t{0}; }});
  writer.give_buffer(writer.take_buffer(), 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  constexpr std::size_t kPut = 2 * capture::kPendingBytes / sizeof(capture::CollectiveRecord);
  for (std::size_t i = 0; i < kPut; ++i) writer.put(capture::CollectiveRecord());
  held = false;
  writer.finish();
  std::uint64_t dropped = 0;
  const auto kinds = kinds_in(folder.file("a"), &dropped);
  const auto written = static_cast<std::size_t>(std::count(kinds.begin(), kinds.end(), RecordKind::collective));
  EXPECT_EQ(written + dropped, kPut);
  EXPECT_GT(dropped, 0u);
  EXPECT_EQ(kinds.back(), RecordKind::end);
}

TEST(CaptureWriter, WritesWhileTheProcessRuns) {
  const testing::TemporaryFolder folder;
  Writer writer(open_file(folder.file("a")));
  writer.put(capture::CollectiveRecord());
  writer.note("something");
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (std::filesystem::file_size(folder.file("a")) <= sizeof(capture::kMagic) &&
         std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  CaptureFile file(folder.file("a"));
  ASSERT_TRUE(file.next());
  EXPECT_EQ(file.kind(), RecordKind::collective);
  ASSERT_TRUE(file.next());
  EXPECT_EQ(file.note(), "something");
}

TEST(CaptureWriter, TakesRecordsOfManyThreads) {
  const testing::TemporaryFolder folder;
  Writer writer(open_file(folder.file("a")));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) writer.put(capture::CollectiveRecord());
    });
  for (std::thread& thread : threads) thread.join();
  writer.finish();
  EXPECT_EQ(kinds_in(folder.file("a")).size(), 801u);
}

// What the file held when the next test's source was asked for all.
std::filesystem::path watched;
std::size_t kernels_before_the_last;

// A profiler may not live through the end of the program that it looks at.
TEST(CaptureWriter, WritesWhatIsCompleteBeforeItAsksForTheRest) {
  const testing::TemporaryFolder folder;
  watched = folder.file("a");
  Writer writer(open_file(watched), std::chrono::hours(1));
  const auto flush = [](bool last) {
    if (!last) return;
    CaptureFile file(watched);
    while (file.next()) kernels_before_the_last += file.kind() == RecordKind::kernel ? 1 : 0;
  };
  writer.set_source({convert_bytes, flush, nullptr});
  std::uint8_t* buffer = writer.take_buffer();
  writer.give_buffer(buffer, 3);
  kernels_before_the_last = 0;
  writer.finish();
  EXPECT_EQ(kernels_before_the_last, 3u);
}

// What the next test's source writes: a clock each time, the last of which says so.
std::atomic<bool> was_asked;
void write_clock(capture::RecordFile& file, bool last) {
  capture::ClockRecord record;
  record.core_MHz = last ? 2 : 1;
  file.put(record);
  was_asked = true;
  was_asked.notify_all();
}

// Not by its rhythm, which is longer than any test takes.
TEST(CaptureWriter, ASourceIsAskedSoonAfterAWakeAndBeforeTheEnd) {
  const testing::TemporaryFolder folder;
  was_asked = false;
  Writer writer(open_file(folder.file("a")), std::chrono::hours(1));
  writer.set_source({nullptr, nullptr, nullptr, write_clock});
  writer.wake();
  was_asked.wait(false);
  writer.finish();
  CaptureFile file(folder.file("a"));
  std::vector<std::uint32_t> asked;
  while (file.next())
    if (file.kind() == RecordKind::clock) asked.push_back(file.as<capture::ClockRecord>().core_MHz);
  EXPECT_THAT(asked, ::testing::ElementsAre(1u, 2u));
  EXPECT_EQ(file.damage(), "");
}

}  // namespace
}  // namespace weft
