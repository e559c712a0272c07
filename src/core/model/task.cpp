#include "core/model/task.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "core/base/text.hpp"

namespace dstune {

namespace {

constexpr std::array<std::pair<Task, std::string_view>, 4> kNames = {{
    {Task::causal_lm, "causal_lm"},
    {Task::masked_lm, "masked_lm"},
    {Task::sequence_classification, "sequence_classification"},
    {Task::seq2seq_lm, "seq2seq_lm"},
}};

}  // namespace

std::string_view name_of(Task task) {
  return std::find_if(kNames.begin(), kNames.end(),
                      [=](const auto& entry) { return entry.first == task; })
      ->second;
}

Task task_from(std::string_view name) {
  const auto* const found = std::find_if(kNames.begin(), kNames.end(),
                                         [=](const auto& entry) { return entry.second == name; });
  if (found == kNames.end()) throw std::invalid_argument(concat("no task: ", name));
  return found->first;
}

}  // namespace dstune
