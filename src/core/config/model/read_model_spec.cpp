#include "core/config/model/read_model_spec.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include "core/base/printable.hpp"
#include "core/base/text.hpp"
#include "core/config/model/hub_cache.hpp"
#include "core/config/model/model_names.hpp"
#include "core/config/model/read_architecture.hpp"
#include "core/input/read_json.hpp"
#include "core/model/hub_names.hpp"
#include "core/train/families/families.hpp"

namespace dstune {

namespace {

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
  if (const std::string name = hub_name_of(path); !name.empty()) return printable(name);
  const auto stem = path.stem();
  const auto folder = std::filesystem::absolute(path).lexically_normal().parent_path().filename();
  return printable(stem == "config" && !folder.empty() ? folder.string() : stem.string());
}

std::optional<ModelSpec> read_file(const std::filesystem::path& path, Problems& problems,
                                   ModelRemarks& remarks) {
  Problems file_problems(path.string());
  const auto value = read_json_file(path, "", file_problems);
  std::optional<ModelSpec> spec;
  if (value && !value->is_object()) {
    file_problems.add("file", concat("is ", describe(*value), "; accepted: an object"));
  } else if (value) {
    ModelRemarks of_file;
    spec = read_model_object(value->get_object(), display_name(path), "", file_problems, of_file);
    for (const auto& warning : of_file.warnings) {
      remarks.warnings.push_back(concat(path.string(), "#", warning));
    }
    for (auto& note : of_file.notes) remarks.notes.push_back(std::move(note));
    remarks.task_note = std::move(of_file.task_note);
  }
  remarks.source = printable(path.string());
  problems.add_all(file_problems);
  if (!file_problems.empty()) return std::nullopt;
  return spec;
}

}  // namespace

std::optional<ModelSpec> read_model_object(const json::object& object, const std::string& name,
                                           std::string_view pointer, Problems& problems,
                                           ModelRemarks& remarks) {
  const auto other = read_as(object);
  if (other) remarks.notes.push_back(other->note);
  const json::object& config = other ? other->config : object;
  const bool is_inside = other && other->is_text_config;
  const std::string place = is_inside ? child(pointer, "text_config") : std::string(pointer);
  const Family* family = read_family(config, place, problems);
  if (family == nullptr) return std::nullopt;
  auto spec = family->read(config, place, problems, remarks.warnings);
  if (!spec) return std::nullopt;
  spec->family = family->model_type;
  spec->task = read_architecture(config, *family, place, remarks.warnings, remarks.task_note);
  spec->name = name;
  return spec;
}

std::optional<ModelSpec> read_model_object(const json::object& object, const std::string& name,
                                           std::string_view pointer, Problems& problems,
                                           std::vector<std::string>& warnings) {
  ModelRemarks remarks;
  auto spec = read_model_object(object, name, pointer, problems, remarks);
  for (auto& warning : remarks.warnings) warnings.push_back(std::move(warning));
  return spec;
}

std::optional<ModelSpec> read_model_name(const std::string& name,
                                         const std::vector<std::filesystem::path>& folders,
                                         std::string_view where, Problems& problems,
                                         ModelRemarks& remarks) {
  if (const auto path = find_file(name, folders); !path.empty()) {
    return read_file(path, problems, remarks);
  }
  if (auto spec = find_preset(name)) return spec;
  const auto cache = hub_cache();
  if (const auto path = find_in_hub_cache(cache, name); !path.empty()) {
    return read_file(path, problems, remarks);
  }
  const HubPreset known = find_hub_preset(name);
  auto spec = find_preset(known.preset);
  if (!spec) {
    problems.add(std::string(where), unknown_model(name, cache));
    return std::nullopt;
  }
  spec->name = known.hub_name;
  if (known.has_vision) remarks.notes.push_back(language_model_note(known.hub_name, spec->family));
  remarks.source = concat("preset ", known.preset);
  return spec;
}

}  // namespace dstune
