// How near the passes over host memory come to it: DeepSpeed's optimizers for the CPU, torch's
// unscale and cast, against a copy by the same threads.
//
// usage: bench_host_passes                    a table for 1, 2, 4 ... threads, up to the cores
//        bench_host_passes ELEMENTS THREADS   an Adam pass for each line of standard input, which
//        is
//                                             answered by the seconds that it took:
//                                             bench/host_adam_beside_deepspeed.py has DeepSpeed's
//                                             own in between
// Arrays are of 4 times the last cache, but at most 256 MiB. Exit code 2: it cannot run.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <iostream>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "core/base/host/this_host.hpp"
#include "core/base/statistics.hpp"
#include "core/base/units.hpp"
#include "kernels/host/loops.hpp"
#include "kernels/host/passes.hpp"
#include "kernels/host/threads.hpp"

namespace dstune::bench {
namespace {

constexpr Bytes kMostBytes = Bytes{256} << 20U;

std::int64_t elements_beyond_caches() {
  const Bytes cache = last_level_cache();
  const Bytes size = cache == 0 ? kMostBytes : std::min(kMostBytes, 4 * cache);
  return static_cast<std::int64_t>(size / sizeof(float));
}

struct AlignedDelete {
  void operator()(float* array) const { ::operator delete[](array, kAlignment); }
  static constexpr std::align_val_t kAlignment{64};  // torch's, and a cache line
};

/// Four arrays in host memory, in which no pass makes a number denormal or infinite.
class Arrays {
 public:
  Arrays(host::Threads& threads, std::int64_t count) : count_(count) {
    for (auto& array : arrays_) {
      array.reset(new (AlignedDelete::kAlignment) float[static_cast<std::size_t>(count)]);
      compute(threads, FillConstant{{array.get(), count, DType::fp32}, 0.01});
    }
  }

  Tensor gradient(DType dtype = DType::fp32) const { return {arrays_[0].get(), count_, dtype}; }
  Tensor parameter(DType dtype = DType::fp32) const { return {arrays_[1].get(), count_, dtype}; }
  Adam adam() const {
    return {.step = {.weight_decay = 0.01},
            .gradient = gradient(),
            .parameter = parameter(),
            .exp_avg = {arrays_[2].get(), count_, DType::fp32},
            .exp_avg_sq = {arrays_[3].get(), count_, DType::fp32}};
  }
  Lion lion() const {
    return {
        .step = {}, .gradient = gradient(), .parameter = parameter(), .exp_avg = adam().exp_avg};
  }
  Adagrad adagrad() const {
    return {.step = {},
            .gradient = gradient(),
            .parameter = parameter(),
            .sum = adam().exp_avg_sq,
            .numerator = {},
            .root = {}};
  }

 private:
  std::int64_t count_;
  std::unique_ptr<float[], AlignedDelete> arrays_[4];
};

Seconds time_of(const std::function<void()>& run) {
  const auto begin = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// A pass: what it does, and the bytes that it reads and writes for an element.
struct TimedPass {
  std::string name;
  double bytes;
  std::function<void()> run;
};

/// out = in by a loop: memcpy() may take other instructions, which spare the cache what it writes.
void copy_by_loop(host::Threads& threads, Tensor in, Tensor out) {
  const auto* const from = static_cast<const float*>(in.data);
  auto* const to = static_cast<float*>(out.data);
  threads.for_ranges(in.numel, [=](std::int64_t begin, std::int64_t end) {
    host::loop(host::widest_instruction_set(), begin, end,
               [=](std::int64_t i) { to[i] = from[i]; });
  });
}

std::vector<TimedPass> passes(host::Threads& threads, const Arrays& arrays) {
  const auto timed = [&threads](std::string name, double bytes, const auto& operation) {
    return TimedPass{std::move(name), bytes,
                     [operation, &threads] { compute(threads, operation); }};
  };
  const Tensor a = arrays.gradient();
  const Tensor b = arrays.parameter();
  return {
      timed("copy", 8, Copy{a, b}),
      {"copy by a plain loop", 8, [=, &threads] { copy_by_loop(threads, a, b); }},
      timed("adam", 28, arrays.adam()),
      timed("lion", 20, arrays.lion()),
      timed("adagrad", 20, arrays.adagrad()),
      timed("unscale", 8, Scale{a, 1.0000001}),
      timed("cast fp32 -> bf16", 6, Cast{a, arrays.parameter(DType::bf16)}),
      timed("cast fp32 -> fp16", 6, Cast{a, arrays.parameter(DType::fp16)}),
      timed("fill_zero", 4, FillZero{b}),
  };
}

/// Rounds of every pass once, so that what else the machine does meets all of them.
void report(int team, std::int64_t count, int rounds) {
  host::Threads threads(team);
  const Arrays arrays(threads, count);
  const std::vector<TimedPass> timed = passes(threads, arrays);
  std::vector<std::vector<double>> rates(timed.size());
  for (int round = 0; round <= rounds; ++round) {
    for (std::size_t i = 0; i < timed.size(); ++i) {
      const double bytes = timed[i].bytes * static_cast<double>(count);
      const Seconds time = time_of(timed[i].run);
      if (round > 0) rates[i].push_back(bytes / time);
    }
  }
  const double copy = summarize(rates[0]).median;
  std::printf("\n| %d threads | GB/s | least to most | over copy |\n|---|---:|---:|---:|\n", team);
  for (std::size_t i = 0; i < timed.size(); ++i) {
    const Summary rate = summarize(rates[i]);
    std::printf("| %s | %.2f | %.2f to %.2f | %.2f |\n", timed[i].name.c_str(), rate.median / 1e9,
                rate.min / 1e9, rate.max / 1e9, rate.median / copy);
  }
}

void report_all() {
  const std::int64_t count = elements_beyond_caches();
  std::printf("%s; last cache %.0f MiB, arrays of %.0f MiB\n",
              std::string(name_of(host::widest_instruction_set())).c_str(),
              static_cast<double>(last_level_cache()) / 0x1p20,
              static_cast<double>(count) * sizeof(float) / 0x1p20);
  for (int team = 1; team <= usable_cores(); team *= 2) report(team, count, 11);
}

void serve_adam(std::int64_t count, int team) {
  host::Threads threads(team);
  const Arrays arrays(threads, count);
  Adam adam = arrays.adam();
  for (std::string line; std::getline(std::cin, line); ++adam.step.step) {
    std::cout << time_of([&] { compute(threads, adam); }) << std::endl;
  }
}

}  // namespace
}  // namespace dstune::bench

int main(int argc, char** argv) {
  if (argc != 1 && argc != 3) {
    std::cerr << "usage: bench_host_passes [ELEMENTS THREADS]\n";
    return 2;
  }
  try {
    if (argc == 1) {
      dstune::bench::report_all();
    } else {
      dstune::bench::serve_adam(std::stoll(argv[1]), std::stoi(argv[2]));
    }
    return 0;
  } catch (const std::exception& fault) {
    std::cerr << "bench_host_passes: " << fault.what() << "\n";
    return 2;
  }
}
