// Calls of NCCL that go through here where the library is preloaded, for an NCCL that loads no plugin of ours (before
// 2.27, or with a plugin of the user's own). They say what is asked for, not how NCCL does it.
#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <mutex>

#include "traces/capture/inject/nccl_abi.h"
#include "traces/capture/inject/nccl_records.h"

namespace weft::capture {

namespace {

constexpr NcclResult kSystemError = 2;  // ncclSystemError (nccl.h)
constexpr std::size_t kMostCommunicators = 256;

// The function of this name in another object than this one. Libraries that were opened locally (as Python opens
// PyTorch's) are not in the order of search, so all that are loaded are asked.
void* find_real(const char* name) {
  Dl_info own{}, other{};
  ::dladdr(reinterpret_cast<void*>(&find_real), &own);
  const auto foreign = [&](void* found) {
    return found != nullptr && ::dladdr(found, &other) != 0 && other.dli_fbase != own.dli_fbase;
  };
  if (void* next = ::dlsym(RTLD_NEXT, name); foreign(next)) return next;
  struct Search {
    const char* name;
    decltype(foreign)& is_foreign;
    void* found;
  } search{name, foreign, nullptr};
  ::dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* data) {
        auto& s = *static_cast<Search*>(data);
        void* library = object->dlpi_name[0] == 0 ? nullptr : ::dlopen(object->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
        if (library == nullptr) return 0;
        void* found = ::dlsym(library, s.name);
        ::dlclose(library);
        if (!s.is_foreign(found)) return 0;
        s.found = found;
        return 1;
      },
      &search);
  return search.found;
}

// Of one function, found once.
template <class Function>
class Real {
 public:
  explicit constexpr Real(const char* name) : name_(name) {}
  template <class... Arguments>
  NcclResult operator()(Arguments... arguments) {
    void* function = function_.load(std::memory_order_acquire);
    if (function == nullptr) {
      function = find_real(name_);
      function_.store(function, std::memory_order_release);
    }
    return function == nullptr ? kSystemError : reinterpret_cast<Function*>(function)(arguments...);
  }

 private:
  const char* name_;
  std::atomic<void*> function_{nullptr};
};

constinit Real<NcclResult(NcclComm, int*)> real_count("ncclCommCount");
constinit Real<NcclResult(NcclComm, int*)> real_rank("ncclCommUserRank");

std::uint64_t mix(std::uint64_t hash, const void* data, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i)
    hash = (hash ^ static_cast<const unsigned char*>(data)[i]) * 0x100000001b3;  // FNV-1a
  return hash;
}

// What all ranks of a communicator have in common, by its handle.
class Communicators {
 public:
  void add(NcclComm handle, std::uint64_t id) {
    const std::lock_guard lock(mutex_);
    Entry* entry = find(handle);
    if (entry == nullptr) entry = find(nullptr);  // a free one
    if (entry != nullptr) *entry = {handle, id, 0, false};
  }

  std::uint64_t split_id(NcclComm parent, int color) {
    const std::lock_guard lock(mutex_);
    Entry* entry = find(parent);
    if (entry == nullptr) return 0;
    const std::uint32_t number = entry->splits++;
    return mix(mix(entry->id, &number, sizeof(number)), &color, sizeof(color));
  }

  void remove(NcclComm handle) {
    const std::lock_guard lock(mutex_);
    if (Entry* entry = find(handle)) *entry = {};
  }

  // Its ranks are recorded with its first collective: before, it may not be ready to tell.
  std::uint64_t id(Writer& writer, NcclComm handle) {
    const std::lock_guard lock(mutex_);
    Entry* entry = find(handle);
    if (entry == nullptr) return 0;
    if (!entry->recorded) {
      int ranks = 0, rank = 0;
      entry->recorded = real_count(handle, &ranks) == 0 && real_rank(handle, &rank) == 0;
      if (entry->recorded) record_communicator(writer, entry->id, ranks, rank, nullptr);
    }
    return entry->id;
  }

 private:
  struct Entry {
    NcclComm handle = nullptr;
    std::uint64_t id = 0;
    std::uint32_t splits = 0;
    bool recorded = false;
  };

  Entry* find(NcclComm handle) {
    for (Entry& entry : entries_)
      if (entry.handle == handle) return &entry;
    return nullptr;
  }

  std::mutex mutex_;
  Entry entries_[kMostCommunicators];
};

constinit Communicators communicators;

void made(NcclResult result, NcclComm* communicator, std::uint64_t id) {
  constexpr NcclResult kInProgress = 7;  // ncclInProgress: communicators that do not block
  if ((result == 0 || result == kInProgress) && *communicator != nullptr) communicators.add(*communicator, id);
}

// A call while it lasts. Some functions of NCCL call others that are recorded too; the outermost one counts.
class Call {
 public:
  Call(const char* function, NcclComm communicator, std::size_t count, int type, int peer = -1) {
    if (depth++ == 0 && !plugin_is_active()) record(function, communicator, count, type, peer);
  }
  ~Call() { --depth; }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  static void record(const char* function, NcclComm communicator, std::size_t count, int type, int peer) {
    Writer* writer = session();
    if (writer == nullptr) return;
    CollectiveRecord record;
    record.communicator = communicators.id(*writer, communicator);
    record.time = now_ns();
    record.count = count;
    record.thread = thread_id();
    record.peer = peer;
    record.source = CollectiveSource::interposed_call;
    record.type = static_cast<std::uint8_t>(type);
    copy_text(record.function, function);
    writer->put(record);
  }

  static thread_local int depth;
};

thread_local int Call::depth = 0;

constexpr std::uint64_t kHashStart = 0xcbf29ce484222325;

}  // namespace

}  // namespace weft::capture

using weft::capture::Call;
using weft::capture::communicators;
using weft::capture::kHashStart;
using weft::capture::made;
using weft::capture::mix;
using weft::capture::NcclComm;
using weft::capture::NcclResult;
using weft::capture::NcclStream;
using weft::capture::NcclUniqueId;
using weft::capture::Real;

// NOLINTBEGIN(readability-identifier-naming): as in nccl.h.
#pragma GCC visibility push(default)
extern "C" {

NcclResult ncclCommInitRank(NcclComm* communicator, int ranks, NcclUniqueId id, int rank) {
  static constinit Real<NcclResult(NcclComm*, int, NcclUniqueId, int)> real("ncclCommInitRank");
  const NcclResult result = real(communicator, ranks, id, rank);
  made(result, communicator, mix(kHashStart, &id, sizeof(id)));
  return result;
}

NcclResult ncclCommInitRankConfig(NcclComm* communicator, int ranks, NcclUniqueId id, int rank, void* config) {
  static constinit Real<NcclResult(NcclComm*, int, NcclUniqueId, int, void*)> real("ncclCommInitRankConfig");
  const NcclResult result = real(communicator, ranks, id, rank, config);
  made(result, communicator, mix(kHashStart, &id, sizeof(id)));
  return result;
}

NcclResult ncclCommInitAll(NcclComm* list, int devices, const int* device_list) {
  static constinit Real<NcclResult(NcclComm*, int, const int*)> real("ncclCommInitAll");
  const NcclResult result = real(list, devices, device_list);
  const std::uint64_t first = weft::capture::now_ns();
  for (int i = 0; i < devices; ++i) made(result, list + i, mix(kHashStart, &first, sizeof(first)));
  return result;
}

NcclResult ncclCommSplit(NcclComm parent, int color, int key, NcclComm* communicator, void* config) {
  static constinit Real<NcclResult(NcclComm, int, int, NcclComm*, void*)> real("ncclCommSplit");
  const std::uint64_t id = communicators.split_id(parent, color);
  const NcclResult result = real(parent, color, key, communicator, config);
  constexpr int kNoColor = -1;  // NCCL_SPLIT_NOCOLOR: this rank is in no part
  if (color != kNoColor) made(result, communicator, id);
  return result;
}

NcclResult ncclCommDestroy(NcclComm communicator) {
  static constinit Real<NcclResult(NcclComm)> real("ncclCommDestroy");
  communicators.remove(communicator);
  return real(communicator);
}

NcclResult ncclCommAbort(NcclComm communicator) {
  static constinit Real<NcclResult(NcclComm)> real("ncclCommAbort");
  communicators.remove(communicator);
  return real(communicator);
}

NcclResult ncclAllReduce(const void* send, void* receive, std::size_t count, int type, int operation,
                         NcclComm communicator, NcclStream stream) {
  static constinit Real<NcclResult(const void*, void*, std::size_t, int, int, NcclComm, NcclStream)> real(
      "ncclAllReduce");
  const Call call("AllReduce", communicator, count, type);
  return real(send, receive, count, type, operation, communicator, stream);
}

NcclResult ncclReduceScatter(const void* send, void* receive, std::size_t count, int type, int operation,
                             NcclComm communicator, NcclStream stream) {
  static constinit Real<NcclResult(const void*, void*, std::size_t, int, int, NcclComm, NcclStream)> real(
      "ncclReduceScatter");
  const Call call("ReduceScatter", communicator, count, type);
  return real(send, receive, count, type, operation, communicator, stream);
}

NcclResult ncclAllGather(const void* send, void* receive, std::size_t count, int type, NcclComm communicator,
                         NcclStream stream) {
  static constinit Real<NcclResult(const void*, void*, std::size_t, int, NcclComm, NcclStream)> real("ncclAllGather");
  const Call call("AllGather", communicator, count, type);
  return real(send, receive, count, type, communicator, stream);
}

NcclResult ncclAlltoAll(const void* send, void* receive, std::size_t count, int type, NcclComm communicator,
                        NcclStream stream) {
  static constinit Real<NcclResult(const void*, void*, std::size_t, int, NcclComm, NcclStream)> real("ncclAlltoAll");
  const Call call("AlltoAll", communicator, count, type);
  return real(send, receive, count, type, communicator, stream);
}

NcclResult ncclBroadcast(const void* send, void* receive, std::size_t count, int type, int root, NcclComm communicator,
                         NcclStream stream) {
  static constinit Real<NcclResult(const void*, void*, std::size_t, int, int, NcclComm, NcclStream)> real(
      "ncclBroadcast");
  const Call call("Broadcast", communicator, count, type);
  return real(send, receive, count, type, root, communicator, stream);
}

NcclResult ncclBcast(void* buffer, std::size_t count, int type, int root, NcclComm communicator, NcclStream stream) {
  static constinit Real<NcclResult(void*, std::size_t, int, int, NcclComm, NcclStream)> real("ncclBcast");
  const Call call("Broadcast", communicator, count, type);
  return real(buffer, count, type, root, communicator, stream);
}

NcclResult ncclReduce(const void* send, void* receive, std::size_t count, int type, int operation, int root,
                      NcclComm communicator, NcclStream stream) {
  static constinit Real<NcclResult(const void*, void*, std::size_t, int, int, int, NcclComm, NcclStream)> real(
      "ncclReduce");
  const Call call("Reduce", communicator, count, type);
  return real(send, receive, count, type, operation, root, communicator, stream);
}

NcclResult ncclSend(const void* buffer, std::size_t count, int type, int peer, NcclComm communicator,
                    NcclStream stream) {
  static constinit Real<NcclResult(const void*, std::size_t, int, int, NcclComm, NcclStream)> real("ncclSend");
  const Call call("Send", communicator, count, type, peer);
  return real(buffer, count, type, peer, communicator, stream);
}

NcclResult ncclRecv(void* buffer, std::size_t count, int type, int peer, NcclComm communicator, NcclStream stream) {
  static constinit Real<NcclResult(void*, std::size_t, int, int, NcclComm, NcclStream)> real("ncclRecv");
  const Call call("Recv", communicator, count, type, peer);
  return real(buffer, count, type, peer, communicator, stream);
}

}  // extern "C"
#pragma GCC visibility pop
// NOLINTEND(readability-identifier-naming)
