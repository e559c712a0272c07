// The settings in which experiments differ.
#pragma once

#include <string>
#include <vector>

#include "core/report/journal/journal.hpp"
#include "core/report/tables/table.hpp"

namespace dstune {

/// One leaf of the DeepSpeed JSON that is not the same in all experiments.
struct ResultAxis {
  std::string pointer;  ///< "/zero_optimization/stage"; "/ranks" for the group size
  std::string title;    ///< "zero", "micro batch", or the key itself
  Table::Align align = Table::Align::right;  ///< left where a value is no number
};

/// Axes that vary over `records`: stage, micro-batch, accumulation and ranks first, then others in
/// the order they appear. train_batch_size, which follows from them, is none.
std::vector<ResultAxis> varying_axes(const std::vector<Record>& records);

/// The value of `axis` in `experiment`; "" where it is absent.
std::string axis_value(const ResultAxis& axis, const Experiment& experiment);
/// The experiment's values of all axes.
std::vector<std::string> axis_values(const std::vector<ResultAxis>& axes,
                                     const Experiment& experiment);

}  // namespace dstune
