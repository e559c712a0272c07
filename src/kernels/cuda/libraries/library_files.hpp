// Where the files of NVIDIA's libraries may be: systems, toolkits and Python wheels.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace dstune::cuda {

/// The value of a variable of the environment; "" if it is not set.
using Environment = std::function<std::string(const std::string&)>;

std::string read_environment(const std::string& variable);

/// "DSTUNE_NCCL_LIB" of "nccl"
std::string library_variable(const std::string& stem);

/// What to open for the library `stem` ("nccl") of major version `version`, the best first: the
/// file that DSTUNE_NCCL_LIB names and nothing else; or the bare name libnccl.so.2, which the
/// dynamic linker looks up, then the files that exist of: the toolkit's folders ($CUDA_HOME,
/// $CUDA_PATH, /usr/local/cuda) and the folders nvidia/*/lib of Python's packages (of
/// $VIRTUAL_ENV, $CONDA_PREFIX, $PYTHONPATH, the python3 on $PATH, and of the user's own).
std::vector<std::string> library_files(const std::string& stem, int version,
                                       const Environment& environment);

}  // namespace dstune::cuda
