// The backend that a program of tests trains on: chosen by what it links.
#pragma once

#include <functional>
#include <memory>

#include "core/device/backend.hpp"

namespace dstune::test {

using MakeBackend = std::function<std::unique_ptr<Backend>(int rank)>;

/// Of the backend under test: the CPU's with dstune::test_ranks.
std::unique_ptr<Backend> make_test_backend(int rank);

/// How that backend's users count memory: with segments on a GPU, where buffers then lie in them.
AllocatorModel test_allocator();

/// Every program has it: what the others are compared with.
std::unique_ptr<Backend> make_cpu_backend(int rank);

}  // namespace dstune::test
