#include "core/train/nn/cross_entropy.hpp"

#include <utility>

#include "core/device/operations/losses.hpp"
#include "core/device/operations/softmax.hpp"

namespace dstune::nn {
namespace {

Value log_softmax(Tape& on, const Value& x) {
  Value out = new_like(on.device(), x);
  on.device().run(LogSoftmax{x.rows(), out.rows()});
  if (!on.records(x.needs_gradient())) return out;
  Saved saved = on.save(out);
  return on.record(std::move(out),
                   [node = x.node, saved = std::move(saved)](Tape& back, const Value& d) mutable {
                     const Value kept = saved.take(back);
                     Value d_x = new_like(back.device(), d);
                     back.device().run(LogSoftmaxBackward{d.rows(), kept.rows(), d_x.rows()});
                     back.give(node, std::move(d_x));
                   });
}

}  // namespace

Value cross_entropy(Tape& on, const Value& logits, const Value& labels, const double& factor,
                    Tensor loss) {
  const Value log_probs = log_softmax(on, logits);
  on.device().run(NllLoss{.log_probs = log_probs.rows(), .labels = labels.tensor(), .sum = loss});
  if (!on.records(log_probs.needs_gradient())) return {};
  return on.record({}, [&factor, node = log_probs.node, saved = on.save(log_probs),
                        saved_labels = on.save(labels)](Tape& back, const Value&) mutable {
    const Value kept = saved.take(back);
    const Value kept_labels = saved_labels.take(back);
    Value d_log_probs = new_like(back.device(), kept);
    back.device().run(NllLossBackward{
        .labels = kept_labels.tensor(), .loss_scale = factor, .out = d_log_probs.rows()});
    back.give(node, std::move(d_log_probs));
  });
}

}  // namespace dstune::nn
