// cuDNN, opened at its first use: cudnn().BackendExecute(...) is cudnnBackendExecute(...).
//
// Only sources of a build with cuDNN include this. NVIDIA's frontend finds the functions itself:
// compiled with NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING, it takes cudnn_library().handle.
#pragma once

#include <cudnn.h>

#include "kernels/cuda/libraries/library.hpp"

/// The functions that are used, without their "cudnn".
#define DSTUNE_CUDNN_FUNCTIONS(ENTRY) \
  ENTRY(GetVersion)                   \
  ENTRY(GetErrorString)               \
  ENTRY(GetLastErrorString)           \
  ENTRY(Create)                       \
  ENTRY(Destroy)                      \
  ENTRY(SetStream)                    \
  ENTRY(BackendCreateDescriptor)      \
  ENTRY(BackendSetAttribute)          \
  ENTRY(BackendGetAttribute)          \
  ENTRY(BackendFinalize)              \
  ENTRY(BackendDestroyDescriptor)     \
  ENTRY(BackendExecute)

namespace dstune::cuda {

struct Cudnn {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a member cannot have them
#define DSTUNE_CUDNN_MEMBER(function) decltype(&::cudnn##function) function = nullptr;
  DSTUNE_CUDNN_FUNCTIONS(DSTUNE_CUDNN_MEMBER)
#undef DSTUNE_CUDNN_MEMBER
};

/// Any thread may call it. @throws Error  cudnn_library().problem
const Cudnn& cudnn();

const Library& cudnn_library();

}  // namespace dstune::cuda
