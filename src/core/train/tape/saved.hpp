// The values that nodes keep for backward, and how a checkpoint makes them again: torch's
// SavedVariable and torch.utils.checkpoint.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "core/train/tape/value.hpp"

namespace dstune {

class CheckpointFrame;
class Tape;

/// Thrown out of a forward that runs again, when all values are saved: _StopRecomputationError.
struct RecomputationEnds {};

/// The place of a value in a frame, empty until the frame has run again: _Holder.
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

  /// The value, for the node's backward; called once. The first call in a checkpoint runs the
  /// checkpoint's forward again. Outside of a checkpoint the value is kept until the node is gone.
  Value take(Tape& tape);

 private:
  Value value_;
  boost::intrusive_ptr<SavedPlace> place_;
};

/// A part of forward of which nothing is kept but how to run it again: _CheckpointFrame of
/// torch/utils/checkpoint.py (2.9). It lives as long as any node that has saved a value within it,
/// and with it the input that `again` holds.
class CheckpointFrame final : public Counted {
 public:
  explicit CheckpointFrame(std::function<void(Tape&)> again) : again_(std::move(again)) {}

  /// In forward: reserves a place for a value.
  Saved save();
  /// When forward runs again: fills the places in the order of forward, if their nodes are still
  /// there.
  /// @throws RecomputationEnds  when the last place is filled
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
