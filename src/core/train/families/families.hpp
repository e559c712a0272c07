// The families of models: what each is, in one table.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/input/problems.hpp"
#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"

namespace dstune {

class Device;
class Model;
struct MicroBatch;

inline constexpr Task kCausalLmOnly[] = {Task::causal_lm};
inline constexpr Task kDecoderTasks[] = {Task::causal_lm, Task::sequence_classification};

/// All that the rest of the program knows of a kind of model.
struct Family {
  std::string_view model_type;  ///< in Hugging Face's config.json, and ModelSpec::family
  /// Models that are known by name.
  std::vector<ModelSpec> (*presets)();
  /// The spec, but for family and name, from a Hugging Face config.json; nothing, and problems, if
  /// the model cannot be trained. Dropout probabilities are those of the file.
  std::optional<ModelSpec> (*read)(const json::object& config, std::string_view pointer,
                                   Problems& problems, std::vector<std::string>& warnings);
  ModelParameters (*parameters)(const ModelSpec& spec);
  /// The FLOPs of forward and backward, without recomputation.
  double (*training_flops)(const ModelSpec& spec, std::int64_t tokens,
                           std::int64_t sequence_length);
  std::unique_ptr<Model> (*make_model)(const ModelSpec& spec, const ModelParameters& parameters,
                                       const MicroBatch& batch, Device& device);
  /// The tasks that it can be trained for; the first one is taken unless dstune.task says
  /// otherwise.
  std::span<const Task> tasks = kCausalLmOnly;
  /// transformers has no other attention for it: sdpa, its default elsewhere, is eager here too,
  /// and flash is refused.
  bool eager_only = false;
};

/// The table. A program has one: families_table.cpp's, unless it defines its own.
std::span<const Family> families();

/// nullptr if the table has no family of that model_type.
const Family* find_family(std::string_view model_type);
/// @throws std::invalid_argument  if the table does not have spec.family
const Family& family_of(const ModelSpec& spec);

/// The parameters of a model, by its family, as spec.fine_tuning says.
ModelParameters make_model_parameters(const ModelSpec& spec);
/// The parameters of the model that was asked for last, for a caller that makes many dry runs of
/// one.
class LastModel {
 public:
  std::shared_ptr<const ModelParameters> parameters_of(const ModelSpec& spec);

 private:
  ModelSpec spec_;
  std::shared_ptr<const ModelParameters> parameters_;
};
/// The FLOPs of training on `tokens` tokens in sequences of `sequence_length`:
/// Family::training_flops.
double training_flops(const ModelSpec& spec, std::int64_t tokens, std::int64_t sequence_length);

}  // namespace dstune
