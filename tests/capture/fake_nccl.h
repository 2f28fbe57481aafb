// The part of nccl.h that the tests' NCCL has.
#pragma once

#include <cstddef>

extern "C" {
struct ncclUniqueId {
  char internal[128];
};
using ncclComm_t = struct FakeCommunicator*;
int ncclCommInitRank(ncclComm_t* communicator, int ranks, ncclUniqueId id, int rank);
int ncclCommSplit(ncclComm_t parent, int color, int key, ncclComm_t* communicator, void* config);
int ncclCommCount(ncclComm_t communicator, int* count);
int ncclCommUserRank(ncclComm_t communicator, int* rank);
int ncclCommDestroy(ncclComm_t communicator);
int ncclAllReduce(const void* send, void* receive, std::size_t count, int type, int operation, ncclComm_t communicator,
                  void* stream);
int ncclBroadcast(const void* send, void* receive, std::size_t count, int type, int root, ncclComm_t communicator,
                  void* stream);
int ncclBcast(void* buffer, std::size_t count, int type, int root, ncclComm_t communicator, void* stream);
int ncclSend(const void* buffer, std::size_t count, int type, int peer, ncclComm_t communicator, void* stream);
int fake_nccl_calls();
}
