// In which order the hooks of one micro-step fire.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/model/model_parameters.hpp"

namespace dstune::oracle {

struct HookEvent {
  enum class Kind {
    fetch,      ///< before a module's forward or backward
    release,    ///< after it
    gradient,   ///< of a tensor is ready
    attention,  ///< the kernel between c_attn and c_proj runs
  };

  Kind kind = Kind::fetch;
  std::size_t index = 0;  ///< of the module or tensor
  bool operator==(const HookEvent&) const = default;
};

/// What Gpt2 tells its engine, and where attention runs. Backward is forward's reverse but for
/// three things: the head comes before the transformer is entered; wpe's gradient comes before
/// wte's; and the root, the transformer and the embeddings, into which no gradient flows, are never
/// released (docs/decisions/stage-3-hooks.md).
struct HookTrace {
  std::vector<HookEvent> forward;
  std::vector<HookEvent> backward;
};

/// Of a GPT-2: it has 12 L + 4 tensors.
std::int64_t num_layers_of(const ModelParameters& parameters);

/// @param num_layers  of the GPT-2
HookTrace make_hook_trace(std::int64_t num_layers);

}  // namespace dstune::oracle
