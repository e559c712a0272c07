#include "kernels/cuda/libraries/library.hpp"

#include <dlfcn.h>
#include <link.h>

#include "core/base/text.hpp"

namespace dstune::cuda {

namespace {

std::string path_of(void* handle) {
  link_map* map = nullptr;
  if (::dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&map)) != 0) return "";
  return map->l_name;
}

}  // namespace

Library open_library(const std::string& name, const std::string& variable,
                     const std::vector<std::string>& files) {
  std::string reason;
  for (const std::string& file : files) {
    if (void* handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      return {.path = path_of(handle), .problem = "", .handle = handle};
    }
    // The last file exists where any does: what is wrong with it says more than "no such file".
    if (const char* error = ::dlerror()) reason = error;
  }
  return {.path = "",
          .problem = concat(name, " is not usable: ", reason, "; ", variable, " may name its file"),
          .handle = nullptr};
}

void* find_function(Library& library, const char* symbol) {
  if (library.handle == nullptr) return nullptr;
  void* function = ::dlsym(library.handle, symbol);
  if (function == nullptr && library.problem.empty()) {
    library.problem = concat(library.path, " is too old: it has no ", symbol);
  }
  return function;
}

std::string library_line(const std::string& name, const Library& library,
                         const std::function<std::size_t()>& version) {
  if (!library.problem.empty()) return library.problem;
  const std::string place = library.path.empty() ? "" : concat(" (", library.path, ")");
  return concat(name, ": ", version_text(version()), place);
}

}  // namespace dstune::cuda
