// Operations of layers by their names, with operands.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/bench_operations.hpp"
#include "core/device/device.hpp"
#include "core/device/dtype.hpp"

namespace dstune::bench {

struct LayerRequest {
  std::string name;
  DType dtype = DType::bf16;
  std::vector<double> sizes;  ///< what they mean is the operation's own
};

/// Each queues its kernels. Backward's results may be wrong from its second time on, where it works
/// in the memory of what was saved: its time is the same.
struct LayerPasses {
  std::function<void()> forward;
  std::function<void()> backward;  ///< empty: there is none
};

/// | name | sizes |
/// |---|---|
/// | rotate | tokens of one sequence, heads, head_size |
/// | rms_norm, layer_norm, softmax | rows, columns |
/// | glu (silu) | rows, columns of a half |
/// | gelu_new, gelu, dropout (0.1) | elements |
/// | attention | batch, sequence, heads, kv_heads, head_size, dropout; causal |
/// | bias | rows, columns: the gradient of a bias |
/// | add, multiply | elements |
/// @throws std::invalid_argument  if it is none of these, or has other sizes
LayerPasses make_layer(Device& device, Arena& arena, const LayerRequest& request);

}  // namespace dstune::bench
