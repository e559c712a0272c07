// Times the engine of NVMe offload on a file without a name in a directory.
//
// usage: bench_nvme DIR MIB BLOCK_MIB QUEUE_DEPTH THREADS
//        a pass over MIB of the file for each line of standard input, "read" or "write", which is
//        answered by the seconds that it took; bench/nvme_beside_fio.py has fio's in between. The
//        file is written before the first line is read.
// Exit code 2: it cannot run, or a request failed.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <iostream>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include <fcntl.h>

#include "core/device/drive/aio_settings.hpp"
#include "kernels/host/nvme/aio_engine.hpp"
#include "kernels/host/nvme/aligned_buffer.hpp"
#include "kernels/host/nvme/scratch_file.hpp"
#include "kernels/host/nvme/stamped_bytes.hpp"

namespace dstune::bench {
namespace {

constexpr Bytes kMiB = Bytes{1} << 20U;
constexpr Bytes kMostOperation = 1024 * kMiB;

[[noreturn]] void fail(const host::FileError& error) {
  throw std::runtime_error(host::to_text(error));
}

template <class T>
T value_of(host::OrFileError<T>&& made) {
  if (const auto* const error = std::get_if<host::FileError>(&made)) fail(*error);
  return std::move(std::get<T>(made));
}

class Passes {
 public:
  Passes(const std::string& directory, Bytes size, const AioSettings& settings)
      : size_(size),
        file_(value_of(host::ScratchFile::make(directory))),
        buffer_(value_of(host::AlignedBuffer::make(std::min(size, kMostOperation),
                                                   host::AlignedBuffer::Lock::if_allowed))),
        engine_(value_of(host::AioEngine::make(settings))) {
    // As fio does: where a file lies is not what is compared.
    if (::fallocate(file_.descriptor(), 0, 0, static_cast<off_t>(size)) != 0) {
      throw std::runtime_error("there is no room for the file");
    }
    host::fill_random({buffer_.data(), buffer_.size()}, std::random_device{}());
  }

  double time(AioDirection direction) {
    const auto begin = std::chrono::steady_clock::now();
    for (Bytes at = 0; at < size_; at += buffer_.size()) {
      engine_->start({.direction = direction,
                      .file = file_.descriptor(),
                      .path = file_.directory(),
                      .buffer = buffer_.data(),
                      .size = std::min(buffer_.size(), size_ - at),
                      .offset = at});
      if (const auto error = engine_->wait()) fail(*error);
    }
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

 private:
  Bytes size_;
  host::ScratchFile file_;
  host::AlignedBuffer buffer_;
  std::unique_ptr<host::AioEngine> engine_;
};

int serve(char** arguments) {
  const AioSettings settings{.block_size = std::stoull(arguments[3]) * kMiB,
                             .queue_depth = std::stoi(arguments[4]),
                             .intra_op_parallelism = std::stoi(arguments[5])};
  Passes passes(arguments[1], std::stoull(arguments[2]) * kMiB, settings);
  passes.time(AioDirection::write);
  for (std::string line; std::getline(std::cin, line);) {
    const auto direction = line == "read" ? AioDirection::read : AioDirection::write;
    std::printf("%.9f\n", passes.time(direction));
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace dstune::bench

int main(int argc, char** argv) {
  try {
    if (argc != 6) throw std::runtime_error("DIR MIB BLOCK_MIB QUEUE_DEPTH THREADS are needed");
    return dstune::bench::serve(argv);
  } catch (const std::exception& fault) {
    std::fprintf(stderr, "bench_nvme: %s\n", fault.what());
    return 2;
  }
}
