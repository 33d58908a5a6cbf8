// A stable sort for comparisons that may throw.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace tern::text::jinja {

// Merges runs of growing length. Every order of comparisons ends and stays inside of `items`, also
// one that contradicts itself, as NaN does; std::stable_sort promises nothing then. After a throw
// the items have no meaning.
template <class T, class Less>
void merge_sort(std::vector<T>& items, Less&& less) {
  std::vector<T> merged(items.size());
  for (std::size_t run = 1; run < items.size(); run *= 2) {
    for (std::size_t begin = 0; begin < items.size(); begin += 2 * run) {
      const std::size_t middle = std::min(begin + run, items.size());
      const std::size_t end = std::min(middle + run, items.size());
      std::size_t left = begin;
      std::size_t right = middle;
      for (std::size_t at = begin; at < end; ++at) {
        const bool take_right = right < end && (left == middle || less(items[right], items[left]));
        merged[at] = std::move(items[take_right ? right++ : left++]);
      }
    }
    items.swap(merged);
  }
}

}  // namespace tern::text::jinja
