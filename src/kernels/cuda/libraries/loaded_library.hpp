// A library that is opened at run time with the table of its functions.
#pragma once

#include <string>

#include "core/base/error.hpp"
#include "kernels/cuda/libraries/library.hpp"
#include "kernels/cuda/libraries/library_files.hpp"

namespace dstune::cuda {

template <class Table>
struct LoadedLibrary {
  Library library;
  Table functions;

  /// @param stem  "nccl" of "libnccl.so.2"
  LoadedLibrary(const std::string& name, const std::string& stem, int version)
      : library(open_library(name, library_variable(stem),
                             library_files(stem, version, read_environment))) {}

  template <class Function>
  void find(const char* symbol, Function*& function) {
    function = reinterpret_cast<Function*>(find_function(library, symbol));
  }

  const Table& usable() const {
    if (!library.problem.empty()) throw Error(library.problem);
    return functions;
  }
};

}  // namespace dstune::cuda
