#include "tests/support/cuda_on_host/kernel_name.hpp"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>

#include <cxxabi.h>
#include <elf.h>
#include <link.h>

#include "tests/support/cuda_on_host/observation.hpp"

namespace cuda_on_host {
namespace {

using Symbols = std::map<std::uintptr_t, std::string>;

template <class T>
T read_at(const std::string& file, std::size_t offset) {
  T value;
  std::memcpy(&value, file.data() + offset, sizeof value);
  return value;
}

/// Where the program itself was loaded.
std::uintptr_t load_address() {
  std::uintptr_t address = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* result) {
        *static_cast<std::uintptr_t*>(result) = info->dlpi_addr;
        return 1;  // the first is the program
      },
      &address);
  return address;
}

void read_section(const std::string& file, const Elf64_Shdr& table, const Elf64_Shdr& names,
                  Symbols& symbols) {
  const std::uintptr_t base = load_address();
  for (std::size_t offset = 0; offset < table.sh_size; offset += sizeof(Elf64_Sym)) {
    const auto symbol = read_at<Elf64_Sym>(file, table.sh_offset + offset);
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_value == 0) continue;
    symbols.emplace(base + symbol.st_value, file.data() + names.sh_offset + symbol.st_name);
  }
}

Symbols read_symbols() {
  std::ifstream stream("/proc/self/exe", std::ios::binary);
  const std::string file{std::istreambuf_iterator<char>(stream), {}};
  Symbols symbols;
  const auto header = read_at<Elf64_Ehdr>(file, 0);
  const auto section = [&](std::size_t index) {
    return read_at<Elf64_Shdr>(file, header.e_shoff + index * sizeof(Elf64_Shdr));
  };
  for (std::size_t index = 0; index < header.e_shnum; ++index) {
    const Elf64_Shdr table = section(index);
    if (table.sh_type == SHT_SYMTAB) read_section(file, table, section(table.sh_link), symbols);
  }
  return symbols;
}

/// Without the type of the result, which templates have, and without the parameters.
std::string without_signature(std::string name) {
  int depth = 0;
  std::size_t start = 0;
  for (std::size_t at = 0; at < name.size(); ++at) {
    if (name.compare(at, 21, "(anonymous namespace)") == 0) {
      at += 20;
      continue;
    }
    if (name[at] == '<') ++depth;
    if (name[at] == '>') --depth;
    if (name[at] == ' ' && depth == 0) start = at + 1;
    if (name[at] == '(' && depth == 0) return name.substr(start, at - start);
  }
  return name;
}

std::string demangled(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 ? without_signature(name.get()) : symbol;
}

std::string find(const Symbols& symbols, const void* kernel) {
  const auto found = symbols.find(reinterpret_cast<std::uintptr_t>(kernel));
  if (found != symbols.end()) return demangled(found->second);
  std::ostringstream address;
  address << "at " << kernel;
  return address.str();
}

}  // namespace

std::string kernel_name(const void* kernel) {
  static std::mutex mutex;
  static auto& names = *new std::map<const void*, std::string>;
  const Unobserved unobserved;
  const std::lock_guard lock(mutex);
  const auto known = names.find(kernel);
  if (known != names.end()) return known->second;
  static const auto& symbols = *new Symbols(read_symbols());
  return names.emplace(kernel, find(symbols, kernel)).first->second;
}

}  // namespace cuda_on_host
