// NCCL, opened at its first use: nccl().AllReduce(...) is ncclAllReduce(...).
#pragma once

#include <nccl.h>

#include "kernels/cuda/libraries/library.hpp"

/// The functions that are used, without their "nccl".
#define DSTUNE_NCCL_FUNCTIONS(ENTRY) \
  ENTRY(GetVersion)                  \
  ENTRY(GetUniqueId)                 \
  ENTRY(CommInitRankConfig)          \
  ENTRY(CommSplit)                   \
  ENTRY(CommFinalize)                \
  ENTRY(CommDestroy)                 \
  ENTRY(CommAbort)                   \
  ENTRY(CommGetAsyncError)           \
  ENTRY(CommCount)                   \
  ENTRY(CommUserRank)                \
  ENTRY(GroupStart)                  \
  ENTRY(GroupEnd)                    \
  ENTRY(AllReduce)                   \
  ENTRY(Reduce)                      \
  ENTRY(ReduceScatter)               \
  ENTRY(AllGather)                   \
  ENTRY(Broadcast)                   \
  ENTRY(Send)                        \
  ENTRY(Recv)                        \
  ENTRY(GetErrorString)              \
  ENTRY(GetLastError)

namespace dstune::cuda {

struct Nccl {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a member cannot have them
#define DSTUNE_NCCL_MEMBER(function) decltype(&::nccl##function) function = nullptr;
  DSTUNE_NCCL_FUNCTIONS(DSTUNE_NCCL_MEMBER)
#undef DSTUNE_NCCL_MEMBER
};

/// Any thread may call it. @throws Error  nccl_library().problem
const Nccl& nccl();

const Library& nccl_library();

}  // namespace dstune::cuda
