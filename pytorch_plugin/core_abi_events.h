/* The part of the C ABI (core_abi.h, whose promises hold here) by which the plugin watches what happens to blocks and mapped
 * ranges. Off until weir_watch(1), and then each event costs one relaxed load. */
#ifndef WEIR_PYTORCH_PLUGIN_CORE_ABI_EVENTS_H_
#define WEIR_PYTORCH_PLUGIN_CORE_ABI_EVENTS_H_

#include "pytorch_plugin/core_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* allocator/block_events.h says what each is. */
enum {
  WEIR_EVENT_ALLOCATED = 0,
  WEIR_EVENT_FREE_REQUESTED = 1,
  WEIR_EVENT_FREED = 2,
  WEIR_EVENT_MAPPED = 3,
  WEIR_EVENT_UNMAPPED = 4,
  WEIR_EVENT_EVICTED = 5,
  WEIR_EVENT_FETCHED = 6,
  WEIR_EVENT_FORGOTTEN = 7
};
typedef struct WeirEvent {
  int32_t kind, device;
  uint64_t address, bytes; /* bytes: of a block what was requested */
  uint64_t number;         /* of the block's allocation; 0 for ranges */
  void* stream;            /* of the allocation */
  const void* cause;       /* what the thread had set by weir_set_cause then */
} WeirEvent;

/* For the whole process. What happened while it was off is never told. */
WEIR_API void weir_watch(int32_t on);
/* The calling thread's events carry `cause` from now on, which means nothing to the core; returns the one before. */
WEIR_API const void* weir_set_cause(const void* cause);
/* Calls each(context, event) for the events of `device` since the last call, in the order in which they happened; no lock is
 * held while it runs. Callers that want that order have to take turns. */
WEIR_API void weir_take_events(int32_t device, void (*each)(void* context, const WeirEvent* event),
                               void* context);

#ifdef __cplusplus
}
#endif
#endif /* WEIR_PYTORCH_PLUGIN_CORE_ABI_EVENTS_H_ */
