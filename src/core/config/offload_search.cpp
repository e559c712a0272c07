#include "core/config/offload_search.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <string>
#include <utility>

#include "core/base/text.hpp"
#include "core/experiment/step_config.hpp"

namespace dstune {
namespace {

constexpr const char* kOffloadPointer = "/dstune/offload";
constexpr std::array<std::string_view, 3> kWhen = {"never", "if_needed", "always"};

struct LevelRow {
  std::string_view name;
  std::string_view optimizer;   ///< offload_optimizer.device
  std::string_view parameters;  ///< offload_param.device, in stage 3 alone
  int least_stage;
};

/// In the order of OffloadLevel.
constexpr LevelRow kLevels[] = {
    {"none", "none", "none", 1},
    {"optimizer", "cpu", "none", 1},
    {"optimizer_and_parameters", "cpu", "cpu", 3},
    {"optimizer_on_nvme", "nvme", "cpu", 3},
};

const LevelRow& row_of(OffloadLevel level) { return kLevels[static_cast<std::size_t>(level)]; }

std::string accepted_levels() {
  std::vector<std::string> names;
  for (const LevelRow& row : kLevels) names.push_back(concat('"', row.name, '"'));
  return join(names, ", ");
}

/// The place of the row that has the name.
template <class Rows, class Name>
std::optional<std::size_t> place_of(std::string_view name, const Rows& rows, Name name_of_row) {
  const auto* const found = std::ranges::find(rows, name, name_of_row);
  if (found == std::end(rows)) return std::nullopt;
  return static_cast<std::size_t>(found - std::begin(rows));
}

bool is_about_offload(std::string_view key) { return key.find("offload_") != key.npos; }

Axis axis(std::string_view key, const std::vector<json::value>& values) {
  return {concat("/zero_optimization/", key), values, {}};
}

void read_levels(const json::array& list, OffloadSearch& search, Problems& problems) {
  search.when = OffloadWhen::levels;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto place = list[i].is_string() ? place_of(std::string_view(list[i].get_string()),
                                                      kLevels, &LevelRow::name)
                                           : std::nullopt;
    if (!place) {
      problems.add(child(kOffloadPointer, std::to_string(i)),
                   concat("is ", describe(list[i]), "; accepted: ", accepted_levels()));
      continue;
    }
    const auto level = static_cast<OffloadLevel>(*place);
    if (std::ranges::find(search.levels, level) == search.levels.end()) {
      search.levels.push_back(level);
    }
  }
}

}  // namespace

bool uses_drive(OffloadLevel level) {
  return row_of(level).optimizer == "nvme" || row_of(level).parameters == "nvme";
}

bool has_parameters(OffloadLevel level) { return row_of(level).parameters != "none"; }

AxisGroup offload_axes(int stage, const std::vector<OffloadLevel>& levels,
                       const OffloadSettings& settings) {
  const auto of_levels = [&](auto value_of) {
    std::vector<json::value> values;
    values.reserve(levels.size());
    for (const OffloadLevel level : levels) values.emplace_back(value_of(level));
    return values;
  };
  const auto optimizer = of_levels([](OffloadLevel level) { return row_of(level).optimizer; });
  const auto parameters = of_levels([](OffloadLevel level) { return row_of(level).parameters; });
  // Written out always: the default of pin_memory is not the same in all releases.
  const std::vector<json::value> pinned(levels.size(), settings.pins);
  AxisGroup group{
      {axis("offload_optimizer/device", optimizer), axis("offload_optimizer/pin_memory", pinned)}};
  if (stage < 3) return group;
  group.tied.push_back(axis("offload_param/device", parameters));
  group.tied.push_back(axis("offload_param/pin_memory", pinned));
  if (std::ranges::none_of(levels, uses_drive)) return group;
  const StepConfig usual;
  group.tied.push_back(axis("offload_optimizer/nvme_path", of_levels([&](OffloadLevel level) {
                              return uses_drive(level) ? json::value(settings.nvme_path)
                                                       : json::value(nullptr);
                            })));
  // Enough for Adam, Lion and Adagrad without pipelines, whatever a release has by default.
  group.tied.push_back(axis("offload_optimizer/buffer_count",
                            std::vector<json::value>(levels.size(), usual.optimizer_buffer_count)));
  if (settings.sub_group_size == 0) return group;
  group.tied.push_back(axis("sub_group_size", of_levels([&](OffloadLevel level) {
                              return uses_drive(level) ? settings.sub_group_size
                                                       : usual.sub_group_size;
                            })));
  return group;
}

std::vector<OffloadLevel> OffloadSearch::levels_of(int stage) const {
  std::vector<OffloadLevel> of_stage = levels;
  if (when != OffloadWhen::levels) {
    const bool may_use_drive = when == OffloadWhen::if_needed && !nvme_path.empty();
    for (std::size_t i = 1; i < std::size(kLevels); ++i) {
      const auto level = static_cast<OffloadLevel>(i);
      if (may_use_drive || !uses_drive(level)) of_stage.push_back(level);
    }
  }
  std::erase_if(of_stage, [&](OffloadLevel level) { return stage < row_of(level).least_stage; });
  return of_stage;
}

OffloadSearch read_offload_search(const json::value& value, Problems& problems) {
  OffloadSearch search;
  search.is_given = true;
  if (value.is_array() && !value.get_array().empty()) {
    read_levels(value.get_array(), search, problems);
    return search;
  }
  const auto place = value.is_string()
                         ? place_of(std::string_view(value.get_string()), kWhen, std::identity())
                         : std::nullopt;
  if (place) {
    search.when = static_cast<OffloadWhen>(*place);
  } else {
    problems.add(
        kOffloadPointer,
        concat("is ", describe(value),
               R"(; accepted: "never", "if_needed", "always", or a list of )", accepted_levels()));
  }
  return search;
}

void check_drive(const OffloadSearch& search, Problems& problems) {
  const auto level = std::ranges::find_if(search.levels, uses_drive);
  if (level == search.levels.end() || !search.nvme_path.empty()) return;
  problems.add("/dstune/nvme_path", concat("is missing; the level ", in_quotes(row_of(*level).name),
                                           " of dstune.offload needs a folder on a drive"));
}

bool says_what_is_offloaded(const json::object& deepspeed, const SpaceConfig& space,
                            const std::vector<int>& stages) {
  const json::value* const zero = deepspeed.if_contains("zero_optimization");
  if (zero != nullptr && zero->is_object()) {
    for (const auto& member : zero->get_object()) {
      if (is_about_offload(member.key()) && member.value().is_object()) return true;
    }
  }
  const auto is_about_it = [&](const AxisGroup& group) {
    return std::ranges::any_of(group.tied,
                               [&](const Axis& axis) { return is_about_offload(axis.pointer); });
  };
  return std::ranges::any_of(
      stages, [&](int stage) { return std::ranges::any_of(space.axes_of(stage), is_about_it); });
}

}  // namespace dstune
