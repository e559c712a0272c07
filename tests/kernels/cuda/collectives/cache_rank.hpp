// What one rank of a test of the CommunicatorCache has, and the fixture.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/collectives/communicator_cache.hpp"
#include "tests/kernels/cuda/collectives/rank_gpu.hpp"

namespace dstune::cuda {

constexpr Bytes kCommunicator = Bytes{600} << 20U;  // a GPU has no room for two

/// A group of threads under other names, each on a host of its own.
class Renamed final : public Group {
 public:
  Renamed(test::ThreadTeam& team, int rank, std::vector<int> members)
      : group_(team, rank), members_(std::move(members)) {}

  int rank() const override { return group_.rank(); }
  int size() const override { return group_.size(); }
  std::vector<int> members() const override { return members_; }
  void broadcast(std::span<std::byte> data, int root) override { group_.broadcast(data, root); }
  bool vote(bool ok) override { return group_.vote(ok); }
  std::vector<std::string> gather(const std::string& text) override {
    return group_.gather(text + std::to_string(group_.rank()));
  }
  void poll() override { group_.poll(); }

 private:
  test::ThreadGroup group_;
  std::vector<int> members_;
};

/// What one rank of a test has.
struct Rank {
  Rank(int number, test::ThreadTeam& ranks, const CommunicatorLimits& limits)
      : team(ranks), group(ranks, number), own(number), cache(limits, NcclLog()) {
    own.device.on_tick([this] { group.poll(); });
  }

  /// An all-reduce of ones over `collectives`.
  double sum(Collectives& collectives) {
    const Buffer one = make_buffer(own.device, MemoryCategory::temporaries, 1, DType::fp32);
    const Tensor tensor = one.tensor(DType::fp32);
    own.device.write(std::vector<float>{1}, tensor);
    own.device.host_wait(collectives.all_reduce(tensor, ReduceOp::sum, Purpose::other));
    float result = 0;
    own.device.read(tensor, {&result, 1});
    return result;
  }
  /// That of one experiment of `members`.
  double experiment(Group& members) { return sum(*cache.collectives(members, own.device)); }
  double experiment() { return experiment(group); }
  /// Nobody goes on before all are here.
  void meet() { group.vote(true); }

  test::ThreadTeam& team;
  test::ThreadGroup group;
  RankGpu own;
  CommunicatorCache cache;
};

class CommunicatorCacheTest : public OnHostTest {
 protected:
  static void on_ranks(int size, const std::function<void(Rank& rank)>& body,
                       const CommunicatorLimits& limits = {}) {
    test::run_on_ranks(size, [&](int number, test::ThreadTeam& team) {
      Rank rank(number, team, limits);
      body(rank);
    });
  }
};

}  // namespace dstune::cuda
