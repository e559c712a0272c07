#include "kernels/cuda/base/compiled_for.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include <cuda_runtime_api.h>

#include "core/base/text.hpp"

namespace dstune::cuda {

namespace {

/// The first capability with tensor cores, which the kernels of attention name.
constexpr Capability kFirst{7, 0};
/// The first that CUDA 13 compiles for.
constexpr Capability kFirstOfCuda13{7, 5};

/// A word of CMAKE_CUDA_ARCHITECTURES: "80-real", "90a", "100f-virtual".
struct Architecture {
  Capability capability;
  char extent = ' ';  ///< 'a': of that GPU alone; 'f': of its family; else of all that follow
  bool has_code = true;
  bool has_ptx = true;
};

std::optional<Architecture> architecture_of(std::string_view word) {
  int number = 0;
  const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || number < 10) return std::nullopt;
  word.remove_prefix(static_cast<std::size_t>(rest - word.data()));
  Architecture found{.capability = {number / 10, number % 10}};
  if (word.starts_with('a') || word.starts_with('f')) {
    found.extent = word.front();
    word.remove_prefix(1);
  }
  found.has_code = word != "-virtual";
  found.has_ptx = word != "-real";
  return word.empty() || word.front() == '-' ? std::optional(found) : std::nullopt;
}

std::string text_of(const Architecture& architecture) {
  const std::string number = text_of(architecture.capability);
  const std::string extent =
      architecture.extent == ' ' ? std::string() : std::string(1, architecture.extent);
  const char* const kind = !architecture.has_code ? " as PTX" : architecture.has_ptx ? "+PTX" : "";
  return concat(number, extent, kind);
}

std::string what_to_build(int cuda, Capability capability) {
  if (capability < kFirst) {
    return concat("nor can it be compiled for less than ", text_of(kFirst),
                  ", the first with tensor cores");
  }
  const std::string architecture =
      concat("CUDAARCHS=", capability.major, capability.minor, " (scripts/build.sh)");
  if (cuda >= 13000 && capability < kFirstOfCuda13) {
    return concat("CUDA 13 has dropped all before ", text_of(kFirstOfCuda13),
                  ": build with a CUDA 12 toolkit (12.2 or newer) and ", architecture);
  }
  return concat("build with ", architecture, " and a CUDA toolkit that knows it");
}

/// Code serves its own major version from its own minor one on, PTX all that is newer.
bool serves(const Architecture& architecture, Capability gpu) {
  const Capability own = architecture.capability;
  if (architecture.extent == 'a') return gpu == own;
  const bool is_of_family = gpu.major == own.major && gpu.minor >= own.minor;
  if (architecture.extent == 'f') return is_of_family;
  return (architecture.has_code && is_of_family) || (architecture.has_ptx && gpu >= own);
}

}  // namespace

std::string text_of(Capability capability) {
  return concat(capability.major, ".", capability.minor);
}

Compilation this_compilation() { return {CUDART_VERSION, DSTUNE_CUDA_ARCHITECTURES}; }

std::string cuda_version_text(int version) {
  return concat(version / 1000, ".", version % 1000 / 10);
}

std::string capabilities_text(std::string_view architectures) {
  std::vector<std::string> words = split(architectures, ' ');
  for (std::string& word : words) {
    if (const auto architecture = architecture_of(word)) word = text_of(*architecture);
  }
  return join(words, ", ");
}

bool have_code_for(std::string_view architectures, Capability gpu) {
  const std::vector<std::string> words = split(architectures, ' ');
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    const auto architecture = architecture_of(word);
    return !architecture || serves(*architecture, gpu);
  });
}

std::string needed_driver_text(int cuda) {
  const int driver = least_driver(cuda);
  return driver == 0 ? "" : concat("needs driver ", driver, " or newer");
}

std::string lack_of_code(const Compilation& compilation, std::string_view gpu,
                         Capability capability, std::string_view error) {
  return concat("this program has no code for ", gpu, ", compute capability ", text_of(capability),
                error.empty() ? "" : concat(" (", error, ")"), ": CUDA ",
                cuda_version_text(compilation.cuda), " compiled it for ",
                capabilities_text(compilation.architectures), "; ",
                what_to_build(compilation.cuda, capability));
}

}  // namespace dstune::cuda
