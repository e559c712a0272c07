// The points of one stage: a product of lists that is never written out.
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

/// Who asks for a space.
enum class SpaceOrigin { users, deepspeeds, ours };

std::string_view name_of(SpaceOrigin origin);

/// `name` with the number that tells `config` from others of that name: the same in every run.
std::string with_number(const std::string& name, const json::object& config);

/// What a Space is made of.
struct SpaceParts {
  SpaceOrigin origin = SpaceOrigin::users;
  int stage = 0;
  int group_size = 1;
  json::object fixed;               ///< complete DeepSpeed JSON but for batch sizes and `axes`
  std::vector<AxisGroup> axes;      ///< the last moves fastest
  std::vector<Point> points;        ///< micro-batches, which move faster still
  json::object name_order;          ///< in front of the names: keys of DeepSpeed's template
  bool names_accumulation = false;  ///< the user gave accumulation steps: their place in names
};

/// Every combination of the axes' values and of the points, by index, in DeepSpeed's order.
class Space {
 public:
  explicit Space(SpaceParts parts);

  SpaceOrigin origin() const { return parts_.origin; }
  int stage() const { return parts_.stage; }
  std::uint64_t size() const { return size_; }
  const std::vector<AxisGroup>& axes() const { return parts_.axes; }

  /// Name and complete DeepSpeed JSON of the `index`-th, index < size().
  Candidate at(std::uint64_t index) const { return {name(index), config(index)}; }
  DeepSpeedConfig config(std::uint64_t index) const;
  Point point(std::uint64_t index) const;
  /// The first index that differs from `index` only in keys that do nothing in the stage.
  std::uint64_t first_alike(std::uint64_t index) const;
  /// DeepSpeed's name. Of configurations with one name the first keeps it, the others end in a
  /// number made of their values.
  std::string name(std::uint64_t index) const;

 private:
  /// Which value of each axis, and which point at the end.
  std::vector<std::size_t> places(std::uint64_t index) const;
  Point point_at(const std::vector<std::size_t>& places) const;
  std::string plain_name(const std::vector<std::size_t>& places) const;
  void find_clashes();

  SpaceParts parts_;
  std::uint64_t size_ = 0;
  std::vector<std::vector<std::vector<std::string>>> keys_;  // by group and axis
  json::object name_fixed_;
  TuningKeys tuning_keys_;
  std::vector<bool> idle_;                  // by group
  std::vector<std::vector<bool>> clashes_;  // by group and value: it has an earlier one's name
};

/// The spaces of `stage` that the user asks for, the user's own first.
/// @param points  of the stage, with consistent accumulation steps
std::vector<Space> make_spaces(const TuningConfig& config, int group_size, int stage,
                               const std::vector<Point>& points);

}  // namespace dstune
