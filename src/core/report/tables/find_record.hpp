// Which experiment of a journal is meant: by its name, or as the best.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/config/tuning_config.hpp"
#include "core/report/journal/journal.hpp"

namespace dstune {

/// The last of the records with this name; nullptr: none.
const Record* find_record(const std::vector<Record>& records, const std::string& name);

/// The record that a run chose; before it has chosen, the best of the tuning spaces so far. None if
/// that was not measured.
/// @param chosen  its name; or ""
std::optional<Record> find_best(const std::vector<Record>& records, const std::string& chosen,
                                Metric metric);

/// The member of `known` that a mistaken name means, or "". Names are long and built alike: one
/// that was cut short, or whose middle was left out, is meant by its beginning, else by its letters
/// in their order.
std::string nearest_name(const std::string& name, const std::vector<std::string>& known);

}  // namespace dstune
