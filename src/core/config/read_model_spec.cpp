#include "core/config/read_model_spec.hpp"

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

const Family* read_family(const json::object& object, std::string_view pointer,
                          Problems& problems) {
  const auto* type = object.if_contains("model_type");
  if (type != nullptr && type->is_string()) {
    if (const Family* family = find_family(type->get_string())) return family;
  }
  const std::string near = type != nullptr && type->is_string()
                               ? suggestion(std::string_view(type->get_string()), model_types())
                               : "";
  problems.add(
      child(pointer, "model_type"),
      concat("is ", type == nullptr ? "missing" : describe(*type), near,
             near.empty() ? "; accepted: " : " accepted: ", in_quotes_each(model_types())));
  return nullptr;
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
  spec->task = family->tasks.front();
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
    const auto near = suggestion(name, model_presets());
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
