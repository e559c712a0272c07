// An experiment's ranks as threads of one process: Group and Collectives without MPI, for tests.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/device/collectives.hpp"
#include "core/device/group.hpp"

namespace dstune::test {

/// What the threads of one group share. abort() makes every call of every member throw.
class ThreadTeam {
 public:
  explicit ThreadTeam(int size);

  int size() const { return size_; }

  /// Publishes `own` and waits until everybody has. Then either everybody may read of() until
  /// its own part(), or everybody throws.
  /// @throws ExperimentAborted  after abort()
  void meet(int rank, const void* own);
  const void* of(int rank) const { return published_[static_cast<std::size_t>(rank)]; }
  /// Ends what meet() began, without throwing: waits until nobody reads any more. Between the two
  /// no rank may throw.
  void part() noexcept;
  /// Ends this team's meetings, now and later, and those of its parts.
  void abort();
  bool is_aborted();

  /// The team of some of the ranks: the same for the same list.
  ThreadTeam& part_of(const std::vector<int>& ranks);

 private:
  /// Waits for everybody. False: somebody gave up first.
  bool wait_for_all(std::unique_lock<std::mutex>& lock, bool even_if_aborted);

  int size_;
  std::mutex mutex_;
  std::condition_variable arrival_;
  std::vector<const void*> published_;
  int arrived_ = 0;
  unsigned long round_ = 0;
  bool aborted_ = false;
  std::map<std::vector<int>, std::unique_ptr<ThreadTeam>> parts_;
};

class ThreadGroup final : public Group {
 public:
  ThreadGroup(ThreadTeam& team, int rank) : team_(team), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return team_.size(); }
  void broadcast(std::span<std::byte> data, int root) override;
  bool vote(bool ok) override;
  std::vector<std::string> gather(const std::string& text) override;
  void poll() override {
    ++polls;
    if (team_.is_aborted()) throw ExperimentAborted("aborted");
  }

  int polls = 0;

 private:
  ThreadTeam& team_;
  int rank_;
};

/// Host tensors (a CpuDevice's), summed in the order of ranks. 16-bit sums round once per addition.
class ThreadCollectives final : public Collectives {
 public:
  ThreadCollectives(Device& device, ThreadTeam& team, int rank)
      : Collectives(device, rank, team.size()), team_(team) {}

 private:
  void do_all_reduce(Tensor inout, ReduceOp op) override;
  void do_reduce(Tensor inout, ReduceOp op, int root) override;
  void do_reduce_scatter(Tensor in, Tensor out, ReduceOp op) override;
  void do_all_gather(Tensor in, Tensor out) override;
  void do_broadcast(Tensor inout, int root) override;
  void do_all_to_all(Tensor in, Tensor out) override;
  std::unique_ptr<Collectives> do_sub_group(const std::vector<int>& ranks, int own) override;

  std::vector<double> combine(Tensor own, std::int64_t offset, std::int64_t count, ReduceOp op);

  ThreadTeam& team_;
};

/// Runs `body` once per rank, each in a thread, and waits for all. If one throws, the others'
/// calls throw ExperimentAborted, and the first real exception is rethrown here. All ranks must
/// make the same calls.
void run_on_ranks(int size, const std::function<void(int rank, ThreadTeam& team)>& body);

}  // namespace dstune::test
