#include "core/base/edit_distance.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace dstune {

std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t most) {
  const std::size_t apart = std::max(a.size(), b.size()) - std::min(a.size(), b.size());
  if (apart > most) return apart;
  std::vector<std::size_t> before(b.size() + 1);  // costs of a's first i - 2 letters
  std::vector<std::size_t> last(b.size() + 1);    // i - 1
  std::vector<std::size_t> row(b.size() + 1);     // i
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  std::size_t least = 0;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, last);
    std::swap(last, row);
    const std::size_t least_before = std::exchange(least, i);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
      least = std::min(least, row[j]);
    }
    // The rows that follow cost at least as much; a swap begins one row above, and costs one.
    if (least > most && least_before >= most) return least;
  }
  return row[b.size()];
}

}  // namespace dstune
