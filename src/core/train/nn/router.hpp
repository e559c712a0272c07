// The router of a mixture of experts on a tape, and the loss that keeps experts evenly used.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/model_parameters.hpp"
#include "core/train/nn/linear.hpp"
#include "core/train/tape/modules.hpp"

namespace dstune::nn {

struct RouterSettings {
  std::int64_t chosen = 0;       ///< k
  bool normalised = false;       ///< whether weights are divided by their sum
  bool weights_in_fp32 = false;  ///< whether they stay fp32, else they are of the model's dtype
  std::optional<double> imbalance = std::nullopt;  ///< tokens go to experts by lot: see ExpertDraw
};

/// The result of a router.
struct Routes {
  Value logits;   ///< (M, E)
  Value weights;  ///< the weights of the chosen experts (M, k)
  Value experts;  ///< int64 (M, k)
};

/// MixtralTopKRouter, and the same of its kin: softmax in fp32, the k largest, and their weights.
class Router {
 public:
  Router(const ModelNames& names, const std::string& name, const RouterSettings& settings);

  /// @param x     (M, h)
  /// @param seed  of experts that are drawn by lot
  Routes operator()(Tape& on, const Value& x, std::uint64_t seed) const;

 private:
  RouterSettings settings_;
  Linear linear_;
};

/// load_balancing_loss_func of transformers, which keeps experts evenly used: its result times
/// `weight` is added to `loss`.
/// @param factor  of the loss in backward
/// @returns a number whose gradient is `factor`
Value balance_loss(Tape& on, const std::vector<Routes>& routes, double weight, Tensor loss,
                   const double& factor);

}  // namespace dstune::nn
