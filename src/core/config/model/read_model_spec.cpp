#include "core/config/model/read_model_spec.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include "core/base/printable.hpp"
#include "core/base/text.hpp"
#include "core/input/key_rules.hpp"
#include "core/input/read_json.hpp"
#include "core/train/families/families.hpp"

namespace dstune {

namespace {

std::vector<ModelSpec> all_presets() {
  std::vector<ModelSpec> all;
  for (const Family& family : families()) {
    for (ModelSpec& spec : family.presets()) {
      spec.family = family.model_type;
      spec.task = family.tasks.front();
      all.push_back(std::move(spec));
    }
  }
  return all;
}

std::optional<ModelSpec> find_preset(std::string_view name) {
  for (ModelSpec& spec : all_presets()) {
    if (spec.name == name) return std::move(spec);
  }
  return std::nullopt;
}

std::string in_quotes_each(std::vector<std::string> names) {
  for (auto& name : names) name = in_quotes(name);
  return join(names, ", ");
}

std::vector<std::string> model_types() {
  std::vector<std::string> types;
  for (const Family& family : families()) types.emplace_back(family.model_type);
  return types;
}

// "GPT-NeoX" and "gpt_neox" are one name.
std::string without_separators(std::string_view name) {
  std::string plain = lower(name);
  std::erase_if(plain, [](char letter) {
    return std::string_view("-_. ").find(letter) != std::string_view::npos;
  });
  return plain;
}

// A model_type that looks like another is mostly that of another model: "bart" is no slip for
// "bert".
std::string same_name(std::string_view name, const std::vector<std::string>& known) {
  for (const std::string& each : known) {
    if (each != name && without_separators(each) == without_separators(name)) {
      return concat("; did you mean ", in_quotes(each), "?");
    }
  }
  return "";
}

// What tells a preset's kind and size: its first word, and its digits.
std::string kind_of(std::string_view name) {
  const std::string plain = lower(name);
  std::string kind = plain.substr(0, plain.find_first_of("-_.0123456789"));
  for (const char letter : plain) {
    if (letter >= '0' && letter <= '9') kind += letter;
  }
  return kind;
}

std::string near_preset(const std::string& name) {
  auto presets = model_presets();
  std::string same = same_name(name, presets);
  if (!same.empty()) return same;
  std::erase_if(presets,
                [&](const std::string& preset) { return kind_of(preset) != kind_of(name); });
  return suggestion(name, presets);
}

const Family* read_family(const json::object& object, std::string_view pointer,
                          Problems& problems) {
  const auto* type = object.if_contains("model_type");
  if (type != nullptr && type->is_string()) {
    if (const Family* family = find_family(type->get_string())) return family;
  }
  const std::string near = type != nullptr && type->is_string()
                               ? same_name(std::string_view(type->get_string()), model_types())
                               : "";
  problems.add(
      child(pointer, "model_type"),
      concat("is ", type == nullptr ? "missing" : describe(*type), near,
             near.empty() ? "; accepted: " : " accepted: ", in_quotes_each(model_types())));
  return nullptr;
}

// The end of a class's name in transformers: "BertForSequenceClassification".
constexpr std::pair<std::string_view, Task> kHeads[] = {
    {"ForCausalLM", Task::causal_lm},
    {"LMHeadModel", Task::causal_lm},
    {"ForMaskedLM", Task::masked_lm},
    {"ForSequenceClassification", Task::sequence_classification},
    {"ForConditionalGeneration", Task::seq2seq_lm},
};

std::optional<Task> task_of_class(std::string_view name) {
  for (const auto& [end, task] : kHeads) {
    if (name.ends_with(end)) return task;
  }
  return std::nullopt;
}

// The class whose weights the file is of, if it says so.
std::string class_of(const json::object& object) {
  const auto* const list = object.if_contains("architectures");
  if (list == nullptr || !list->is_array() || list->get_array().empty()) return "";
  const json::value& first = list->get_array().front();
  return first.is_string() ? json::value_to<std::string>(first) : "";
}

// What a head that is not modelled is trained for instead is said; a bare "BertModel" has none.
Task read_architecture(const json::object& object, const Family& family, std::string_view pointer,
                       std::vector<std::string>& warnings) {
  const Task usual = family.tasks.front();
  const std::string name = class_of(object);
  const auto task = task_of_class(name);
  const bool is_modelled =
      task && std::find(family.tasks.begin(), family.tasks.end(), *task) != family.tasks.end();
  if (is_modelled) return *task;
  if (task || name.find("For") != std::string::npos) {
    Problems said("model");
    said.warn(child(pointer, "architectures"),
              concat("has ", in_quotes(name), ", whose head is not modelled for ",
                     family.model_type, ": trained for ", name_of(usual), " instead"));
    for (auto& warning : said.warnings()) warnings.push_back(std::move(warning));
  }
  return usual;
}

std::filesystem::path find_file(const std::string& name,
                                const std::vector<std::filesystem::path>& folders) {
  std::error_code ignored;
  for (const auto& folder : folders) {
    auto path = (folder / name).lexically_normal();
    if (std::filesystem::is_directory(path, ignored)) {
      if (std::filesystem::exists(path / "config.json", ignored)) return path / "config.json";
    } else if (std::filesystem::exists(path, ignored)) {
      return path;
    }
  }
  return {};
}

// Most of these files are called config.json: then the folder says which model it is.
std::string display_name(const std::filesystem::path& path) {
  const auto stem = path.stem();
  const auto folder = std::filesystem::absolute(path).lexically_normal().parent_path().filename();
  return printable(stem == "config" && !folder.empty() ? folder.string() : stem.string());
}

}  // namespace

std::vector<std::string> model_presets() {
  std::vector<std::string> names;
  for (auto& spec : all_presets()) names.push_back(std::move(spec.name));
  return names;
}

std::optional<ModelSpec> read_model_object(const json::object& object, const std::string& name,
                                           std::string_view pointer, Problems& problems,
                                           std::vector<std::string>& warnings) {
  const Family* family = read_family(object, pointer, problems);
  if (family == nullptr) return std::nullopt;
  auto spec = family->read(object, pointer, problems, warnings);
  if (!spec) return std::nullopt;
  spec->family = family->model_type;
  spec->task = read_architecture(object, *family, pointer, warnings);
  spec->name = name;
  return spec;
}

std::optional<ModelSpec> read_model_name(const std::string& name,
                                         const std::vector<std::filesystem::path>& folders,
                                         std::string_view where, Problems& problems,
                                         std::vector<std::string>& warnings) {
  if (auto spec = find_preset(name)) return spec;
  const auto path = find_file(name, folders);
  if (path.empty()) {
    const auto near = near_preset(name);
    problems.add(std::string(where), concat("is ", in_quotes(name), ", no preset and no file", near,
                                            near.empty() ? "; accepted: " : " accepted: ",
                                            "a preset (docs/models.md lists them), or the path "
                                            "of a Hugging Face config.json"));
    return std::nullopt;
  }
  Problems file_problems(path.string());
  const auto value = read_json_file(path, "", file_problems);
  std::optional<ModelSpec> spec;
  if (value && !value->is_object()) {
    file_problems.add("file", concat("is ", describe(*value), "; accepted: an object"));
  } else if (value) {
    std::vector<std::string> file_warnings;
    spec = read_model_object(value->get_object(), display_name(path), "", file_problems,
                             file_warnings);
    for (const auto& warning : file_warnings) {
      warnings.push_back(concat(path.string(), "#", warning));
    }
  }
  problems.add_all(file_problems);
  if (!file_problems.empty()) return std::nullopt;
  return spec;
}

}  // namespace dstune
