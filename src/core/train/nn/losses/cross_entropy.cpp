#include "core/train/nn/losses/cross_entropy.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "core/device/operations/losses.hpp"
#include "core/device/operations/softmax.hpp"

namespace dstune::nn {

Value log_softmax(Tape& on, const Value& x) {
  Value out = new_like(on.device(), x);
  on.run(LogSoftmax{x.rows(), out.rows()});
  if (!on.records(x.needs_gradient())) return out;
  Saved saved = on.save(out);
  return on.record(std::move(out),
                   [node = x.node, saved = std::move(saved)](Tape& back, const Value& d) mutable {
                     const Value kept = saved.take(back);
                     Value d_x = new_like(back.device(), d);
                     back.run(LogSoftmaxBackward{d.rows(), kept.rows(), d_x.rows()});
                     back.give(node, std::move(d_x));
                   });
}

Value nll_loss(Tape& on, const Value& log_probs, const Value& labels, const double& factor,
               Tensor loss, double share) {
  if (loss.numel > 0) {
    on.run(NllLoss{
        .log_probs = log_probs.rows(), .labels = labels.tensor(), .sum = loss, .factor = share});
  }
  if (!on.records(log_probs.needs_gradient())) return {};
  return on.record({}, [&factor, share, node = log_probs.node, saved = on.save(log_probs),
                        saved_labels = on.save(labels)](Tape& back, const Value&) mutable {
    const Value kept = saved.take(back);
    const Value kept_labels = saved_labels.take(back);
    Value d_log_probs = new_like(back.device(), kept);
    back.run(NllLossBackward{
        .labels = kept_labels.tensor(), .loss_scale = factor * share, .out = d_log_probs.rows()});
    back.give(node, std::move(d_log_probs));
  });
}

Value cross_entropy(Tape& on, const Value& logits, const Value& labels, const double& factor,
                    Tensor loss) {
  return nll_loss(on, log_softmax(on, logits), labels, factor, loss);
}

Value sum_of_losses(Tape& on, const std::vector<Value>& losses) {
  const bool needs_gradient = std::any_of(losses.begin(), losses.end(),
                                          [](const Value& loss) { return loss.needs_gradient(); });
  if (!on.records(needs_gradient)) return {};
  std::vector<std::size_t> nodes(losses.size());
  std::transform(losses.begin(), losses.end(), nodes.begin(),
                 [](const Value& loss) { return loss.node; });
  return on.record({}, [nodes = std::move(nodes)](Tape& back, const Value&) {
    for (const std::size_t node : nodes) back.give(node, {});
  });
}

}  // namespace dstune::nn
