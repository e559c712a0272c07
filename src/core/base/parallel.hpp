// Independent pieces of work, divided among the cores of this process.
#pragma once

#include <cstddef>
#include <functional>

namespace dstune {

/// Calls work(i) once for each i in [0, count), in no order, on the calling thread and on others
/// that end before it returns: on as many as this process has cores, at most 16. If calls throw,
/// the exception of the least i that threw is thrown on, and later ones may not have been called.
void for_each_in_parallel(std::size_t count, const std::function<void(std::size_t)>& work);

}  // namespace dstune
