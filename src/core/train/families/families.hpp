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
  std::string_view model_type;  ///< of Hugging Face's config.json, and ModelSpec::family
  /// Models that are known by name.
  std::vector<ModelSpec> (*presets)();
  /// The spec, but for family and name, from a Hugging Face config.json; nothing, and problems, if
  /// it cannot be trained. Dropout probabilities are the file's.
  std::optional<ModelSpec> (*read)(const json::object& config, std::string_view pointer,
                                   Problems& problems, std::vector<std::string>& warnings);
  ModelParameters (*parameters)(const ModelSpec& spec);
  /// Of forward and backward, without recomputation.
  double (*training_flops)(const ModelSpec& spec, std::int64_t tokens,
                           std::int64_t sequence_length);
  std::unique_ptr<Model> (*make_model)(const ModelSpec& spec, const ModelParameters& parameters,
                                       const MicroBatch& batch, Device& device);
  /// What it can be trained for; the first unless dstune.task says otherwise.
  std::span<const Task> tasks = kCausalLmOnly;
  /// transformers has no other attention for it: sdpa, its default elsewhere, is eager here too,
  /// and flash is refused.
  bool eager_only = false;
};

/// The table. A program has one: families_table.cpp's, unless it defines its own.
std::span<const Family> families();

/// Nothing if the table has none of that model_type.
const Family* find_family(std::string_view model_type);
/// @throws std::invalid_argument  if the table does not have spec.family
const Family& family_of(const ModelSpec& spec);

/// Those of its family, as spec.fine_tuning says.
ModelParameters make_model_parameters(const ModelSpec& spec);
/// Those of the model that was asked for last, for whoever runs many steps of one dry.
class LastModel {
 public:
  std::shared_ptr<const ModelParameters> parameters_of(const ModelSpec& spec);

 private:
  ModelSpec spec_;
  std::shared_ptr<const ModelParameters> parameters_;
};
/// Training FLOPs of `tokens` tokens in sequences of `sequence_length`: see the family's.
double training_flops(const ModelSpec& spec, std::int64_t tokens, std::int64_t sequence_length);

}  // namespace dstune
