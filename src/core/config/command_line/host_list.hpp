// Slurm's short form of many hosts.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dstune {

/// "node[01-03,7]-ib,login" → node01-ib, node02-ib, node03-ib, node7-ib, login. Numbers keep the
/// width of a range's beginning. Brackets that hold no list of numbers stay as they are: an IPv6
/// address.
///
/// Nothing if a range runs backwards or there are more than `most` hosts.
std::optional<std::vector<std::string>> expand_host_list(std::string_view text, std::size_t most);

}  // namespace dstune
