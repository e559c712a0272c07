#include "kernels/host/instruction_set.hpp"

namespace dstune::host {

std::string_view name_of(InstructionSet set) {
  switch (set) {
    case InstructionSet::avx512:
      return "AVX-512";
    case InstructionSet::avx2:
      return "AVX2";
    case InstructionSet::plain:
      break;
  }
  return "plain";
}

std::vector<InstructionSet> instruction_sets() {
  std::vector<InstructionSet> sets{InstructionSet::plain};
#ifdef __x86_64__
  // Whoever has AVX2 has F16C, for which clang 14 has no name here.
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return sets;
  sets.push_back(InstructionSet::avx2);
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl")) {
    return sets;
  }
  sets.push_back(InstructionSet::avx512);
#endif
  return sets;
}

InstructionSet widest_instruction_set() {
  static const InstructionSet widest = instruction_sets().back();
  return widest;
}

}  // namespace dstune::host
