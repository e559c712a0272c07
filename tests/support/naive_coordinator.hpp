// The rules of docs/deepspeed-step.md, "Gathers of stage 3", a second time, with sums over the
// whole trace instead of running state: what ParameterCoordinator is held to.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "core/train/zero/gather/parameter_coordinator.hpp"

namespace dstune::test {

class NaiveCoordinator {
 public:
  using Tensors = std::vector<std::size_t>;
  using Pass = ParameterCoordinator::Pass;
  struct Fetch : ParameterCoordinator::Fetch {
    Tensors prefetch;
  };

  NaiveCoordinator(ParameterCoordinator::Model model, ParameterCoordinator::Rules rules)
      : model_(std::move(model)), rules_(rules) {}

  void begin_forward() {
    ++micro_step_;
    now_ = -1;
    balance_ = 0;
    queue_.clear();
    passed_.clear();
    if (!follows()) return;
    elements_before_ = {0};
    for (std::size_t step = 0; step < record_.size(); ++step) {
      std::int64_t numel = 0;
      for (const std::size_t tensor : model_.used_tensors[record_[step]]) {
        queue_.emplace(static_cast<std::int64_t>(step), tensor);
        numel += model_.numels[tensor];
      }
      elements_before_.push_back(elements_before_.back() + numel);
    }
  }

  Fetch fetch(std::size_t module, Pass pass = Pass::forward) {
    ++now_;
    if (micro_step_ == 1) record_.push_back(module);
    const Tensors& used = model_.used_tensors[module];
    Fetch result;
    result.await = used;
    for (const std::size_t tensor : used) {
      if (gather(tensor)) result.gather.push_back(tensor);
      running_[tensor].insert(module);
    }
    unreleased_.push_back(module);
    note(module, pass);
    if (!follows()) return result;
    while (!queue_.empty() && queue_.begin()->first <= now_) queue_.erase(queue_.begin());
    result.prefetch = prefetch();
    return result;
  }

  Tensors release(std::size_t module, Pass pass = Pass::forward) {
    unreleased_.erase(std::remove(unreleased_.begin(), unreleased_.end(), module),
                      unreleased_.end());
    const Tensors& own = model_.used_tensors[module];
    const std::set<std::size_t> again =
        pass == Pass::backward ? take_again(module) : std::set<std::size_t>();
    std::set<std::size_t> all(own.begin(), own.end());
    all.insert(again.begin(), again.end());
    Tensors released;
    for (const std::size_t tensor : all) {
      running_[tensor].erase(module);
      const bool is_own = std::count(own.begin(), own.end(), tensor) > 0;
      const bool goes = (is_own && !(follows() && keeps(module, tensor))) ||
                        (again.count(tensor) > 0 && !model_.persistent[tensor]);
      if (!goes || !running_[tensor].empty() || there_.count(tensor) == 0) continue;
      there_.erase(tensor);
      balance_ -= model_.numels[tensor];
      released.push_back(tensor);
    }
    return released;
  }

  Tensors release_leftovers() {
    std::set<std::size_t> all;
    while (!unreleased_.empty()) {
      const Tensors more = release(unreleased_.back(), Pass::backward);
      all.insert(more.begin(), more.end());
    }
    return {all.begin(), all.end()};
  }

  Tensors release_all() {
    Tensors all(there_.begin(), there_.end());
    there_.clear();
    running_.clear();
    unreleased_.clear();
    backwards_.clear();
    again_.clear();
    return all;
  }

  void regathered(const Tensors& tensors) { there_.insert(tensors.begin(), tensors.end()); }

 private:
  bool follows() const { return micro_step_ > 1; }

  bool gather(std::size_t tensor) {
    if (!there_.insert(tensor).second) return false;
    balance_ += model_.numels[tensor];
    return true;
  }

  // What a forward uses of frozen tensors within a backward is its module's to release.
  void note(std::size_t module, Pass pass) {
    const auto known = std::find(backwards_.begin(), backwards_.end(), module);
    if (pass == Pass::backward && known == backwards_.end()) backwards_.push_back(module);
    if (pass == Pass::backward || backwards_.empty() || !rules_.drops_recomputed) return;
    for (const std::size_t tensor : model_.used_tensors[module]) {
      if (!model_.frozen[tensor]) continue;
      again_.emplace(backwards_.back(), tensor);
      running_[tensor].insert(backwards_.back());
    }
  }

  std::set<std::size_t> take_again(std::size_t module) {
    backwards_.erase(std::remove(backwards_.begin(), backwards_.end(), module), backwards_.end());
    std::set<std::size_t> taken;
    const auto begin = again_.lower_bound({module, 0});
    const auto end = again_.lower_bound({module + 1, 0});
    for (auto pair = begin; pair != end; ++pair) taken.insert(pair->second);
    again_.erase(begin, end);
    return taken;
  }

  Tensors prefetch() {
    std::set<std::size_t> chosen;
    std::int64_t numel = 0;
    const std::int64_t room = rules_.max_live - balance_;
    if (rules_.prefetch_bucket == 0) return {};
    while (!queue_.empty() && numel < room && numel < rules_.prefetch_bucket) {
      const auto [step, tensor] = *queue_.begin();
      queue_.erase(queue_.begin());
      passed_[tensor] = step;
      if (there_.count(tensor) > 0 || !chosen.insert(tensor).second) continue;
      numel += model_.numels[tensor];
    }
    for (const std::size_t tensor : chosen) gather(tensor);
    return {chosen.begin(), chosen.end()};
  }

  // The first answer for a module at a step holds for ever.
  bool keeps(std::size_t module, std::size_t tensor) {
    const auto key = std::pair(std::pair(module, now_), tensor);
    const auto [answer, is_new] = answers_.try_emplace(key, false);
    if (is_new) answer->second = model_.persistent[tensor] || is_used_soon(tensor);
    return answer->second;
  }

  // A prefetch that passed the use by the very next module does not keep a tensor: DeepSpeed counts
  // from the step after this one.
  bool is_used_soon(std::size_t tensor) const {
    const auto passed = passed_.find(tensor);
    if (passed != passed_.end() && passed->second > now_ + 1) return true;
    const auto next = static_cast<std::size_t>(now_) + 1;
    for (std::size_t step = next; step < record_.size(); ++step) {
      if (elements_before_[step] - elements_before_[next] >= rules_.max_reuse_distance) break;
      const Tensors& used = model_.used_tensors[record_[step]];
      if (std::count(used.begin(), used.end(), tensor) > 0) return true;
    }
    return false;
  }

  ParameterCoordinator::Model model_;
  ParameterCoordinator::Rules rules_;
  int micro_step_ = 0;
  std::int64_t now_ = -1;     // step of the last module that was fetched
  std::int64_t balance_ = 0;  // elements gathered minus released since begin_forward()
  std::vector<std::size_t> record_;
  std::vector<std::int64_t> elements_before_;             // by step
  std::set<std::pair<std::int64_t, std::size_t>> queue_;  // step and tensor of uses to come
  std::map<std::size_t, std::int64_t> passed_;  // by tensor: the last use a prefetch has passed
  std::set<std::size_t> there_;
  std::map<std::size_t, std::set<std::size_t>> running_;
  std::vector<std::size_t> unreleased_;
  std::vector<std::size_t> backwards_;                   // modules, in the order of their begin
  std::set<std::pair<std::size_t, std::size_t>> again_;  // module of a backward and tensor
  std::map<std::pair<std::pair<std::size_t, std::int64_t>, std::size_t>, bool> answers_;
};

}  // namespace dstune::test
