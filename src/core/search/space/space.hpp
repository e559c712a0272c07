// A search space of one stage: a product of lists that is never stored as a whole.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/json.hpp"
#include "core/config/space/axis.hpp"
#include "core/config/tuning_config.hpp"
#include "core/search/feasibility/make_experiment.hpp"
#include "core/search/space/canonical_name.hpp"

namespace dstune {

/// Whose space it is: the user's, DeepSpeed's or ours.
enum class SpaceOrigin { users, deepspeeds, ours };

std::string_view name_of(SpaceOrigin origin);

/// `name` with a number that tells `config` from others of that name and is the same in every run.
std::string with_number(const std::string& name, const json::object& config);

/// The parts of a Space.
struct SpaceParts {
  SpaceOrigin origin = SpaceOrigin::users;
  int stage = 0;
  int group_size = 1;
  json::object fixed;           ///< the DeepSpeed JSON, complete except for batch sizes and `axes`
  std::vector<AxisGroup> axes;  ///< the lists; the last one changes fastest with the index
  std::vector<Point> points;    ///< micro-batches, which change faster still
  json::object name_order;      ///< keys of DeepSpeed's template, which come first in the names
  /// The user gave accumulation steps, so that names have them in their place.
  bool names_accumulation = false;
};

/// All combinations of the axes' values and of the points, by index, in DeepSpeed's order.
class Space {
 public:
  explicit Space(SpaceParts parts);

  SpaceOrigin origin() const { return parts_.origin; }
  int stage() const { return parts_.stage; }
  std::uint64_t size() const { return size_; }
  const std::vector<AxisGroup>& axes() const { return parts_.axes; }

  /// The name and complete DeepSpeed JSON of the combination `index` < size().
  Candidate at(std::uint64_t index) const { return {name(index), config(index)}; }
  DeepSpeedConfig config(std::uint64_t index) const;
  Point point(std::uint64_t index) const;
  /// The first index that differs from `index` only in keys that do nothing in the stage.
  std::uint64_t first_alike(std::uint64_t index) const;
  /// The name that DeepSpeed gives. Of configurations with one name the first keeps it; the names
  /// of the others end in a number made of their values.
  std::string name(std::uint64_t index) const;

 private:
  /// The place of the value in each axis, and at the end the place of the point.
  std::vector<std::size_t> places(std::uint64_t index) const;
  Point point_at(const std::vector<std::size_t>& places) const;
  std::string plain_name(const std::vector<std::size_t>& places) const;
  void find_clashes();

  SpaceParts parts_;
  std::uint64_t size_ = 0;
  std::vector<std::vector<std::vector<std::string>>> keys_;  // by group and axis
  json::object name_fixed_;
  TuningKeys tuning_keys_;
  std::vector<bool> idle_;  // by group
  // By group and value: whether it has the name of an earlier value.
  std::vector<std::vector<bool>> clashes_;
};

/// The spaces of `stage` for which the user asks, the user's own first.
/// @param points  the points of the stage, with consistent accumulation steps
std::vector<Space> make_spaces(const TuningConfig& config, int group_size, int stage,
                               const std::vector<Point>& points);

}  // namespace dstune
