// For which GPUs a program was compiled, by which CUDA, and what helps where that was not enough.
#pragma once

#include <string>
#include <string_view>

namespace dstune::cuda {

/// A GPU's compute capability: {9, 0} of an H200.
struct Capability {
  int major = 0;
  int minor = 0;

  auto operator<=>(const Capability&) const = default;
};

/// "9.0"
std::string text_of(Capability capability);

/// What a program was compiled by and for.
struct Compilation {
  int cuda = 0;                    ///< the toolkit's version, as CUDART_VERSION: 13000
  std::string_view architectures;  ///< CMAKE_CUDA_ARCHITECTURES, by spaces: "75-real 80-real 90"
};

/// This program.
Compilation this_compilation();

/// "13.0" of 13000, CUDA's way to write its versions.
std::string cuda_version_text(int version);

/// "7.5, 8.0, 9.0+PTX" of "75-real 80-real 90", as PyTorch writes it: PTX is what a driver compiles
/// for newer GPUs. Words that name no GPU, such as "native", stay as they are.
std::string capabilities_text(std::string_view architectures);

/// Whether a GPU finds code of its own among `architectures`, or PTX. True if that cannot be told.
bool have_code_for(std::string_view architectures, Capability gpu);

/// The first driver on which programs of a toolkit run, by CUDA's compatibility of minor versions;
/// 0 if that is not known.
constexpr int least_driver(int cuda) {
  switch (cuda / 1000) {
    case 12:
      return 525;
    case 13:
      return 580;
    default:
      return 0;
  }
}

/// "needs driver 580 or newer"; "" if it is not known.
std::string needed_driver_text(int cuda);

/// That a GPU has no code in a program, and what to build for it, in one line.
/// @param gpu    its name
/// @param error  as CUDA names it; "" where none was met
std::string lack_of_code(const Compilation& compilation, std::string_view gpu,
                         Capability capability, std::string_view error = "");

}  // namespace dstune::cuda
