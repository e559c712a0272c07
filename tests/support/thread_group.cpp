#include "tests/support/thread_group.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <thread>
#include <type_traits>

namespace dstune::test {
namespace {

template <class T>
void load(const void* data, std::int64_t offset, std::vector<double>& out) {
  const T* values = static_cast<const T*>(data) + offset;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if constexpr (std::is_arithmetic_v<T>) {
      out[i] = static_cast<double>(values[i]);
    } else {
      out[i] = to_float(values[i]);
    }
  }
}

template <class T>
void store(const std::vector<double>& in, void* data) {
  T* values = static_cast<T*>(data);
  for (std::size_t i = 0; i < in.size(); ++i) {
    if constexpr (std::is_arithmetic_v<T>) {
      values[i] = static_cast<T>(in[i]);
    } else {
      values[i] = from_float<T>(static_cast<float>(in[i]));
    }
  }
}

void load(const void* data, DType dtype, std::int64_t offset, std::vector<double>& out) {
  if (dtype == DType::fp32) load<float>(data, offset, out);
  if (dtype == DType::bf16) load<BFloat16>(data, offset, out);
  if (dtype == DType::fp16) load<Float16>(data, offset, out);
  if (dtype == DType::int8) load<std::int8_t>(data, offset, out);
  if (dtype == DType::uint8) load<std::uint8_t>(data, offset, out);
  if (dtype == DType::fp64) load<double>(data, offset, out);
}

void store(const std::vector<double>& in, Tensor out) {
  if (out.dtype == DType::fp32) store<float>(in, out.data);
  if (out.dtype == DType::bf16) store<BFloat16>(in, out.data);
  if (out.dtype == DType::fp16) store<Float16>(in, out.data);
  if (out.dtype == DType::int8) store<std::int8_t>(in, out.data);
  if (out.dtype == DType::uint8) store<std::uint8_t>(in, out.data);
  if (out.dtype == DType::fp64) store<double>(in, out.data);
}

double rounded(double value, DType dtype) {
  const auto single = static_cast<float>(value);
  if (dtype == DType::bf16) return to_float(from_float<BFloat16>(single));
  if (dtype == DType::fp16) return to_float(from_float<Float16>(single));
  return dtype == DType::fp64 ? value : single;
}

}  // namespace

ThreadTeam::ThreadTeam(int size) : size_(size), published_(static_cast<std::size_t>(size)) {}

bool ThreadTeam::wait_for_all(std::unique_lock<std::mutex>& lock, bool even_if_aborted) {
  const unsigned long round = round_;
  if (++arrived_ == size_) {
    arrived_ = 0;
    ++round_;
    arrival_.notify_all();
    return true;
  }
  arrival_.wait(lock, [&] { return round_ != round || (aborted_ && !even_if_aborted); });
  return round_ != round;
}

void ThreadTeam::meet(int rank, const void* own) {
  std::unique_lock lock(mutex_);
  if (aborted_) throw ExperimentAborted("aborted");
  published_[static_cast<std::size_t>(rank)] = own;
  if (!wait_for_all(lock, false)) throw ExperimentAborted("aborted");
}

// A rank that left early would free what others still read.
void ThreadTeam::part() noexcept {
  std::unique_lock lock(mutex_);
  wait_for_all(lock, true);
}

void ThreadTeam::abort() {
  const std::lock_guard lock(mutex_);
  aborted_ = true;
  arrival_.notify_all();
  for (const auto& [ranks, team] : parts_) team->abort();
}

bool ThreadTeam::is_aborted() {
  const std::lock_guard lock(mutex_);
  return aborted_;
}

ThreadTeam& ThreadTeam::part_of(const std::vector<int>& ranks) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<ThreadTeam>& team = parts_[ranks];
  if (!team) {
    team = std::make_unique<ThreadTeam>(static_cast<int>(ranks.size()));
    if (aborted_) team->abort();
  }
  return *team;
}

void ThreadGroup::broadcast(std::span<std::byte> data, int root) {
  team_.meet(rank_, data.data());
  if (rank_ != root) std::memcpy(data.data(), team_.of(root), data.size());
  team_.part();
}

bool ThreadGroup::vote(bool ok) {
  team_.meet(rank_, &ok);
  bool all = true;
  for (int rank = 0; rank < size(); ++rank) all = *static_cast<const bool*>(team_.of(rank)) && all;
  team_.part();
  return all;
}

std::vector<std::string> ThreadGroup::gather(const std::string& text) {
  std::vector<std::string> texts(rank_ == 0 ? static_cast<std::size_t>(size()) : 0);
  team_.meet(rank_, &text);
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    texts[rank] = *static_cast<const std::string*>(team_.of(static_cast<int>(rank)));
  }
  team_.part();
  return texts;
}

std::vector<double> ThreadCollectives::combine(Tensor own, std::int64_t offset, std::int64_t count,
                                               ReduceOp op) {
  std::vector<double> result(static_cast<std::size_t>(count));
  std::vector<double> other(result.size());
  team_.meet(rank(), own.data);
  load(team_.of(0), own.dtype, offset, result);
  for (int next = 1; next < size(); ++next) {
    load(team_.of(next), own.dtype, offset, other);
    for (std::size_t i = 0; i < result.size(); ++i) {
      result[i] = op == ReduceOp::max ? std::max(result[i], other[i])
                                      : rounded(result[i] + other[i], own.dtype);
    }
  }
  team_.part();
  return result;
}

void ThreadCollectives::do_all_reduce(Tensor inout, ReduceOp op) {
  store(combine(inout, 0, inout.numel, op), inout);
}

void ThreadCollectives::do_reduce(Tensor inout, ReduceOp op, int root) {
  const auto result = combine(inout, 0, inout.numel, op);
  if (rank() == root) store(result, inout);
}

void ThreadCollectives::do_reduce_scatter(Tensor in, Tensor out, ReduceOp op) {
  store(combine(in, rank() * out.numel, out.numel, op), out);
}

void ThreadCollectives::do_all_gather(Tensor in, Tensor out) {
  const std::vector<std::byte> own(static_cast<const std::byte*>(in.data),
                                   static_cast<const std::byte*>(in.data) + in.size());
  team_.meet(rank(), own.data());
  for (int next = 0; next < size(); ++next) {
    const auto* const theirs = static_cast<const std::byte*>(team_.of(next));
    std::copy_n(theirs, own.size(),
                static_cast<std::byte*>(out.slice(next * in.numel, in.numel).data));
  }
  team_.part();
}

void ThreadCollectives::do_broadcast(Tensor inout, int root) {
  team_.meet(rank(), inout.data);
  if (rank() != root) std::memcpy(inout.data, team_.of(root), inout.size());
  team_.part();
}

void ThreadCollectives::do_all_to_all(Tensor in, Tensor out) {
  const std::int64_t length = in.numel / size();
  if (length == 0) return;
  team_.meet(rank(), in.data);
  for (int from = 0; from < size(); ++from) {
    Tensor theirs = in;
    theirs.data = const_cast<void*>(team_.of(from));  // NOLINT(*-const-cast): only read
    const Tensor part = theirs.slice(rank() * length, length);
    std::memcpy(out.slice(from * length, length).data, part.data, part.size());
  }
  team_.part();
}

std::unique_ptr<Collectives> ThreadCollectives::do_sub_group(const std::vector<int>& ranks,
                                                             int own) {
  return std::make_unique<ThreadCollectives>(device(), team_.part_of(ranks), own);
}

void run_on_ranks(int size, const std::function<void(int rank, ThreadTeam& team)>& body) {
  ThreadTeam team(size);
  std::mutex mutex;
  std::exception_ptr first;
  std::exception_ptr aborted;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body(rank, team);
      } catch (const ExperimentAborted&) {
        const std::lock_guard lock(mutex);
        aborted = std::current_exception();
        team.abort();
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!first) first = std::current_exception();
        team.abort();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
  if (aborted) std::rethrow_exception(aborted);
}

}  // namespace dstune::test
