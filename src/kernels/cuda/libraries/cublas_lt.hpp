// cuBLASLt, opened at its first use: cublas_lt().Matmul(...) is cublasLtMatmul(...).
#pragma once

#include <cublasLt.h>

#include "kernels/cuda/libraries/library.hpp"

/// The functions that are used, without their "cublasLt".
#define DSTUNE_CUBLAS_LT_FUNCTIONS(ENTRY) \
  ENTRY(GetVersion)                       \
  ENTRY(GetStatusName)                    \
  ENTRY(GetStatusString)                  \
  ENTRY(Create)                           \
  ENTRY(Destroy)                          \
  ENTRY(MatmulDescCreate)                 \
  ENTRY(MatmulDescSetAttribute)           \
  ENTRY(MatmulDescDestroy)                \
  ENTRY(MatrixLayoutCreate)               \
  ENTRY(MatrixLayoutSetAttribute)         \
  ENTRY(MatrixLayoutDestroy)              \
  ENTRY(MatmulPreferenceCreate)           \
  ENTRY(MatmulPreferenceSetAttribute)     \
  ENTRY(MatmulPreferenceDestroy)          \
  ENTRY(MatmulAlgoGetHeuristic)           \
  ENTRY(Matmul)

namespace dstune::cuda {

struct CublasLt {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a member cannot have them
#define DSTUNE_CUBLAS_LT_MEMBER(function) decltype(&::cublasLt##function) function = nullptr;
  DSTUNE_CUBLAS_LT_FUNCTIONS(DSTUNE_CUBLAS_LT_MEMBER)
#undef DSTUNE_CUBLAS_LT_MEMBER
};

/// Any thread may call it. @throws Error  cublas_lt_library().problem
const CublasLt& cublas_lt();

const Library& cublas_lt_library();

}  // namespace dstune::cuda
