// NVIDIA's libraries are opened when they are first used, so that one program starts everywhere.
//
// Each library is a struct of function pointers, made from the list of functions in its header
// (nccl.hpp, cublas_lt.hpp, cudnn.hpp); a function is called by its name without the library's:
//
//     check(nccl().AllReduce(send, receive, count, type, op, communicator, stream));
//
// A new function is one more name in the list. Where the functions are found is the choice of one
// source: loaded.cpp and loaded_cudnn.cpp open the libraries, a test double's source names its own.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "core/base/text.hpp"

namespace dstune::cuda {

/// A library that was opened, or why it was not.
struct Library {
  std::string path;     ///< of the file, as the dynamic linker names it; "" if there is none
  std::string problem;  ///< why it cannot be used, one line; "" if it can
  void* handle =
      nullptr;  ///< dlopen's; never closed, since CUDA's libraries keep threads and state
};

/// Opens the first of `files` that the dynamic linker accepts.
/// @param name      as messages name it: "NCCL"
/// @param variable  of the environment, which names a file to be used instead: "DSTUNE_NCCL_LIB"
Library open_library(const std::string& name, const std::string& variable,
                     const std::vector<std::string>& files);

/// The function `symbol` of `library`, null if it is none; then the library's problem says so.
void* find_function(Library& library, const char* symbol);

/// "2.28.9" of 10000 * major + 100 * minor + patch.
inline std::string version_text(std::size_t number) {
  return concat(number / 10000, ".", number % 10000 / 100, ".", number % 100);
}

/// "NCCL: 2.28.9 (/usr/lib/libnccl.so.2)", or why it cannot be used.
/// @param version  asked only if it can, as version_text() takes it
std::string library_line(const std::string& name, const Library& library,
                         const std::function<std::size_t()>& version);

}  // namespace dstune::cuda
