#include "core/train/zero/gather/parameter_coordinator.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace dstune {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();

bool contains(const std::vector<std::size_t>& list, std::size_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

void erase(std::vector<std::size_t>& list, std::size_t value) {
  list.erase(std::remove(list.begin(), list.end(), value), list.end());
}

}  // namespace

ParameterCoordinator::ParameterCoordinator(Model model, Rules rules)
    : model_(std::move(model)),
      rules_(rules),
      available_(model_.numels.size(), false),
      on_their_way_(model_.numels.size(), false),
      users_(model_.numels.size()),
      steps_of_(model_.numels.size()),
      fetched_for_(model_.numels.size(), kNever) {}

// The count of available elements starts anew although persistent tensors are there, since these do
// not count against the limit of what is gathered ahead.
void ParameterCoordinator::begin_forward() {
  if (mode_ == Mode::invalid) {
    mode_ = Mode::record;
  } else if (mode_ == Mode::record) {
    complete_record();
  }
  next_use_ = 0;
  step_ = 0;
  available_numel_ = 0;
  std::fill(fetched_for_.begin(), fetched_for_.end(), kNever);
}

void ParameterCoordinator::complete_record() {
  std::int64_t passed = 0;
  passed_.push_back(passed);
  for (std::size_t step = 0; step < order_.size(); ++step) {
    for (const std::size_t tensor : model_.used_tensors[order_[step]]) {
      uses_.push_back({tensor, static_cast<std::int64_t>(step)});
      steps_of_[tensor].push_back(static_cast<std::int64_t>(step));
      passed += model_.numels[tensor];
    }
    passed_.push_back(passed);
  }
  mode_ = Mode::complete;
}

ParameterCoordinator::Fetch ParameterCoordinator::fetch(std::size_t module, Pass pass) {
  if (mode_ == Mode::record) order_.push_back(module);
  const auto place = static_cast<std::size_t>(step_);
  if (place >= order_.size() || order_[place] != module) {
    throw std::logic_error("ParameterCoordinator: modules run in another order than recorded");
  }
  Fetch result;
  result.await = model_.used_tensors[module];
  result.gather = take_missing(result.await);
  mark_awaited(result.await);
  for (const std::size_t tensor : result.await) {
    if (!contains(users_[tensor], module)) users_[tensor].push_back(module);
  }
  open_.push_back(module);
  if (pass == Pass::forward) {
    note_recomputed(result.await);
  } else if (!contains(in_backward_, module)) {
    in_backward_.push_back(module);
  }
  if (mode_ == Mode::complete) skip_uses_of(module);
  ++step_;
  return result;
}

ParameterCoordinator::Tensors ParameterCoordinator::take_missing(const Tensors& tensors) {
  Tensors missing;
  for (const std::size_t tensor : tensors) {
    if (!available_[tensor]) missing.push_back(tensor);
  }
  mark_gathered(missing);
  return missing;
}

void ParameterCoordinator::mark_gathered(const Tensors& tensors) {
  for (const std::size_t tensor : tensors) {
    available_[tensor] = true;
    available_numel_ += model_.numels[tensor];
    live_ += model_.numels[tensor];
    on_their_way_[tensor] = true;
    on_their_way_numel_ += model_.numels[tensor];
  }
}

void ParameterCoordinator::mark_awaited(const Tensors& tensors) {
  for (const std::size_t tensor : tensors) {
    if (!on_their_way_[tensor]) continue;
    on_their_way_[tensor] = false;
    on_their_way_numel_ -= model_.numels[tensor];
  }
}

// A forward while some module's backward runs is a checkpoint's second one, and that module runs
// with what it uses.
void ParameterCoordinator::note_recomputed(const Tensors& tensors) {
  if (!rules_.drops_recomputed || in_backward_.empty() || model_.frozen.empty()) return;
  const std::size_t owner = in_backward_.back();
  Tensors& noted = recomputed_[owner];
  for (const std::size_t tensor : tensors) {
    if (!model_.frozen[tensor]) continue;
    if (!contains(noted, tensor)) noted.push_back(tensor);
    if (!contains(users_[tensor], owner)) users_[tensor].push_back(owner);
  }
}

ParameterCoordinator::Tensors ParameterCoordinator::take_recomputed(std::size_t module) {
  erase(in_backward_, module);
  const auto noted = recomputed_.find(module);
  if (noted == recomputed_.end()) return {};
  Tensors tensors = std::move(noted->second);
  recomputed_.erase(noted);
  return tensors;
}

// Removes a module's uses from the queue; those that an earlier prefetch has passed are no longer
// in it.
void ParameterCoordinator::skip_uses_of(std::size_t module) {
  Tensors expected;
  for (const std::size_t tensor : model_.used_tensors[module]) {
    if (fetched_for_[tensor] < step_) expected.push_back(tensor);
  }
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (next_use_ == uses_.size() || !contains(expected, uses_[next_use_].tensor)) {
      throw std::logic_error("ParameterCoordinator: the queue is not what the module uses");
    }
    fetched_for_[uses_[next_use_].tensor] = uses_[next_use_].step;
    ++next_use_;
  }
}

ParameterCoordinator::Tensors ParameterCoordinator::prefetch() {
  Tensors chosen;
  if (mode_ != Mode::complete || rules_.prefetch_bucket == 0) return chosen;
  const std::int64_t limit = std::min(rules_.max_live - available_numel_, rules_.prefetch_bucket);
  std::int64_t numel = 0;
  while (next_use_ < uses_.size() && numel < limit) {
    const Use use = uses_[next_use_];
    if (on_drive_ != nullptr && on_drive_->is_away(use.tensor)) break;
    ++next_use_;
    fetched_for_[use.tensor] = std::max(fetched_for_[use.tensor], use.step);
    if (available_[use.tensor] || contains(chosen, use.tensor)) continue;
    chosen.push_back(use.tensor);
    numel += model_.numels[use.tensor];
  }
  std::sort(chosen.begin(), chosen.end());
  mark_gathered(chosen);
  return chosen;
}

// As many elements are looked at as twice those on their way, and one tensor more.
ParameterCoordinator::Tensors ParameterCoordinator::read_ahead() const {
  Tensors chosen;
  if (on_drive_ == nullptr || mode_ != Mode::complete || rules_.prefetch_bucket == 0) return chosen;
  std::int64_t numel = 0;
  for (std::size_t use = next_use_; use < uses_.size(); ++use) {
    if (numel > 2 * on_their_way_numel_ || chosen.size() >= on_drive_->free_buffers()) break;
    const std::size_t tensor = uses_[use].tensor;
    if (on_drive_->is_away(tensor)) chosen.push_back(tensor);
    numel += model_.numels[tensor];
  }
  return chosen;
}

ParameterCoordinator::Tensors ParameterCoordinator::release(std::size_t module, Pass pass) {
  const Tensors& used = model_.used_tensors[module];
  const Tensors& candidates = mode_ == Mode::complete ? release_candidates(module) : used;
  const Tensors recomputed = pass == Pass::backward ? take_recomputed(module) : Tensors{};
  Tensors released;
  const auto leave = [&](std::size_t tensor, bool may_go) {
    erase(users_[tensor], module);
    if (!may_go || !available_[tensor] || !users_[tensor].empty()) return;
    available_[tensor] = false;
    available_numel_ -= model_.numels[tensor];
    live_ -= model_.numels[tensor];
    released.push_back(tensor);
  };
  for (const std::size_t tensor : recomputed) leave(tensor, !model_.persistent[tensor]);
  for (const std::size_t tensor : used) leave(tensor, contains(candidates, tensor));
  if (!recomputed.empty()) std::sort(released.begin(), released.end());
  erase(open_, module);
  return released;
}

// DeepSpeed remembers its first decision for a module at a step for ever, whatever the prefetcher
// does later.
const ParameterCoordinator::Tensors& ParameterCoordinator::release_candidates(std::size_t module) {
  const auto key = std::pair(module, step_);
  const auto known = decided_.find(key);
  if (known != decided_.end()) return known->second;
  return decided_.emplace(key, find_release_candidates(module)).first->second;
}

ParameterCoordinator::Tensors ParameterCoordinator::find_release_candidates(
    std::size_t module) const {
  Tensors candidates;
  for (const std::size_t tensor : model_.used_tensors[module]) {
    const bool may_go = !model_.persistent[tensor] && fetched_for_[tensor] <= step_;
    if (may_go && !is_used_soon(tensor)) candidates.push_back(tensor);
  }
  return candidates;
}

// DeepSpeed goes through the coming steps until what they use adds up to the distance.
bool ParameterCoordinator::is_used_soon(std::size_t tensor) const {
  const std::vector<std::int64_t>& steps = steps_of_[tensor];
  const auto next = std::lower_bound(steps.begin(), steps.end(), step_);
  if (next == steps.end()) return false;
  const auto passed_before = [&](std::int64_t step) {
    return passed_[static_cast<std::size_t>(step)];
  };
  return passed_before(*next) - passed_before(step_) < rules_.max_reuse_distance;
}

ParameterCoordinator::Tensors ParameterCoordinator::release_leftovers() {
  Tensors released;
  while (!open_.empty()) {
    const Tensors more = release(open_.back(), Pass::backward);
    released.insert(released.end(), more.begin(), more.end());
  }
  std::sort(released.begin(), released.end());
  return released;
}

ParameterCoordinator::Tensors ParameterCoordinator::release_all() {
  Tensors released;
  std::fill(on_their_way_.begin(), on_their_way_.end(), false);
  on_their_way_numel_ = 0;
  for (std::size_t tensor = 0; tensor < available_.size(); ++tensor) {
    users_[tensor].clear();
    if (!available_[tensor]) continue;
    available_[tensor] = false;
    released.push_back(tensor);
  }
  open_.clear();
  in_backward_.clear();
  recomputed_.clear();
  available_numel_ = 0;
  live_ = 0;
  return released;
}

void ParameterCoordinator::regathered(const Tensors& tensors) {
  for (const std::size_t tensor : tensors) {
    if (available_[tensor]) continue;
    available_[tensor] = true;
    live_ += model_.numels[tensor];
  }
}

ParameterCoordinator::Tensors ParameterCoordinator::persistent_tensors() const {
  Tensors tensors;
  for (std::size_t tensor = 0; tensor < model_.persistent.size(); ++tensor) {
    if (model_.persistent[tensor]) tensors.push_back(tensor);
  }
  return tensors;
}

}  // namespace dstune
