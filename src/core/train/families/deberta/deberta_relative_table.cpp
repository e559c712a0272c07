#include "core/train/families/deberta/deberta_relative_table.hpp"

#include <utility>

#include "core/base/text.hpp"
#include "core/device/operations/add.hpp"
#include "core/device/operations/copy.hpp"
#include "core/device/operations/relative_positions.hpp"
#include "core/train/families/deberta/deberta_names.hpp"

namespace dstune::deberta {

using layers::Workspace;

RelativeTable::RelativeTable(const ModelSpec& spec, const DebertaSettings& settings,
                             const ModelNames& names)
    : layers_(spec.num_layers),
      size_(spec.hidden_size),
      span_(settings.span()),
      buckets_(settings.position_buckets),
      most_distance_(settings.most_distance),
      drops_out_(spec.residual_dropout > 0),
      weight_(names.tensor(concat(kEncoder, ".rel_embeddings.weight"))) {
  if (!settings.norm_rel_ebd) return;
  norm_.emplace(names, concat(kEncoder, ".LayerNorm"), spec.hidden_size, spec.layer_norm_epsilon);
}

Workspace RelativeTable::workspace(Workspace work) const {
  work.micro_batch = 1;
  work.sequence_length = rows();
  return work;
}

Matrix RelativeTable::matrix(const Workspace& work, const Buffer& buffer) const {
  return as_matrix(buffer.tensor(work.dtype), rows(), size_);
}

LayerNormSaved RelativeTable::saved() const {
  const Tensor both = stats_.tensor(DType::fp32);
  return {both.slice(0, rows()), both.slice(rows(), rows())};
}

void RelativeTable::forward(const Workspace& work, ModuleHooks& hooks) {
  layers_left_ = layers_;
  const std::int64_t length = work.sequence_length;
  distances_ =
      make_buffer(*work.device, MemoryCategory::activations, length * length, DType::int64);
  work.device->run(FillDistances{
      .sequence = length, .buckets = buckets_, .most = most_distance_, .out = distances()});
  values_ = make_buffer(*work.device, MemoryCategory::activations, rows() * size_, work.dtype);
  const Tensor table = hooks.parameter(weight_);
  if (norm_) return norm_forward(work, hooks, table);
  work.device->run(Copy{table, values_.tensor(work.dtype)});
}

void RelativeTable::norm_forward(const Workspace& work, ModuleHooks& hooks, Tensor table) {
  hooks.fetch(norm_->module);
  stats_ = make_buffer(*work.device, MemoryCategory::activations, 2 * rows(), DType::fp32);
  work.device->run(LayerNorm{.x = as_matrix(table, rows(), size_),
                             .gamma = hooks.parameter(*norm_->weight),
                             .beta = hooks.parameter(*norm_->bias),
                             .epsilon = norm_->epsilon,
                             .saved = saved(),
                             .out = matrix(work, values_)});
  hooks.release(norm_->module);
}

// Where the table drops out, layers save what is left of it.
void RelativeTable::end_forward() {
  distances_.reset();
  if (drops_out_) values_.reset();
}

void RelativeTable::add_gradient(const Workspace& work, ModuleHooks& hooks, Buffer d_values) {
  if (d_values_) {
    work.device->run(Add{d_values_.tensor(work.dtype), d_values.tensor(work.dtype)});
  } else {
    d_values_ = std::move(d_values);
  }
  if (--layers_left_ > 0) return;
  values_.reset();
  distances_.reset();
  if (norm_) return;
  Buffer gradient = work.gradient(rows() * size_);
  work.device->run(Copy{d_values_.tensor(work.dtype), gradient.tensor(work.dtype)});
  d_values_.reset();
  hooks.gradient_ready(weight_, std::move(gradient));
}

void RelativeTable::backward(const Workspace& work, ModuleHooks& hooks) {
  if (!norm_) return;
  hooks.fetch(norm_->module);
  Buffer d_table = work.gradient(rows() * size_);
  Buffer d_gamma = work.gradient(size_);
  Buffer d_beta = work.gradient(size_);
  work.device->run(LayerNormBackward{.d_out = matrix(work, d_values_),
                                     .x = as_matrix(hooks.parameter(weight_), rows(), size_),
                                     .gamma = hooks.parameter(*norm_->weight),
                                     .saved = saved(),
                                     .d_x = matrix(work, d_table),
                                     .d_gamma = d_gamma.tensor(work.dtype),
                                     .d_beta = d_beta.tensor(work.dtype)});
  d_values_.reset();
  stats_.reset();
  hooks.gradient_ready(weight_, std::move(d_table));
  hooks.gradient_ready(*norm_->weight, std::move(d_gamma));
  hooks.gradient_ready(*norm_->bias, std::move(d_beta));
  hooks.release(norm_->module);
}

}  // namespace dstune::deberta
