// The newest entries of a device's history, at most as many as wanted. Not synchronised.
#ifndef WEIR_PYTORCH_PLUGIN_TRACE_RING_H_
#define WEIR_PYTORCH_PLUGIN_TRACE_RING_H_

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

namespace weir::plugin {

template <typename Entry>
class TraceRing {
 public:
  // Keeps the newest `entries`, at least one. What goes is moved to `dropped`, which is to die without a lock (R8).
  void SetLimit(size_t entries, std::vector<Entry>* dropped) {
    limit_ = std::max<size_t>(entries, 1);
    std::rotate(ring_.begin(), ring_.begin() + static_cast<ptrdiff_t>(oldest_), ring_.end());
    oldest_ = 0;
    if (ring_.size() <= limit_) return;
    const auto kept = ring_.end() - static_cast<ptrdiff_t>(limit_);
    std::move(ring_.begin(), kept, std::back_inserter(*dropped));
    ring_.erase(ring_.begin(), kept);
  }
  void Add(Entry entry, std::vector<Entry>* dropped) {
    if (ring_.size() < limit_) {
      ring_.push_back(std::move(entry));
      return;
    }
    dropped->push_back(std::exchange(ring_[oldest_], std::move(entry)));
    oldest_ = (oldest_ + 1) % limit_;
  }
  void Clear(std::vector<Entry>* dropped) {
    std::move(ring_.begin(), ring_.end(), std::back_inserter(*dropped));
    ring_.clear();
    oldest_ = 0;
  }
  // Oldest first.
  std::vector<Entry> Copy() const {
    std::vector<Entry> copy;
    copy.reserve(ring_.size());
    for (size_t i = 0; i < ring_.size(); ++i) copy.push_back(ring_[(oldest_ + i) % ring_.size()]);
    return copy;
  }

 private:
  size_t limit_ = 1;
  size_t oldest_ = 0;  // only of a full ring other than zero
  std::vector<Entry> ring_;
};

}  // namespace weir::plugin

#endif  // WEIR_PYTORCH_PLUGIN_TRACE_RING_H_
