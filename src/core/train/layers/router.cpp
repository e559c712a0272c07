#include "core/train/layers/router.hpp"

#include <utility>

#include "core/device/operations/add.hpp"
#include "core/device/operations/copy.hpp"
#include "core/device/operations/routing.hpp"
#include "core/device/operations/softmax.hpp"

namespace dstune::layers {

TopKRouter::TopKRouter(const ModelNames& names, const std::string& name,
                       const RouterSettings& settings)
    : settings_(settings),
      linear_(names, name, settings.inputs, settings.experts, WeightOrder::out_in, false) {}

Buffer TopKRouter::normalised(const Workspace& work, Buffer weights) {
  if (!settings_.normalised) return weights;
  before_ = std::move(weights);
  sums_ = work.activation_fp32(1);
  Buffer result = work.activation_fp32(settings_.chosen);
  work.device->run(DivideBySum{.in = of_chosen(work, before_),
                               .sums = sums_.tensor(DType::fp32),
                               .out = of_chosen(work, result)});
  return result;
}

Buffer TopKRouter::forward(const Workspace& work, ModuleHooks& hooks, const Buffer& x,
                           std::uint64_t seed) {
  logits_ = linear_.forward(work, hooks, x);
  probs_ = work.activation_fp32(settings_.experts);
  const Matrix probs = work.matrix_fp32(probs_, settings_.experts);
  work.device->run(Softmax{work.matrix(logits_, settings_.experts), probs});
  if (!settings_.keeps_logits) logits_.reset();
  Buffer weights = work.activation_fp32(settings_.chosen);
  chosen_ = make_buffer(*work.device, MemoryCategory::activations, work.rows() * settings_.chosen,
                        DType::int64);
  TopK choice{.scores = probs, .values = of_chosen(work, weights), .columns = chosen()};
  if (settings_.imbalance) choice.draw = ExpertDraw{seed, *settings_.imbalance};
  work.device->run(choice);
  weights = normalised(work, std::move(weights));
  if (weight_type(work) == DType::fp32) return weights;
  Buffer rounded = work.activation(settings_.chosen);
  work.device->run(Cast{weights.tensor(DType::fp32), rounded.tensor(work.dtype)});
  return rounded;
}

Buffer TopKRouter::normalised_back(const Workspace& work, Buffer d_weights) {
  if (!settings_.normalised) return d_weights;
  Buffer d_before = work.activation_fp32(settings_.chosen);
  work.device->run(DivideBySumBackward{.d_out = of_chosen(work, d_weights),
                                       .in = of_chosen(work, before_),
                                       .sums = sums_.tensor(DType::fp32),
                                       .d_in = of_chosen(work, d_before)});
  for (Buffer* used : {&before_, &sums_}) used->reset();
  return d_before;
}

Buffer TopKRouter::backward(const Workspace& work, ModuleHooks& hooks, Buffer d_weights,
                            Buffer d_others, const Buffer& x) {
  if (weight_type(work) != DType::fp32) {
    Buffer wide = work.activation_fp32(settings_.chosen);
    work.device->run(Cast{d_weights.tensor(work.dtype), wide.tensor(DType::fp32)});
    d_weights = std::move(wide);
  }
  d_weights = normalised_back(work, std::move(d_weights));
  Buffer d_probs = work.activation_fp32(settings_.experts);
  work.device->run(TopKBackward{.d_values = of_chosen(work, d_weights),
                                .columns = chosen(),
                                .d_scores = work.matrix_fp32(d_probs, settings_.experts)});
  for (Buffer* used : {&chosen_, &d_weights}) used->reset();
  Buffer d_logits = work.activation(settings_.experts);
  work.device->run(SoftmaxBackward{.d_probs = work.matrix_fp32(d_probs, settings_.experts),
                                   .probs = work.matrix_fp32(probs_, settings_.experts),
                                   .d_scores = work.matrix(d_logits, settings_.experts)});
  for (Buffer* used : {&probs_, &d_probs, &logits_}) used->reset();
  if (d_others) work.device->run(Add{d_logits.tensor(work.dtype), d_others.tensor(work.dtype)});
  return linear_.backward(work, hooks, d_logits, x);
}

}  // namespace dstune::layers
