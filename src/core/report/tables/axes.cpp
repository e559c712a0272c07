#include "core/report/tables/axes.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/base/json.hpp"
#include "core/base/text.hpp"

namespace dstune {

namespace {

using Leaves = std::vector<std::pair<std::string, json::value>>;

void collect_leaves(const json::object& object, const std::string& prefix, Leaves& leaves) {
  for (const auto& member : object) {
    const std::string pointer = concat(prefix, "/", member.key());
    if (member.value().is_object()) {
      collect_leaves(member.value().get_object(), pointer, leaves);
    } else {
      leaves.emplace_back(pointer, member.value());
    }
  }
}

bool is_precision(const std::string& pointer) {
  return pointer == "/bf16/enabled" || pointer == "/fp16/enabled";
}

std::string precision_of(const Leaves& found) {
  for (const auto& [pointer, value] : found) {
    const bool is_on = is_precision(pointer) && value.is_bool() && value.get_bool();
    if (is_on) return pointer.substr(1, pointer.find('/', 1) - 1);
  }
  return "fp32";
}

Leaves leaves_of(const Experiment& experiment) {
  Leaves leaves = {{"/zero_optimization/stage", nullptr},
                   {"/train_micro_batch_size_per_gpu", nullptr},
                   {"/gradient_accumulation_steps", nullptr},
                   {"/ranks", experiment.ranks}};
  Leaves found;
  collect_leaves(experiment.ds_config.json(), "", found);
  leaves.emplace_back("/precision", precision_of(found));
  for (auto& leaf : found) {
    if (leaf.first == "/train_batch_size" || is_precision(leaf.first)) continue;
    const auto known = std::find_if(leaves.begin(), leaves.end(),
                                    [&](const auto& other) { return other.first == leaf.first; });
    if (known == leaves.end()) {
      leaves.push_back(std::move(leaf));
    } else {
      known->second = std::move(leaf.second);
    }
  }
  return leaves;
}

const json::value* find_leaf(const Leaves& leaves, const std::string& pointer) {
  for (const auto& leaf : leaves) {
    if (leaf.first == pointer) return &leaf.second;
  }
  return nullptr;
}

std::string leaf_text(const json::value* leaf) {
  if (leaf == nullptr || leaf->is_null()) return "";
  return leaf->is_string() ? std::string(leaf->get_string()) : to_json_text(*leaf, 0);
}

std::string title_of(const std::string& pointer) {
  if (pointer == "/zero_optimization/stage") return "zero";
  if (pointer == "/train_micro_batch_size_per_gpu") return "micro batch";
  if (pointer == "/gradient_accumulation_steps") return "accumulate";
  const std::vector<std::string> keys = split(pointer, '/');
  const std::string& section = keys[keys.size() - 2];
  if (section.rfind("offload_", 0) != 0) return keys.back();
  return keys.back() == "device" ? section : concat(section, ".", keys.back());
}

}  // namespace

std::vector<ResultAxis> varying_axes(const std::vector<Record>& records) {
  std::vector<const Experiment*> experiments;
  experiments.reserve(records.size());
  for (const auto& record : records) experiments.push_back(&record.experiment);
  return varying_axes(experiments);
}

std::vector<ResultAxis> varying_axes(const std::vector<const Experiment*>& experiments) {
  struct Seen {
    ResultAxis axis;
    std::string first;  ///< the value in the first experiment; "" where it was absent
    bool varies = false;
  };
  std::vector<Seen> all;
  for (const Experiment* experiment : experiments) {
    const Leaves leaves = leaves_of(*experiment);
    const bool is_first = experiment == experiments.front();
    for (const auto& [pointer, value] : leaves) {
      const auto known = std::ranges::find(
          all, pointer, [](const Seen& seen) -> const auto& { return seen.axis.pointer; });
      if (known != all.end()) continue;
      all.push_back({{pointer, title_of(pointer)}, is_first ? leaf_text(&value) : ""});
    }
    for (Seen& seen : all) {
      const json::value* leaf = find_leaf(leaves, seen.axis.pointer);
      const bool is_text = leaf != nullptr && !leaf->is_number() && !leaf->is_null();
      if (is_text) seen.axis.align = Table::Align::left;
      seen.varies = seen.varies || leaf_text(leaf) != seen.first;
    }
  }
  std::vector<ResultAxis> axes;
  for (Seen& seen : all) {
    if (seen.varies) axes.push_back(std::move(seen.axis));
  }
  return axes;
}

void add_axes(std::vector<ResultAxis>& axes, const std::vector<ResultAxis>& more) {
  for (const ResultAxis& axis : more) {
    const auto known = std::ranges::find(axes, axis.pointer, &ResultAxis::pointer);
    if (known == axes.end()) axes.push_back(axis);
  }
}

std::string column_name(const ResultAxis& axis) {
  constexpr std::string_view kOurs = "/dstune/";
  const bool is_ours = axis.pointer.starts_with(kOurs);
  std::string name = axis.pointer.substr(is_ours ? kOurs.size() : 1);
  std::ranges::replace(name, '/', '.');
  return name;
}

json::value axis_json(const ResultAxis& axis, const Experiment& experiment) {
  const Leaves leaves = leaves_of(experiment);
  const json::value* leaf = find_leaf(leaves, axis.pointer);
  return leaf == nullptr ? json::value(nullptr) : *leaf;
}

std::string axis_value(const ResultAxis& axis, const Experiment& experiment) {
  return axis_values({axis}, experiment).front();
}

std::vector<std::string> axis_values(const std::vector<ResultAxis>& axes,
                                     const Experiment& experiment) {
  const Leaves leaves = leaves_of(experiment);
  std::vector<std::string> values;
  values.reserve(axes.size());
  for (const auto& axis : axes) values.push_back(leaf_text(find_leaf(leaves, axis.pointer)));
  return values;
}

}  // namespace dstune
