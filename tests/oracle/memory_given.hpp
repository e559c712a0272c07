// What the formulas of all stages are made of (memory_model.hpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/experiment/step_config.hpp"
#include "core/model/model_parameters.hpp"
#include "core/train/zero/layout/parameter_groups.hpp"
#include "tests/oracle/gradient_arrival.hpp"
#include "tests/oracle/memory_model.hpp"

namespace dstune::oracle {

using TensorOrder = std::vector<std::size_t>;

inline Bytes times(std::int64_t elements, Bytes each) {
  return static_cast<Bytes>(elements) * each;
}

inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// The experiment and one rank of it.
struct GivenRank {
  const StepConfig& config;
  const ModelParameters& parameters;
  std::int64_t ranks;
  std::int64_t rank;
  std::vector<ParameterGroup> groups;
  std::vector<Arrival> arrivals;
  Bytes e;

  std::int64_t numel(std::size_t tensor) const { return parameters.tensors[tensor].numel(); }
  std::int64_t shard(std::size_t tensor) const { return ceil_div(numel(tensor), ranks); }
  /// Bytes of the copy in which `elements` are communicated, if that has another type than `type`.
  Bytes message(std::int64_t elements, DType type) const {
    const DType message = config.message_dtype();
    return message == type ? 0 : times(elements, size_of(message));
  }
  bool accumulates() const { return config.accumulation_steps > 1; }

  std::size_t group_of(std::size_t tensor) const {
    std::size_t group = 0;
    while (std::find(groups[group].tensors.begin(), groups[group].tensors.end(), tensor) ==
           groups[group].tensors.end()) {
      ++group;
    }
    return group;
  }
  TensorOrder arrival_order() const {
    TensorOrder order;
    for (const Arrival& arrival : arrivals) order.push_back(arrival.tensor);
    return order;
  }
  TensorOrder group_order() const {
    TensorOrder order;
    for (const auto& group : groups) {
      order.insert(order.end(), group.tensors.begin(), group.tensors.end());
    }
    return order;
  }
  /// Per parameter: what the optimizer keeps, and its scratch in an update.
  Bytes state() const { return 4 * static_cast<Bytes>(state_tensors(config.optimizer)); }
  Bytes scratch() const {
    const double decay = groups.empty() ? 0 : groups.front().weight_decay;
    return 4 * static_cast<Bytes>(scratch_tensors(config.optimizer, decay));
  }
  /// State that nobody uses, for every parameter on every rank.
  Bytes unused_state() const {
    const bool exists = leaves_unused_state(config.optimizer, config.stage, config.dtype);
    return exists ? times(parameters.total(), e) : 0;
  }
  /// Of a partition or sub-group of `elements`: gradients in `type` and their fp32 copy, then that
  /// copy and the optimizer's scratch.
  Bytes update(std::int64_t elements, DType type) const {
    const Bytes cast = type == DType::fp32 ? 4 : size_of(type) + 4;
    return times(elements, std::max(cast, 4 + scratch()));
  }
};

/// Temporaries of stage 0's average of tensors (or whole groups) of these sizes: each call's list
/// is flattened if it has several, and cast if it is communicated in another type.
Bytes largest_replicated_average(const GivenRank& given, const std::vector<std::int64_t>& sizes,
                                 DType dtype);

/// Stages 1 and 2; the second: stage 1 as DeepSpeed's BF16 optimizer.
ModelStateMemory predict_partitioned(const GivenRank& given);
ModelStateMemory predict_bf16_optimizer(const GivenRank& given);

}  // namespace dstune::oracle
