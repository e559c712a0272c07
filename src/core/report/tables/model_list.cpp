#include "core/report/tables/model_list.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/text.hpp"
#include "core/config/model/model_names.hpp"
#include "core/model/hub_names.hpp"
#include "core/model/parameter_text.hpp"
#include "core/train/families/families.hpp"

namespace dstune {

namespace {

std::vector<std::string_view> hub_names_of(std::string_view preset) {
  const auto rows = hub_names();
  const auto row = std::ranges::find(rows, preset, &HubNames::preset);
  return row == rows.end() ? std::vector<std::string_view>() : row->each();
}

std::string padded(std::string_view text, std::size_t width) {
  return concat(text, std::string(width - std::min(width, text.size()), ' '));
}

std::size_t width_of_presets() {
  std::size_t width = 0;
  for (const auto& name : model_presets()) width = std::max(width, name.size());
  return width;
}

}  // namespace

std::string format_model_list() {
  constexpr std::size_t kWidthOfCount = 6;
  const std::size_t width = width_of_presets();
  std::string text;
  std::string_view family;
  const auto presets = all_presets();
  for (const ModelSpec& preset : presets) {
    if (preset.family != family) text += concat(text.empty() ? "" : "\n", preset.family, "\n");
    family = preset.family;
    const std::string count = format_count(make_model_parameters(preset).total());
    std::string start =
        concat("  ", padded(preset.name, width), "  ", padded(count, kWidthOfCount));
    for (const std::string_view name : hub_names_of(preset.name)) {
      text += concat(start, "  ", name, "\n");
      start = std::string(start.size(), ' ');
    }
  }
  return text;
}

json::array model_list_to_json() {
  json::array list;
  for (const ModelSpec& preset : all_presets()) {
    json::array tasks;
    for (const Task task : family_of(preset).tasks) tasks.emplace_back(name_of(task));
    json::array names;
    for (const std::string_view name : hub_names_of(preset.name)) names.emplace_back(name);
    list.push_back(json::object{{"name", preset.name},
                                {"model_type", preset.family},
                                {"num_params", make_model_parameters(preset).total()},
                                {"tasks", std::move(tasks)},
                                {"hub_names", std::move(names)}});
  }
  return list;
}

}  // namespace dstune
