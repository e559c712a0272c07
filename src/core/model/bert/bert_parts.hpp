// The modules of which BERT and its kin are built.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/model/bert/bert.hpp"
#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"

namespace dstune::bert {

/// A ModelBuilder that knows the sizes of one model. `parent` is a module's index.
class Parts {
 public:
  /// @param spec  must outlive the parts
  explicit Parts(const ModelSpec& spec);

  std::size_t module(const std::string& name, const std::string& class_name, std::size_t parent) {
    return builder_.add_module(name, class_name, parent);
  }
  /// Adds a module into which only token or position numbers go, or nothing by place.
  std::size_t module_of_numbers(const std::string& name, const std::string& class_name,
                                std::size_t parent);

  /// Adds an embedding of `rows` rows; the first of all is the word embedding.
  void embedding(const std::string& name, std::size_t parent, std::int64_t rows);
  void embedding(const std::string& name, std::size_t parent, std::int64_t rows,
                 std::int64_t columns);
  void linear(const std::string& name, std::size_t parent, std::int64_t in, std::int64_t out);
  /// (h, h)
  void square(const std::string& name, std::size_t parent);
  /// (h, in)
  void linear_without_bias(const std::string& name, std::size_t parent, std::int64_t in);
  void norm(const std::string& name, std::size_t parent);
  void norm(const std::string& name, std::size_t parent, std::int64_t size);
  void dropout(const std::string& name, std::size_t parent);
  /// Adds the activation function that the config names.
  void activation(const std::string& name, std::size_t parent);
  /// Adds BertSelfOutput or BertOutput: dense (h, in), LayerNorm and dropout.
  void output(const std::string& name, const std::string& class_name, std::size_t parent,
              std::int64_t in);
  /// (h, labels)
  void classifier(const std::string& name, std::size_t parent);

  /// Adds a tensor of `module`, of normal numbers as all weights.
  void tensor(std::size_t module, std::string_view name, std::vector<std::int64_t> shape);
  void zeros(std::size_t module, std::string_view name, std::vector<std::int64_t> shape) {
    builder_.add_tensor(module, name, std::move(shape), {});
  }
  /// Adds "bias" to `module`, one number per word. @returns its tensor
  std::size_t word_bias(std::size_t module);
  /// `module` uses the word embedding's weight.
  void share_word_embedding(std::size_t module);
  void share(std::size_t module, std::size_t tensor) { builder_.tie(module, tensor); }

  const ModelSpec& spec() const { return spec_; }
  const Settings& settings() const { return settings_; }
  ModelParameters take() { return builder_.take(); }

 private:
  const ModelSpec& spec_;
  Settings settings_;
  ModelBuilder builder_;
};

}  // namespace dstune::bert
