// The settings in which experiments differ.
#pragma once

#include <string>
#include <vector>

#include "core/report/journal/journal.hpp"
#include "core/report/tables/table.hpp"

namespace dstune {

/// One leaf of the DeepSpeed JSON that is not the same in all experiments; what bf16.enabled and
/// fp16.enabled say together is one, the precision.
struct ResultAxis {
  std::string pointer;  ///< "/zero_optimization/stage"; "/ranks" for the group size; "/precision"
  std::string title;    ///< "zero", "micro batch", or the key itself
  Table::Align align = Table::Align::right;  ///< left where a value is no number
};

/// Axes that vary over `records`: stage, micro-batch, accumulation and ranks first, then others in
/// the order they appear. train_batch_size, which follows from them, is none.
std::vector<ResultAxis> varying_axes(const std::vector<Record>& records);

std::vector<ResultAxis> varying_axes(const std::vector<const Experiment*>& experiments);

/// Adds those of `more` that are not among `axes`.
void add_axes(std::vector<ResultAxis>& axes, const std::vector<ResultAxis>& more);

/// The name of its column in files: the keys down to the leaf, "zero_optimization.overlap_comm";
/// of those that DeepSpeed does not have the last one alone, "activation_checkpointing".
std::string column_name(const ResultAxis& axis);

/// The value of `axis` in `experiment`; "" where it is absent.
std::string axis_value(const ResultAxis& axis, const Experiment& experiment);
/// The same as it stands in the JSON; null where it is absent.
json::value axis_json(const ResultAxis& axis, const Experiment& experiment);
/// The experiment's values of all axes.
std::vector<std::string> axis_values(const std::vector<ResultAxis>& axes,
                                     const Experiment& experiment);

}  // namespace dstune
