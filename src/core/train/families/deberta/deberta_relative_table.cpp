#include "core/train/families/deberta/deberta_relative_table.hpp"

#include <array>
#include <utility>

#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/norms.hpp"
#include "core/device/operations/relative_positions.hpp"

namespace dstune::deberta {

RelativeTable::RelativeTable(const ModelSpec& spec, const DebertaSettings& settings,
                             const ModelNames& names, const std::string& encoder)
    : buckets_(settings.position_buckets),
      most_distance_(settings.most_distance),
      weight_(names.tensor(encoder + ".rel_embeddings.weight")),
      rows_(names.shape(weight_).at(0)),
      columns_(names.shape(weight_).at(1)) {
  if (!settings.norm_rel_ebd) return;
  norm_ = Norm{names.module(encoder + ".LayerNorm"), names.tensor(encoder + ".LayerNorm.weight"),
               names.tensor(encoder + ".LayerNorm.bias"), spec.layer_norm_epsilon};
}

Value RelativeTable::distances(Tape& on) const {
  const std::int64_t length = on.context().sequence_length;
  Value out = new_value(on.device(), DType::int64, length, length);
  on.run(FillDistances{
      .sequence = length, .buckets = buckets_, .most = most_distance_, .out = out.tensor()});
  return out;
}

Value RelativeTable::for_layer(Tape& on, const Value& table) const {
  return is_leaf_of_layers(on) ? leaf(on, table) : table;
}

// Autograd has the gradient by a parameter as soon as the last layer has given its part. A
// reentrant checkpoint has a tape of its own, which cannot know that.
bool RelativeTable::is_leaf_of_layers(const Tape& on) const {
  const ActivationCheckpointing& how = on.context().checkpointing;
  return !norm_ && !(how.is_on() && how.reentrant);
}

// A norm gets the parameter by place, so that DeepSpeed's hook runs behind the norm's backward.
Value RelativeTable::for_encoder(Tape& on) const {
  if (norm_) {
    Value input;
    if (on.records(on.hooks().is_trainable(weight_)))
      input = on.record({}, [](Tape&, const Value&) {});
    return run_module(on, norm_->module, input, [&](const Value& in) { return normed(on, in); });
  }
  const Tensor weight = on.hooks().parameter(weight_);
  const Value copy = new_value(on.device(), weight.dtype, rows_, columns_);
  on.run(Copy{weight, copy.tensor()});
  return is_leaf_of_layers(on) ? copy : leaf(on, copy);
}

/// `table` as a node whose gradient becomes the parameter's.
Value RelativeTable::leaf(Tape& on, const Value& table) const {
  if (!on.records(on.hooks().is_trainable(weight_))) return table;
  return on.record(table, {weight_}, [weight = weight_](Tape& back, const Value& d) {
    Buffer gradient = back.context().gradient(d.numel());
    back.run(Copy{d.tensor(), gradient.tensor(d.matrix.dtype)});
    back.give(weight, std::move(gradient), Memory::own);
  });
}

// The same as nn::LayerNorm, but its input, which it saves, is a parameter.
Value RelativeTable::normed(Tape& on, const Value& input) const {
  const auto saved_in = [rows = rows_](const Value& stats) {
    return LayerNormSaved{stats.tensor().slice(0, rows), stats.tensor().slice(rows, rows)};
  };
  Value out = new_value(on.device(), on.context().dtype, rows_, columns_);
  const Value stats = new_value(on.device(), DType::fp32, rows_, 2);
  on.run(LayerNorm{.x = matrix(on.hooks().parameter(weight_)),
                   .gamma = on.hooks().parameter(norm_->weight),
                   .beta = on.hooks().parameter(norm_->bias),
                   .epsilon = norm_->epsilon,
                   .saved = saved_in(stats),
                   .out = out.matrix});
  const std::array tensors{weight_, norm_->weight, norm_->bias};
  NodeParameters trained;
  for (const std::size_t tensor : tensors) {
    if (on.hooks().is_trainable(tensor)) trained.add(tensor);
  }
  if (!on.records(trained.begin() != trained.end())) return out;
  return on.record(std::move(out), trained,
                   [this, saved_in, tensors, node = input.node, saved = on.save(stats)](
                       Tape& back, const Value& d) mutable {
                     const Value kept = saved.take(back);
                     std::array gradients{back.context().gradient(d.numel()),
                                          back.context().gradient(columns_),
                                          back.context().gradient(columns_)};
                     back.run(LayerNormBackward{.d_out = d.matrix,
                                                .x = matrix(back.hooks().parameter(weight_)),
                                                .gamma = back.hooks().parameter(norm_->weight),
                                                .saved = saved_in(kept),
                                                .d_x = matrix(gradients[0].tensor(d.matrix.dtype)),
                                                .d_gamma = gradients[1].tensor(d.matrix.dtype),
                                                .d_beta = gradients[2].tensor(d.matrix.dtype)});
                     back.give(node, {});
                     for (std::size_t i = 0; i < tensors.size(); ++i) {
                       if (!back.hooks().is_trainable(tensors[i])) continue;
                       back.give(tensors[i], std::move(gradients[i]), Memory::own);
                     }
                   });
}

}  // namespace dstune::deberta
