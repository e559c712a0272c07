// A mixture of experts on a tape: the router and the experts that it chooses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/device/operations/activate.hpp"
#include "core/model/model_parameters.hpp"
#include "core/train/nn/linear.hpp"
#include "core/train/tape/modules.hpp"

namespace dstune::nn {

struct RouterSettings {
  std::int64_t chosen = 0;                         ///< k
  bool normalised = false;                         ///< weights are divided by their sum
  bool weights_in_fp32 = false;                    ///< not in the model's dtype
  std::optional<double> imbalance = std::nullopt;  ///< tokens go to experts by lot: ExpertDraw
};

/// What a router gives.
struct Routes {
  Value logits;   ///< (M, E)
  Value weights;  ///< of the chosen (M, k)
  Value experts;  ///< int64 (M, k)
};

/// MixtralTopKRouter and its likes: softmax in fp32, the k largest, and their weights.
class Router {
 public:
  Router(const ModelNames& names, const std::string& name, const RouterSettings& settings);

  /// @param x     (M, h)
  /// @param seed  of experts by lot
  Routes operator()(Tape& on, const Value& x, std::uint64_t seed) const;

 private:
  RouterSettings settings_;
  Linear linear_;
};

/// MixtralExperts and its likes, by grouped products (transformers' grouped_mm_experts_forward):
/// gate_up_proj (E, 2 f, h) and down_proj (E, h, f).
class Experts {
 public:
  /// @param activation  of those that are one kernel
  Experts(const ModelNames& names, const std::string& name, std::string_view activation);

  /// @param x  (M, h)
  /// @returns likewise
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

/// Row i of x times factors(i).
/// @param factors  (S, 1)
Value scale_rows(Tape& on, const Value& x, const Value& factors);

/// load_balancing_loss_func of transformers: what keeps experts evenly used, times `weight`, is
/// added to `loss`.
/// @param factor  of the loss in backward
/// @returns a number whose gradient is `factor`
Value balance_loss(Tape& on, const std::vector<Routes>& routes, double weight, Tensor loss,
                   const double& factor);

}  // namespace dstune::nn
