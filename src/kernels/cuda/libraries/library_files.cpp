#include "kernels/cuda/libraries/library_files.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "core/base/text.hpp"

namespace dstune::cuda {

namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

/// What `folder` holds, sorted; nothing if it cannot be read.
std::vector<fs::path> entries(const fs::path& folder) {
  std::error_code ignored;
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

/// The folders of packages below a Python's prefix.
std::vector<fs::path> package_folders(const fs::path& prefix) {
  std::vector<fs::path> found;
  for (const char* lib : {"lib", "lib64", "local/lib"}) {
    for (const fs::path& python : entries(prefix / lib)) {
      if (!python.filename().string().starts_with("python3")) continue;
      found.push_back(python / "site-packages");
      found.push_back(python / "dist-packages");
    }
  }
  return found;
}

/// Prefixes of the python3 that a shell would start: a virtual environment's, and the one behind
/// it.
std::vector<fs::path> python_prefixes(const Environment& environment) {
  for (const std::string& folder : split(environment("PATH"), ':')) {
    const fs::path python = fs::path(folder) / "python3";
    if (folder.empty() || !is_file(python)) continue;
    std::error_code ignored;
    return {fs::path(folder).parent_path(),
            fs::canonical(python, ignored).parent_path().parent_path()};
  }
  return {};
}

std::vector<fs::path> wheel_folders(const Environment& environment) {
  std::vector<fs::path> prefixes;
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const auto value = environment(variable); !value.empty()) prefixes.emplace_back(value);
  }
  for (const fs::path& prefix : python_prefixes(environment)) prefixes.push_back(prefix);
  if (const auto home = environment("HOME"); !home.empty()) {
    prefixes.push_back(fs::path(home) / ".local");
  }
  std::vector<fs::path> packages;
  for (const std::string& folder : split(environment("PYTHONPATH"), ':')) {
    if (!folder.empty()) packages.emplace_back(folder);
  }
  for (const fs::path& prefix : prefixes) {
    for (const fs::path& folder : package_folders(prefix)) packages.push_back(folder);
  }
  std::vector<fs::path> found;
  for (const fs::path& folder : packages) {
    for (const fs::path& package : entries(folder / "nvidia")) found.push_back(package / "lib");
  }
  return found;
}

std::vector<fs::path> toolkit_folders(const Environment& environment) {
  std::vector<fs::path> found;
  for (const std::string& toolkit :
       {environment("CUDA_HOME"), environment("CUDA_PATH"), std::string("/usr/local/cuda")}) {
    if (toolkit.empty()) continue;
    found.push_back(fs::path(toolkit) / "lib64");
    found.push_back(fs::path(toolkit) / "lib");
  }
  return found;
}

}  // namespace

std::string read_environment(const std::string& variable) {
  const char* value = std::getenv(variable.c_str());
  return value == nullptr ? "" : value;
}

std::string library_variable(const std::string& stem) {
  std::string name = stem;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::toupper(letter)); });
  return concat("DSTUNE_", name, "_LIB");
}

std::vector<std::string> library_files(const std::string& stem, int version,
                                       const Environment& environment) {
  if (auto named = environment(library_variable(stem)); !named.empty()) return {named};
  const std::string name = concat("lib", stem, ".so.", version);
  std::vector<std::string> files = {name};
  auto folders = toolkit_folders(environment);
  for (const fs::path& folder : wheel_folders(environment)) folders.push_back(folder);
  for (const fs::path& folder : folders) {
    const auto file = (folder / name).string();
    if (is_file(file) && std::find(files.begin(), files.end(), file) == files.end()) {
      files.push_back(file);
    }
  }
  return files;
}

}  // namespace dstune::cuda
