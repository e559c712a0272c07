#include "core/train/dry_run_memory.hpp"

#include <algorithm>
#include <tuple>

namespace dstune {
namespace {

auto without_seed(const AttentionShape& shape) {
  return std::tie(shape.batch, shape.sequence, shape.heads, shape.kv_heads, shape.head_size,
                  shape.causal, shape.window, shape.scale, shape.softcap, shape.dropout);
}

}  // namespace

std::shared_ptr<const ModelParameters> DryRunMemory::parameters_of(const ModelSpec& spec) {
  const std::lock_guard lock(mutex_);
  return model_.parameters_of(spec);
}

std::int64_t DryRunMemory::attention_workspace(const AttentionShape& shape,
                                               const std::function<std::int64_t()>& ask) {
  const std::lock_guard lock(mutex_);
  const auto known = std::ranges::find_if(
      workspaces_, [&](const auto& one) { return without_seed(one.first) == without_seed(shape); });
  if (known != workspaces_.end()) return known->second;
  workspaces_.emplace_back(shape, ask());
  return workspaces_.back().second;
}

}  // namespace dstune
