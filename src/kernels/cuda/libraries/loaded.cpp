// NCCL, cuBLASLt and the driver, opened at run time.
#include "kernels/cuda/libraries/cublas_lt.hpp"
#include "kernels/cuda/libraries/driver.hpp"
#include "kernels/cuda/libraries/loaded_library.hpp"
#include "kernels/cuda/libraries/nccl.hpp"

namespace dstune::cuda {

namespace {

const LoadedLibrary<Nccl>& loaded_nccl() {
  static const LoadedLibrary<Nccl> loaded = [] {
    LoadedLibrary<Nccl> opened("NCCL", "nccl", NCCL_MAJOR);
#define DSTUNE_NCCL_FIND(name) opened.find("nccl" #name, opened.functions.name);
    DSTUNE_NCCL_FUNCTIONS(DSTUNE_NCCL_FIND)
#undef DSTUNE_NCCL_FIND
    return opened;
  }();
  return loaded;
}

const LoadedLibrary<CublasLt>& loaded_cublas_lt() {
  static const LoadedLibrary<CublasLt> loaded = [] {
    LoadedLibrary<CublasLt> opened("cuBLASLt", "cublasLt", CUBLAS_VER_MAJOR);
#define DSTUNE_CUBLAS_LT_FIND(name) opened.find("cublasLt" #name, opened.functions.name);
    DSTUNE_CUBLAS_LT_FUNCTIONS(DSTUNE_CUBLAS_LT_FIND)
#undef DSTUNE_CUBLAS_LT_FIND
    return opened;
  }();
  return loaded;
}

// The run time has opened the same file.
const LoadedLibrary<Driver>& loaded_driver() {
  static const LoadedLibrary<Driver> loaded = [] {
    constexpr int kVersion = 1;  // of libcuda.so.1, whatever CUDA's is
    LoadedLibrary<Driver> opened("the CUDA driver", "cuda", kVersion);
#define DSTUNE_DRIVER_FIND(name) opened.find("cu" #name, opened.functions.name);
    DSTUNE_DRIVER_FUNCTIONS(DSTUNE_DRIVER_FIND)
#undef DSTUNE_DRIVER_FIND
    return opened;
  }();
  return loaded;
}

}  // namespace

const Nccl& nccl() { return loaded_nccl().usable(); }
const Library& nccl_library() { return loaded_nccl().library; }

const CublasLt& cublas_lt() { return loaded_cublas_lt().usable(); }
const Library& cublas_lt_library() { return loaded_cublas_lt().library; }

const Driver& driver() { return loaded_driver().usable(); }
const Library& driver_library() { return loaded_driver().library; }

}  // namespace dstune::cuda
