// cuDNN, opened at run time.
#include "kernels/cuda/libraries/cudnn.hpp"
#include "kernels/cuda/libraries/loaded_library.hpp"

namespace dstune::cuda {

namespace {

const LoadedLibrary<Cudnn>& loaded_cudnn() {
  static const LoadedLibrary<Cudnn> loaded = [] {
    // cuDNN and its frontend open these by their bare names, which finds what is open already: with
    // Python's wheels they lie in folders of their own. Those absent are cuDNN's to complain about.
    for (const char* stem : {"cudart", "nvrtc"})
      open_library(stem, "", library_files(stem, CUDART_VERSION / 1000, read_environment));
    LoadedLibrary<Cudnn> opened("cuDNN", "cudnn", CUDNN_MAJOR);
#define DSTUNE_CUDNN_FIND(name) opened.find("cudnn" #name, opened.functions.name);
    DSTUNE_CUDNN_FUNCTIONS(DSTUNE_CUDNN_FIND)
#undef DSTUNE_CUDNN_FIND
    return opened;
  }();
  return loaded;
}

}  // namespace

const Cudnn& cudnn() { return loaded_cudnn().usable(); }
const Library& cudnn_library() { return loaded_cudnn().library; }

}  // namespace dstune::cuda
