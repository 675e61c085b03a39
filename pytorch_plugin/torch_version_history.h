// torch_version.h for the memory history: what later minors added to trace entries and to the allocator's interface.
#ifndef WEIR_PYTORCH_PLUGIN_TORCH_VERSION_HISTORY_H_
#define WEIR_PYTORCH_PLUGIN_TORCH_VERSION_HISTORY_H_

#include <c10/core/CachingDeviceAllocator.h>

#include <memory>
#include <optional>
#include <string>

#include "pytorch_plugin/torch_version.h"

namespace weir::plugin {

// The action of a note that is attached to a live block; nullopt: this torch has no word for it.
#if WEIR_TORCH_AT_LEAST(14)
inline constexpr std::optional<c10::CachingDeviceAllocator::TraceEntry::Action> kAnnotate =
    c10::CachingDeviceAllocator::TraceEntry::ANNOTATE;
#else
inline constexpr std::optional<c10::CachingDeviceAllocator::TraceEntry::Action> kAnnotate;
#endif

// The allocator's base class, with the virtual functions that later minors call to ask of the history.
class AnyMinorHistoryAllocator : public AnyMinorAllocator {
#if !WEIR_TORCH_AT_LEAST(12)
 public:
  virtual std::shared_ptr<c10::GatheredContext> getContextForPointer(const void*) = 0;
#endif
#if !WEIR_TORCH_AT_LEAST(14)
 public:
  virtual bool supportsUserMetadata() = 0;
  virtual void annotateMemory(const void*, const std::string&) = 0;
#endif
};

}  // namespace weir::plugin

#endif  // WEIR_PYTORCH_PLUGIN_TORCH_VERSION_HISTORY_H_
