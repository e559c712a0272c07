// Which vector instructions the passes use: chosen when they run, since a program is often built on
// another machine than it runs on.
#pragma once

#include <string_view>
#include <vector>

namespace dstune::host {

/// DeepSpeed's choice of instructions for x86. The lesser ones are what the compiler takes for any
/// processor of this kind.
enum class InstructionSet { plain, avx2, avx512 };

std::string_view name_of(InstructionSet set);

/// Those of this machine's processor, from the least to the widest; never empty.
std::vector<InstructionSet> instruction_sets();

/// The last of instruction_sets().
InstructionSet widest_instruction_set();

}  // namespace dstune::host
