#include "core/config/model/read_task.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "core/base/text.hpp"
#include "core/model/labels.hpp"
#include "core/train/families/families.hpp"

namespace dstune {

void read_task(const SectionReader& reader, std::string_view pointer, ModelSpec& model,
               Problems& problems) {
  std::string name;
  reader.read("task", name);
  if (name.empty()) {
    const bool is_classifier = model.task == Task::sequence_classification;
    const std::string fault = is_classifier ? fault_of_labels(model) : "";
    if (!fault.empty()) {
      problems.add(
          std::string(pointer),
          concat(
              "is missing, so it is the sequence_classification of the model's architectures, but ",
              fault));
    }
    return;
  }
  const Task task = task_from(name);
  const auto tasks = family_of(model).tasks;
  if (std::find(tasks.begin(), tasks.end(), task) != tasks.end()) {
    model.task = task;
    if (task != Task::sequence_classification) return;
    const std::string fault = fault_of_labels(model);
    if (!fault.empty())
      problems.add(std::string(pointer), concat("is ", in_quotes(name), ", but ", fault));
    return;
  }
  std::vector<std::string> accepted;
  for (const Task each : tasks) accepted.push_back(in_quotes(name_of(each)));
  problems.add(std::string(pointer),
               concat("is ", in_quotes(name), "; accepted for models of type ",
                      in_quotes(model.family), ": ", join(accepted, ", ")));
}

}  // namespace dstune
