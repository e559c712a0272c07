#include "kernels/cpu/instructions.hpp"

#include <cstdlib>
#include <string_view>

#include "core/base/text.hpp"
#include "kernels/host/instruction_set.hpp"

namespace dstune::cpu {

std::string lacking(std::span<const InstructionNeed> needs) {
  std::string names;
  for (const InstructionNeed& need : needs) {
    if (!need.is_compiled_in || need.is_here) continue;
    names += concat(names.empty() ? "" : ", ", need.name);
  }
  return names;
}

std::string lacking_instructions() {
#ifdef __x86_64__
  const CompiledInstructions& compiled = kCompiledInstructions;
  const InstructionNeed needs[] = {{"AVX2", compiled.avx2, __builtin_cpu_supports("avx2") != 0},
                                   {"FMA", compiled.fma, __builtin_cpu_supports("fma") != 0}};
  return lacking(needs);
#else
  return "";
#endif
}

bool uses_avx512(const char* capability, bool is_here) {
  const std::string_view limit = capability == nullptr ? "" : capability;
  return is_here && limit != "avx2" && limit != "default";
}

const bool kUsesAvx512 =
    uses_avx512(std::getenv("ATEN_CPU_CAPABILITY"),
                host::widest_instruction_set() == host::InstructionSet::avx512);

}  // namespace dstune::cpu
