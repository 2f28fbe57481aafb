#include "tests/capture/fake_nccl.h"

struct FakeCommunicator {
  int ranks, rank;
};

namespace {
int calls = 0;
}

int ncclCommInitRank(ncclComm_t* communicator, int ranks, ncclUniqueId, int rank) {
  *communicator = new FakeCommunicator{ranks, rank};
  return 0;
}
int ncclCommSplit(ncclComm_t parent, int, int, ncclComm_t* communicator, void*) {
  *communicator = new FakeCommunicator{parent->ranks / 2, parent->rank % 2};
  return 0;
}
int ncclCommCount(ncclComm_t communicator, int* count) {
  *count = communicator->ranks;
  return 0;
}
int ncclCommUserRank(ncclComm_t communicator, int* rank) {
  *rank = communicator->rank;
  return 0;
}
int ncclCommDestroy(ncclComm_t communicator) {
  delete communicator;
  return 0;
}
int ncclAllReduce(const void*, void*, std::size_t, int, int, ncclComm_t, void*) {
  ++calls;
  return 0;
}
int ncclBroadcast(const void*, void*, std::size_t, int, int, ncclComm_t, void*) {
  ++calls;
  return 0;
}
int ncclBcast(void* buffer, std::size_t count, int type, int root, ncclComm_t communicator, void* stream) {
  return ncclBroadcast(buffer, buffer, count, type, root, communicator, stream);
}
int ncclSend(const void*, std::size_t, int, int, ncclComm_t, void*) {
  ++calls;
  return 5;  // ncclInvalidUsage
}
int fake_nccl_calls() { return calls; }
