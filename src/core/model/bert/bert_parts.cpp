#include "core/model/bert/bert_parts.hpp"

#include "core/model/activation_names.hpp"
#include "core/model/model_parameters.hpp"

namespace dstune::bert {

Parts::Parts(const ModelSpec& spec) : spec_(spec), settings_(settings_of(spec)) {}

std::size_t Parts::module_of_numbers(const std::string& name, const std::string& class_name,
                                     std::size_t parent) {
  const std::size_t index = module(name, class_name, parent);
  builder_.takes_numbers_only(index);
  return index;
}

void Parts::embedding(const std::string& name, std::size_t parent, std::int64_t rows) {
  embedding(name, parent, rows, spec_.hidden_size);
}

void Parts::embedding(const std::string& name, std::size_t parent, std::int64_t rows,
                      std::int64_t columns) {
  builder_.add_embedding(name, parent, rows, columns, spec_.initializer_range);
}

void Parts::linear(const std::string& name, std::size_t parent, std::int64_t in, std::int64_t out) {
  builder_.add_linear(name, "Linear", parent, {out, in}, out, spec_.initializer_range);
}

void Parts::square(const std::string& name, std::size_t parent) {
  linear(name, parent, spec_.hidden_size, spec_.hidden_size);
}

void Parts::norm(const std::string& name, std::size_t parent) {
  norm(name, parent, spec_.hidden_size);
}

void Parts::norm(const std::string& name, std::size_t parent, std::int64_t size) {
  builder_.add_layer_norm(name, parent, size);
}

void Parts::output(const std::string& name, const std::string& class_name, std::size_t parent,
                   std::int64_t in) {
  const std::size_t own = module(name, class_name, parent);
  linear(name + ".dense", own, in, spec_.hidden_size);
  norm(name + ".LayerNorm", own);
  dropout(name + ".dropout", own);
}

void Parts::linear_without_bias(const std::string& name, std::size_t parent, std::int64_t in) {
  add_nn_linear(builder_, name, parent, in, spec_.hidden_size, false, spec_.initializer_range);
}

void Parts::tensor(std::size_t module, std::string_view name, std::vector<std::int64_t> shape) {
  builder_.add_tensor(module, name, std::move(shape), {.stddev = spec_.initializer_range});
}

void Parts::dropout(const std::string& name, std::size_t parent) {
  module(name, "Dropout", parent);
}

void Parts::activation(const std::string& name, std::size_t parent) {
  module(name, std::string(activation_class(settings_.activation)), parent);
}

void Parts::classifier(const std::string& name, std::size_t parent) {
  linear(name, parent, spec_.hidden_size, settings_.num_labels);
}

std::size_t Parts::word_bias(std::size_t module) {
  return builder_.add_tensor(module, "bias", {spec_.vocab_size}, {});
}

void Parts::share_word_embedding(std::size_t module) {
  constexpr std::size_t kWordEmbedding = 0;
  builder_.tie(module, kWordEmbedding);
}

}  // namespace dstune::bert
