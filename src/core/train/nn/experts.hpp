// The experts of a mixture on a tape.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/device/operations/activations.hpp"
#include "core/model/model_parameters.hpp"
#include "core/train/nn/router.hpp"
#include "core/train/tape/modules.hpp"

namespace dstune::nn {

/// MixtralExperts, and the same of its kin, by grouped products (transformers'
/// grouped_mm_experts_forward): gate_up_proj (E, 2 f, h) and down_proj (E, h, f).
class Experts {
 public:
  /// @param activation  the name of one that is one kernel
  Experts(const ModelNames& names, const std::string& name, std::string_view activation);

  /// @param x  (M, h)
  /// @returns (M, h)
  Value operator()(Tape& on, const Value& x, const Routes& routes) const;

 private:
  std::int64_t count_;  // E
  std::size_t module_;
  std::size_t gate_up_proj_;  // tensor
  std::size_t down_proj_;     // tensor
  std::size_t act_fn_;        // module
  std::int64_t inner_;        // f
  Activation activation_;
};

/// Each row i of x multiplied by factors(i).
/// @param factors  (S, 1)
Value scale_rows(Tape& on, const Value& x, const Value& factors);

}  // namespace dstune::nn
