// The part of torch's allocator interface that watches: history, trackers, notes. WeirAllocator completes it.
#ifndef WEIR_PYTORCH_PLUGIN_WATCHED_ALLOCATOR_H_
#define WEIR_PYTORCH_PLUGIN_WATCHED_ALLOCATOR_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pytorch_plugin/memory_history.h"
#include "pytorch_plugin/torch_version_history.h"
#include "pytorch_plugin/trace_trackers.h"

namespace weir::plugin {

class WatchedAllocator : public AnyMinorHistoryAllocator {
 public:
  bool isHistoryEnabled() override { return HistoryIsOn(); }
  void recordHistory(bool enabled, CreateContextFn create, size_t max_entries, RecordContext when, bool clear,
                     const std::vector<std::string>& skip_actions) override {
    RecordHistory(enabled, create, max_entries, when, clear, skip_actions);
  }
  Context getContextForPointer(const void* address) override { return ContextOf(address); }
  void recordAnnotation(const std::vector<std::pair<std::string, std::string>>& pairs) override {
    RecordAnnotation(pairs);
  }
  void pushCompileContext(std::string& context) override {
    if (HistoryIsOn()) PushCompileContext(context);
  }
  void popCompileContext() override { PopCompileContext(); }
  bool supportsUserMetadata() override { return true; }
  void setUserMetadata(const std::string& metadata) override { SetUserMetadata(metadata); }
  std::string getUserMetadata() override { return UserMetadata(); }
  void annotateMemory(const void* address, const std::string& metadata) override {
    AnnotateBlock(address, metadata);
  }
  void attachAllocatorTraceTracker(AllocatorTraceTracker tracker) override {
    AttachTracker(std::move(tracker));
    WatchForTrackers();
  }
};

}  // namespace weir::plugin

#endif  // WEIR_PYTORCH_PLUGIN_WATCHED_ALLOCATOR_H_
