#include "traces/capture/inject/session.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>

#include "traces/capture/inject/clock.h"

namespace weft::capture {

namespace {

std::atomic<Writer*> open_session{nullptr};
std::atomic<void (*)()> before_end{nullptr};
std::once_flag opened;

// Of the launchers that set them: torchrun, Open MPI, MPICH and its kin, Slurm.
std::int32_t number_in(std::initializer_list<const char*> variables) {
  for (const char* variable : variables) {
    const char* text = std::getenv(variable);
    if (text == nullptr || *text == 0) continue;
    char* end = nullptr;
    const long value = std::strtol(text, &end, 10);
    if (*end == 0 && value >= 0 && value <= INT_MAX) return static_cast<std::int32_t>(value);
  }
  return -1;
}

// Once. Not deleted: other threads may still be in a callback.
void end_session() {
  Writer* writer = open_session.load();
  if (writer == nullptr) return;
  if (auto* function = before_end.load()) function();
  writer->finish();  // still takes what its source hands over
  open_session = nullptr;
}

// The writer's thread is not in the child, and CUPTI does not work there.
void forget_session() { open_session = nullptr; }

void open() {
  const char* directory = std::getenv(kDirectoryVariable);
  if (directory == nullptr || *directory == 0) return;
  SessionRecord record;
  record.start = now_ns();
  record.process = static_cast<std::uint32_t>(::getpid());
  record.rank = number_in({"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"});
  record.world_size = number_in({"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"});
  ::gethostname(record.host, sizeof(record.host) - 1);

  char path[PATH_MAX];
  std::snprintf(path, sizeof(path), "%s/%s-%u%s", directory, record.host, record.process, kFileSuffix);
  const int descriptor = ::open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) {
    std::fprintf(stderr, "weft capture: cannot write %s: %s; this process is not captured\n", path,
                 std::strerror(errno));
    return;
  }
  auto* writer = new Writer(descriptor);
  writer->put(record);
  open_session = writer;
  std::atexit(end_session);
  pthread_atfork(nullptr, nullptr, forget_session);
}

}  // namespace

Writer* session() {
  std::call_once(opened, [] {
    try {
      open();
    } catch (const std::exception& e) {  // no memory, no thread: the program goes on without
      std::fprintf(stderr, "weft capture: %s; this process is not captured\n", e.what());
    }
  });
  return open_session.load();
}

// Handlers run last come, first served: this one before those of libraries that were opened since the session.
void at_session_end(void (*function)()) {
  before_end = function;
  std::atexit(end_session);
}

void tell_user(const char* message) {
  std::fprintf(stderr, "weft capture: %s\n", message);
  if (Writer* writer = session()) writer->note(message);
}

void tell_user(const char* message, RecordFile& file) {
  std::fprintf(stderr, "weft capture: %s\n", message);
  file.note(message);
}

}  // namespace weft::capture
