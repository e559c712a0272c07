// What nodes keep for backward, and how a checkpoint makes it again: torch's SavedVariable and
// torch.utils.checkpoint.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "core/train/tape/value.hpp"

namespace dstune {

class CheckpointFrame;
class Tape;

/// Thrown out of a forward that runs again when all is saved: _StopRecomputationError.
struct RecomputationEnds {};

/// The place of a value in a frame, empty until that has run again: _Holder.
class SavedPlace final : public Counted {
 public:
  SavedPlace(boost::intrusive_ptr<CheckpointFrame> frame, std::size_t index);
  ~SavedPlace() override;

 private:
  friend class CheckpointFrame;
  friend class Saved;

  boost::intrusive_ptr<CheckpointFrame> frame_;
  std::size_t index_;
  Value value_;
};

/// One value that a node keeps.
class Saved {
 public:
  Saved() = default;
  explicit Saved(Value value) : value_(std::move(value)) {}
  explicit Saved(boost::intrusive_ptr<SavedPlace> place) : place_(std::move(place)) {}

  /// For the node's backward, once: the first in a checkpoint has its forward run again. Outside
  /// of one it is kept until the node is gone.
  Value take(Tape& tape);

 private:
  Value value_;
  boost::intrusive_ptr<SavedPlace> place_;
};

/// A part of forward of which nothing is kept but how to run it again: _CheckpointFrame of
/// torch/utils/checkpoint.py (2.9). It lives, and with it the input that `again` holds, as long as
/// a node that has saved within it.
class CheckpointFrame final : public Counted {
 public:
  explicit CheckpointFrame(std::function<void(Tape&)> again) : again_(std::move(again)) {}

  /// In forward: only a place.
  Saved save();
  /// When it runs again: in the order of forward, for those that are still there.
  /// @throws RecomputationEnds  with the last
  void refill(Value value);

 private:
  friend class Saved;
  friend class SavedPlace;

  void run_again(Tape& tape);

  std::function<void(Tape&)> again_;
  std::vector<SavedPlace*> places_;  // nullptr: its node is gone
  std::size_t next_ = 0;
  bool has_run_again_ = false;
};

}  // namespace dstune
