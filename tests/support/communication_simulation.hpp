// What one optimizer step communicates by docs/deepspeed-step.md, "Buckets" to "What is sent",
// element by element and without the engines' code: what they are held to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "core/device/collectives.hpp"
#include "core/experiment/step_config.hpp"
#include "core/model/model_parameters.hpp"
#include "tests/oracle/hook_trace.hpp"
#include "tests/support/collective_counts.hpp"
#include "tests/support/naive_coordinator.hpp"
#include "tests/support/tiny_experiment.hpp"

namespace dstune::test {

class CommunicationSimulation {
 public:
  /// @param rank  matters for MiCS: who has only padding of a tensor does not average it
  explicit CommunicationSimulation(const TinyExperiment& tiny, std::int64_t rank = 0);

  CollectiveCounts counts();

  /// Sent by one rank in what counts() counted; without quantised messages.
  double sent_bytes() const;

 private:
  using Order = std::vector<std::size_t>;

  std::int64_t padded(std::size_t tensor) const {
    return (numels_[tensor] + ranks_ - 1) / ranks_ * ranks_;
  }

  std::int64_t padded(const Order& tensors) const {
    std::int64_t sum = 0;
    for (const std::size_t tensor : tensors) sum += padded(tensor);
    return sum;
  }

  /// @param ranks  of the group; 0: those that share one copy of the model
  void note(CollectiveKind kind, std::int64_t elements, Bytes each, std::int64_t ranks = 0);
  void call(CollectiveKind kind, std::int64_t elements, std::int64_t ranks = 0);
  void send(CollectiveKind kind, std::int64_t elements);
  Order backward_order() const;
  std::vector<Order> groups() const;
  std::vector<Order> buckets(const Order& order) const;

  void count_stage_0();
  void count_bf16_optimizer();
  void count_stages_1_and_2();
  Order dealt(const Order& group) const;
  void lay_out();
  void average(const Order& bucket);

  void count_stage_3();
  NaiveCoordinator make_coordinator() const;
  void gather_step(NaiveCoordinator& coordinator);
  void keep_secondary(const Order& released);
  void follow(NaiveCoordinator& coordinator, const oracle::HookEvent& event);
  void gather(const Order& tensors);
  void gather_at_once(const Order& tensors, bool may_sum, std::int64_t ranks);
  void average_over_replicas(const Order& bucket);
  void reduce(const Order& bucket);

  StepConfig config_;
  std::size_t layers_;
  std::int64_t ranks_;               // that share one copy of the model
  std::int64_t replicas_;            // of it
  std::int64_t place_ = 0;           // of this rank in its copy
  std::set<std::size_t> secondary_;  // hpZ: tensors with a secondary shard
  std::vector<std::int64_t> numels_;
  std::vector<ModuleSpec> modules_;
  std::vector<bool> decays_;
  std::vector<Shape> shapes_;
  std::vector<std::int64_t> lengths_;              // padded, by group
  std::vector<std::vector<std::int64_t>> owners_;  // by tensor and element
  CollectiveCounts counts_{};
  double wire_bytes_ = 0;
};

}  // namespace dstune::test
