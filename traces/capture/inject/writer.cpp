#include "traces/capture/inject/writer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "traces/capture/inject/clock.h"

namespace weft::capture {

Writer::Writer(int descriptor, std::chrono::milliseconds period) : file_(descriptor), period_(period) {
  buffers_.reserve(kMostBuffers);
  free_.reserve(kMostBuffers);
  pending_.reserve(kPendingBytes);
  writing_.reserve(kPendingBytes);
  thread_ = std::thread([this] { run(); });
}

Writer::~Writer() { finish(); }

void Writer::set_source(const ActivitySource& source) {
  const std::lock_guard lock(mutex_);
  source_ = source;
}

std::uint8_t* Writer::take_buffer() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) {
    if (buffers_.size() == kMostBuffers) return nullptr;
    buffers_.push_back(std::make_unique_for_overwrite<std::uint64_t[]>(kBufferBytes / sizeof(std::uint64_t)));
    free_.push_back(reinterpret_cast<std::uint8_t*>(buffers_.back().get()));
  }
  std::uint8_t* buffer = free_.back();
  free_.pop_back();
  return buffer;
}

void Writer::give_buffer(std::uint8_t* buffer, std::size_t valid_bytes) {
  const std::lock_guard lock(mutex_);
  if (valid_bytes == 0) {
    free_.push_back(buffer);
    return;
  }
  filled_[(first_filled_ + filled_count_++) % kMostBuffers] = {buffer, valid_bytes};
  work_.notify_one();
}

void Writer::put_bytes(const void* record, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (pending_.size() + bytes > kPendingBytes) {
    ++dropped_;
    return;
  }
  const char* data = static_cast<const char*>(record);
  pending_.insert(pending_.end(), data, data + bytes);
  if (pending_.size() > kPendingBytes / 2) work_.notify_one();
}

void Writer::note(const char* message) {
  const std::lock_guard lock(mutex_);
  const std::size_t length = std::min(std::strlen(message), std::size_t{1024});
  NoteRecord record;
  record.length = static_cast<std::uint32_t>(length);
  const std::size_t bytes = (sizeof(record) + length + 7) / 8 * 8;
  record.header.bytes = static_cast<std::uint32_t>(bytes);
  if (pending_.size() + bytes > kPendingBytes) return;
  append(&record, sizeof(record), bytes, {message, length});
}

void Writer::put_waiting(const void* record, std::size_t head, std::size_t bytes, std::string_view characters) {
  std::unique_lock lock(mutex_);
  if (pending_.size() + bytes > kPendingBytes / 2) work_.notify_one();
  room_.wait(lock, [&] { return stop_ || pending_.size() + bytes <= kPendingBytes; });
  if (!stop_) append(record, head, bytes, characters);
}

void Writer::append(const void* record, std::size_t head, std::size_t bytes, std::string_view characters) {
  const std::size_t at = pending_.size();
  pending_.resize(at + bytes);
  std::memcpy(pending_.data() + at, record, head);
  std::memcpy(pending_.data() + at + head, characters.data(), characters.size());
}

// The lock is free while blocks are packed and written.
void Writer::write_pending(std::unique_lock<std::mutex>& lock) {
  while (filled_count_ > 0) {
    const Filled filled = filled_[first_filled_];
    first_filled_ = (first_filled_ + 1) % kMostBuffers;
    --filled_count_;
    lock.unlock();
    source_.convert(filled.buffer, filled.bytes, file_);
    lock.lock();
    free_.push_back(filled.buffer);
  }
  writing_.swap(pending_);
  pending_.clear();
  room_.notify_all();
  std::uint64_t dropped = std::exchange(dropped_, 0);
  lock.unlock();
  // Whole records, so blocks may end between any two of them.
  for (std::size_t at = 0; at < writing_.size();) {
    RecordHeader header;
    std::memcpy(&header, writing_.data() + at, sizeof(header));
    file_.put_bytes(writing_.data() + at, header.bytes);
    at += header.bytes;
  }
  if (source_.dropped != nullptr) dropped += source_.dropped();
  if (dropped > 0) {
    DroppedRecord record;
    record.records = dropped;
    file_.put(record);
  }
  lock.lock();
}

void Writer::wake() {
  const std::lock_guard lock(mutex_);
  woken_ = true;
  work_.notify_one();
}

void Writer::sample(std::unique_lock<std::mutex>& lock, bool last) {
  const auto sample = source_.sample;
  if (sample == nullptr) return;
  lock.unlock();
  sample(file_, last);
  lock.lock();
}

void Writer::flush(std::unique_lock<std::mutex>& lock, bool last) {
  const auto flush = source_.flush;
  lock.unlock();
  if (flush != nullptr) flush(last);  // hands over buffers
  lock.lock();
  write_pending(lock);
  lock.unlock();
  file_.flush();
  lock.lock();
}

void Writer::run() {
  std::unique_lock lock(mutex_);
  auto next_flush = std::chrono::steady_clock::now() + period_;
  while (!stop_) {
    work_.wait_until(lock, next_flush,
                     [&] { return stop_ || woken_ || filled_count_ > 0 || pending_.size() > kPendingBytes / 2; });
    const bool due = std::chrono::steady_clock::now() >= next_flush;
    if (!stop_ && (std::exchange(woken_, false) || due)) sample(lock, false);
    if (!stop_ && due) {
      flush(lock, false);
      next_flush = std::chrono::steady_clock::now() + period_;
    }
    write_pending(lock);
  }
  // Twice: profilers may not live through the end of the program that they look at.
  flush(lock, false);
  flush(lock, true);
  sample(lock, true);
  write_pending(lock);
}

void Writer::finish() {
  {
    const std::lock_guard lock(mutex_);
    if (stop_) return;
    stop_ = true;
  }
  room_.notify_all();
  work_.notify_one();
  thread_.join();
  EndRecord end;
  end.time = now_ns();
  file_.put(end);
  file_.flush();
}

}  // namespace weft::capture
