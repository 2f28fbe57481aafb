// The thread that turns what CUPTI and NCCL tell into a capture file, so that the program's own threads only hand over.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include "traces/capture/inject/record_file.h"

namespace weft::capture {

inline constexpr std::size_t kBufferBytes = std::size_t{1} << 20;
// 64 MiB: a program that launches 200,000 kernels a second fills some 50 MiB/s of CUPTI's records.
inline constexpr std::size_t kMostBuffers = 64;
// Records of the program's threads (NCCL, graphs) until the writer takes them.
inline constexpr std::size_t kPendingBytes = std::size_t{256} << 10;
// What a program that dies loses at most, of records that were complete.
inline constexpr std::chrono::milliseconds kWriterPeriod{250};

// What the writer needs of CUPTI; tests bring their own. All of it is called by the writer's thread.
struct ActivitySource {
  // Turns the records in a filled buffer into records of the file.
  void (*convert)(const std::uint8_t* buffer, std::size_t valid_bytes, RecordFile& file) = nullptr;
  // Asks for what is complete, once a period; `last`, before the end, for all.
  void (*flush)(bool last) = nullptr;
  // Records lost since the last call.
  std::uint64_t (*dropped)() = nullptr;
  // Writes records of its own: once a period, soon after a wake(), and, `last`, before the end.
  void (*sample)(RecordFile& file, bool last) = nullptr;
};

// Memory is bounded: what does not fit is lost and counted, never waited for.
class Writer {
 public:
  // `period`: how often it asks its source and writes what there is.
  explicit Writer(int descriptor, std::chrono::milliseconds period = kWriterPeriod);
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // Before any buffer is asked for.
  void set_source(const ActivitySource& source);

  // An empty buffer of kBufferBytes, aligned to 8; nullptr when all are on their way.
  std::uint8_t* take_buffer();
  // `buffer` is from take_buffer(). Without valid bytes it is only given back.
  void give_buffer(std::uint8_t* buffer, std::size_t valid_bytes);

  // Any thread: `sample` has work that should not wait for its period.
  void wake();

  // Any thread.
  template <class Record>
  void put(const Record& record) {
    put_bytes(&record, sizeof(Record));
  }
  void note(const char* message);
  // `record` with characters behind it, for records that must not be lost: waits until there is room. Not within what
  // the writer's thread calls.
  template <class Record>
  void put_waiting(Record record, std::string_view characters) {
    record.length = static_cast<std::uint32_t>(characters.size());
    record.header.bytes = static_cast<std::uint32_t>((sizeof(Record) + characters.size() + 7) / 8 * 8);
    put_waiting(&record, sizeof(Record), record.header.bytes, characters);
  }

  // Writes all that was handed over, and the end. Nothing may be handed over afterwards.
  void finish();

 private:
  struct Filled {
    std::uint8_t* buffer;
    std::size_t bytes;
  };

  void put_bytes(const void* record, std::size_t bytes);
  void put_waiting(const void* record, std::size_t head, std::size_t bytes, std::string_view characters);
  void append(const void* record, std::size_t head, std::size_t bytes, std::string_view characters);
  void run();
  void sample(std::unique_lock<std::mutex>& lock, bool last);
  void flush(std::unique_lock<std::mutex>& lock, bool last);
  void write_pending(std::unique_lock<std::mutex>& lock);

  RecordFile file_;
  const std::chrono::milliseconds period_;
  ActivitySource source_;
  std::mutex mutex_;
  std::condition_variable work_, room_;
  bool stop_ = false, woken_ = false;
  std::vector<std::unique_ptr<std::uint64_t[]>> buffers_;
  std::vector<std::uint8_t*> free_;
  std::array<Filled, kMostBuffers> filled_;  // a ring
  std::size_t first_filled_ = 0, filled_count_ = 0;
  std::vector<char> pending_, writing_;
  std::uint64_t dropped_ = 0;
  std::thread thread_;
};

}  // namespace weft::capture
