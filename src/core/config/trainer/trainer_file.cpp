#include "core/config/trainer/trainer_file.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/base/text.hpp"
#include "core/config/trainer/accelerate_config.hpp"
#include "core/config/trainer/axolotl.hpp"
#include "core/config/trainer/llama_factory.hpp"
#include "core/config/trainer/training_arguments.hpp"
#include "core/config/trainer/translation.hpp"
#include "core/input/read_json.hpp"
#include "core/input/read_text.hpp"
#include "core/input/read_yaml.hpp"

namespace dstune {
namespace {

template <std::size_t Count>
bool has_any(const json::object& file, const std::array<std::string_view, Count>& keys) {
  return std::ranges::any_of(keys, [&](std::string_view key) { return file.contains(key); });
}

bool is_yaml(const std::filesystem::path& path) {
  return path.extension() == ".yaml" || path.extension() == ".yml";
}

std::optional<json::value> read_value(const std::filesystem::path& path, Problems& problems) {
  if (!is_yaml(path)) return read_json_file(path, "", problems);
  const JsonLimits limits;
  const auto text = read_text_file(path, limits.max_bytes, problems);
  if (!text) return std::nullopt;
  return parse_config_yaml(*text, problems, limits);
}

}  // namespace

std::optional<TrainerKind> trainer_of(const json::object& file) {
  // Of each what no other file has, and DeepSpeed's least of all.
  constexpr std::array<std::string_view, 3> kAccelerate = {"distributed_type",
                                                           "compute_environment", "num_machines"};
  constexpr std::array<std::string_view, 3> kLlamaFactory = {"finetuning_type", "cutoff_len",
                                                             "template"};
  constexpr std::array<std::string_view, 2> kAxolotl = {"base_model", "sequence_len"};
  constexpr std::array<std::string_view, 3> kTrainer = {"per_device_train_batch_size", "output_dir",
                                                        "num_train_epochs"};
  if (has_any(file, kAccelerate)) return TrainerKind::accelerate;
  if (has_any(file, kLlamaFactory)) return TrainerKind::llama_factory;
  if (has_any(file, kAxolotl)) return TrainerKind::axolotl;
  if (has_any(file, kTrainer)) return TrainerKind::training_arguments;
  return std::nullopt;
}

ConfigFile translate(TrainerKind kind, const json::object& file, const std::filesystem::path& path,
                     Problems& problems) {
  Translation translation(file, path, problems);
  json::object deepspeed;
  switch (kind) {
    case TrainerKind::training_arguments:
      deepspeed = translate_training_arguments(translation);
      break;
    case TrainerKind::accelerate:
      deepspeed = translate_accelerate_config(translation);
      break;
    case TrainerKind::llama_factory:
      deepspeed = translate_llama_factory(translation);
      break;
    case TrainerKind::axolotl:
      deepspeed = translate_axolotl(translation);
      break;
  }
  return {translation.config(std::move(deepspeed)), translation.notes()};
}

std::optional<ConfigFile> read_config_file(const std::filesystem::path& path, Problems& problems) {
  const auto value = read_value(path, problems);
  if (!value) return std::nullopt;
  if (!value->is_object()) {
    problems.add("file", concat("is ", describe(*value),
                                "; accepted: ", is_yaml(path) ? "a mapping" : "a JSON object"));
    return std::nullopt;
  }
  const json::object& file = value->get_object();
  if (const auto kind = trainer_of(file)) return translate(*kind, file, path, problems);
  if (is_yaml(path)) {
    problems.add("file",
                 "is YAML of an unknown kind; accepted: the files of accelerate config, "
                 "LLaMA-Factory and axolotl, or a DeepSpeed configuration as JSON");
    return std::nullopt;
  }
  return ConfigFile{own_copy(file), {}};
}

}  // namespace dstune
