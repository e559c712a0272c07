#include "core/train/tape/saved.hpp"

#include "core/train/tape/tape.hpp"

namespace dstune {

void Counted::destroy(Counted* object) noexcept { delete object; }

SavedPlace::SavedPlace(boost::intrusive_ptr<CheckpointFrame> frame, std::size_t index)
    : frame_(std::move(frame)), index_(index) {}

SavedPlace::~SavedPlace() { frame_->places_[index_] = nullptr; }

Value Saved::take(Tape& tape) {
  if (!place_) return value_;
  if (!place_->frame_->has_run_again_) place_->frame_->run_again(tape);
  Value value = std::move(place_->value_);
  place_.reset();
  return value;
}

Saved CheckpointFrame::save() {
  boost::intrusive_ptr<SavedPlace> place(new SavedPlace(this, places_.size()));
  places_.push_back(place.get());
  return Saved(std::move(place));
}

void CheckpointFrame::refill(Value value) {
  if (SavedPlace* place = places_[next_]) place->value_ = std::move(value);
  if (++next_ == places_.size()) throw RecomputationEnds();
}

// A forward that ends early is left as it is: DeepSpeed's hook behind the module's forward does not
// run, nor do those of the modules around it, whose backward is under way.
void CheckpointFrame::run_again(Tape& tape) {
  has_run_again_ = true;
  Tape again(tape.context(), tape.hooks(), *this);
  try {
    again_(again);
  } catch (const RecomputationEnds&) {
  }
}

}  // namespace dstune
