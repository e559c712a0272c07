// The parts of a model: its tensors and the tree of its modules, in registration order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace dstune {

/// The values that a tensor starts with: normal numbers with mean 0, or, where `stddev` is 0,
/// `constant`.
struct InitialValue {
  double stddev = 0;
  double constant = 0;

  bool operator==(const InitialValue&) const = default;
};

/// One parameter tensor.
struct ParameterSpec {
  std::string name;  ///< as in named_parameters(): "transformer.h.0.attn.c_attn.weight"
  std::vector<std::int64_t> shape;  ///< Conv1D weights are stored [in, out]
  bool weight_decay = true;         ///< false for biases and LayerNorm: HF's second parameter group
  InitialValue initial{};
  bool trainable = true;  ///< requires_grad

  std::int64_t numel() const;
};

/// One nn.Module whose forward runs. Modules without a forward of their own (ModuleList) and those
/// that "sdpa" attention does not call (attn_dropout) are left out.
struct ModuleSpec {
  std::string name;                     ///< as in named_modules(): "transformer.h.0.attn"; root: ""
  std::string class_name;               ///< "GPT2Attention"
  std::size_t parent = 0;               ///< index; the root's is its own
  std::vector<std::size_t> parameters;  ///< its own, without its children's: indices of tensors
  /// False where only token and position numbers come in, or nothing by place: autograd, or
  /// DeepSpeed's hook there, then never reaches the end of the module's backward.
  bool input_has_gradient = true;
};

/// How adapters are added to what they adapt (core/model/fine_tuning.hpp).
struct LoraScaling {
  std::int64_t rank = 0;  ///< 0: there are no adapters
  double scaling = 1;     ///< of what they add
  double dropout = 0;     ///< of what they read
};

/// All parameters of a model. Tied tensors stand once, and every module that uses them lists them.
struct ModelParameters {
  /// Tensors stand in registration order (docs/deepspeed-step.md, "Order of registration").
  std::vector<ParameterSpec> tensors;
  /// Modules stand in registration order too, parents before their children; the root first.
  std::vector<ModuleSpec> modules;
  LoraScaling lora = {};

  std::int64_t total() const;            ///< elements of all tensors, P where none is frozen
  std::int64_t trainable_total() const;  ///< elements of those that are trained: P
  /// The module after `module` and all that is inside it.
  std::size_t end_of(std::size_t module) const;
  /// Tensors of `module` and of all that is inside it, ascending, each once.
  std::vector<std::size_t> tensors_within(std::size_t module) const;
};

/// Finds modules and tensors by their names, which are those of `parameters`: it must live longer.
/// A module that PEFT wraps has the name of what it stands for: plain_name().
class ModelNames {
 public:
  explicit ModelNames(const ModelParameters& parameters);
  ModelNames(const ModelNames& other) : ModelNames(*other.parameters_) {}
  ModelNames& operator=(const ModelNames&) = delete;
  ~ModelNames() = default;

  /// @throws std::logic_error  if there is none of that name
  std::size_t module(std::string_view name) const;
  std::size_t tensor(std::string_view name) const;
  /// Nothing if there is none of that name.
  std::optional<std::size_t> find_module(std::string_view name) const;
  std::optional<std::size_t> find_tensor(std::string_view name) const;
  const std::vector<std::int64_t>& shape(std::size_t tensor) const {
    return parameters_->tensors.at(tensor).shape;
  }
  const std::string& class_of(std::size_t module) const {
    return parameters_->modules.at(module).class_name;
  }
  bool is_trainable(std::size_t tensor) const { return parameters_->tensors.at(tensor).trainable; }
  /// The scaling of what adapts the linear layers, nothing but with LoRA.
  const LoraScaling& lora() const { return parameters_->lora; }

 private:
  using Indices = std::unordered_map<std::string_view, std::size_t>;

  static std::size_t find(const Indices& indices, std::string_view name);
  std::string_view key_of(const std::string& name);

  const ModelParameters* parameters_;
  std::list<std::string> plain_;  // names that are not those of `parameters`
  Indices modules_;
  Indices tensors_;
};

/// A name without what PEFT puts in front of and into it: "base_model.model" and ".base_layer" or
/// ".modules_to_save.default".
std::string plain_name(std::string_view name);

/// Makes ModelParameters in registration order.
class ModelBuilder {
 public:
  /// A module inside `parent` (the root: 0, inside itself). @returns its index
  std::size_t add_module(std::string name, std::string class_name, std::size_t parent);
  /// A tensor of `module`, called MODULE.name. Matrices decay, vectors do not.
  /// @returns its index
  std::size_t add_tensor(std::size_t module, std::string_view name, std::vector<std::int64_t> shape,
                         InitialValue initial);
  /// `module` uses `tensor`, which another one has registered.
  void tie(std::size_t module, std::size_t tensor);
  /// See ModuleSpec::input_has_gradient.
  void takes_numbers_only(std::size_t module);

  /// torch.nn.LayerNorm over `size`. @returns its module
  std::size_t add_layer_norm(std::string name, std::size_t parent, std::int64_t size);
  /// A weight (shape) with a bias of `bias_size`; bias 0.
  std::size_t add_linear(std::string name, std::string class_name, std::size_t parent,
                         std::vector<std::int64_t> shape, std::int64_t bias_size, double stddev);
  /// torch.nn.Embedding of token or position numbers.
  std::size_t add_embedding(std::string name, std::size_t parent, std::int64_t rows,
                            std::int64_t size, double stddev);

  ModelParameters take() { return std::move(result_); }

 private:
  ModelParameters result_;
};

/// torch.nn.Linear: a weight (outputs, inputs) and, if it has one, a bias of zeros.
/// @returns its module
std::size_t add_nn_linear(ModelBuilder& builder, std::string name, std::size_t parent,
                          std::int64_t inputs, std::int64_t outputs, bool has_bias, double stddev);

}  // namespace dstune
