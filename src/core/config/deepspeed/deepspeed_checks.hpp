// What ties several keys of a DeepSpeed configuration together.
#pragma once

#include <string_view>
#include <vector>

#include "core/base/json.hpp"
#include "core/input/problems.hpp"

namespace dstune {

/// Faults that no single key shows: fp16 with bf16, NVMe without a path, betas, ...
/// `deepspeed` has been through its key rules.
void check_relations(const json::object& deepspeed, Problems& problems);

/// Warns of offloading that DeepSpeed ignores in some of `stages`, dies of, or trains wrongly with.
void warn_of_offload(const json::object& deepspeed, const std::vector<int>& stages,
                     Problems& problems);

/// `zero` with the deprecated cpu_offload keys written as offload_optimizer and offload_param, as
/// DeepSpeed does.
json::object without_deprecated_offload(const json::object& zero);

/// `object` without `keys`, in its order.
json::object without_keys(const json::object& object, const std::vector<std::string_view>& keys);

}  // namespace dstune
