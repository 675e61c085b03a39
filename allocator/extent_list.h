// Extents in a row, linked through one of their own members: adding, removing and moving take constant time and no memory.
// Not synchronised: guarded by the device's mutex.
#ifndef WEIR_ALLOCATOR_EXTENT_LIST_H_
#define WEIR_ALLOCATOR_EXTENT_LIST_H_

#include <cstddef>

#include "allocator/extent.h"

namespace weir {

template <ExtentLinks Extent::*kLinks>
class ExtentList {
 public:
  // Forward iteration. The extent it stands at may be removed after `++`.
  class Iterator {
   public:
    explicit Iterator(Extent* at) : at_(at) {}
    Extent* operator*() const { return at_; }
    Iterator& operator++() {
      at_ = (at_->*kLinks).after;
      return *this;
    }
    friend bool operator==(Iterator, Iterator) = default;

   private:
    Extent* at_;
  };
  Iterator begin() const { return Iterator(first_); }
  Iterator end() const { return Iterator(nullptr); }
  size_t size() const { return size_; }

  void PushBack(Extent* extent) {
    extent->*kLinks = ExtentLinks{last_, nullptr};
    (last_ != nullptr ? (last_->*kLinks).after : first_) = extent;
    last_ = extent;
    ++size_;
  }
  // One that is there.
  void MoveToBack(Extent* extent) {
    const ExtentLinks links = extent->*kLinks;
    if (links.after == nullptr) return;
    (links.before != nullptr ? (links.before->*kLinks).after : first_) = links.after;
    (links.after->*kLinks).before = links.before;
    (last_->*kLinks).after = extent;
    extent->*kLinks = ExtentLinks{last_, nullptr};
    last_ = extent;
  }
  void Remove(Extent* extent) {
    const ExtentLinks links = extent->*kLinks;
    (links.before != nullptr ? (links.before->*kLinks).after : first_) = links.after;
    (links.after != nullptr ? (links.after->*kLinks).before : last_) = links.before;
    extent->*kLinks = ExtentLinks{};
    --size_;
  }

 private:
  Extent* first_ = nullptr;
  Extent* last_ = nullptr;
  size_t size_ = 0;
};

}  // namespace weir

#endif  // WEIR_ALLOCATOR_EXTENT_LIST_H_
