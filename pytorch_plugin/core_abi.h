/* The C ABI between Weir's torch-free core (libweir_core.so) and its torch-facing plugins (one per torch minor).
 *
 * Promises:
 *  - No C++ exception crosses this boundary in either direction, and no torch or CUDA type appears in it.
 *  - Sizes are bytes, addresses are device addresses, streams are driver handles (CUstream == cudaStream_t; 0 is
 *    the legacy default stream). `device` is the CUDA ordinal.
 *  - Functions may be called from any thread, with or without the GIL. Only weir_allocate, weir_touch,
 *    weir_pin_escaped, weir_take_outside, weir_set_cap, weir_set_fraction and weir_empty_cache may wait for the GPU; around each wait they call host->wait_begin / wait_end, holding no lock.
 *  - A failing call changes nothing and fills *error (text is UTF-8, NUL-terminated).
 */
#ifndef WEIR_PYTORCH_PLUGIN_CORE_ABI_H_
#define WEIR_PYTORCH_PLUGIN_CORE_ABI_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_CORE_ABI_VERSION 5u
#define WEIR_API __attribute__((visibility("default")))

enum WeirCode {
  WEIR_OK = 0,
  WEIR_OUT_OF_MEMORY = 1, /* does not fit under the cap, or a tier is full: torch.OutOfMemoryError */
  WEIR_INVALID = 2,       /* bad option or argument: text says which */
  WEIR_UNAVAILABLE = 3,   /* no driver, no VMM: the job runs without Weir */
  WEIR_DEVICE_ERROR = 4   /* a driver call failed (sticky CUDA error): text carries the driver's words */
};

typedef struct WeirError {
  int32_t code;
  char text[3072];
} WeirError;

/* What the core asks of the torch side. `storage` is a c10::StorageImpl*, opaque here. All may be called with a
 * Weir lock held except storage_release, wait_begin, wait_end and eviction_veto; none may call back into the core, take the GIL
 * (wait_begin/wait_end excepted) or change a strong reference count (R8). */
typedef struct WeirHost {
  uint32_t abi_version;                   /* WEIR_CORE_ABI_VERSION */
  void (*storage_retain)(void* storage);  /* takes a weak reference; the caller holds the storage */
  void (*storage_release)(void* storage); /* drops that weak reference; no lock is held */
  void (*storage_deny)(void* storage, const void* base,
                       const char* text); /* evicted: every pointer access throws
                                        with `text`; ignored if the storage no longer holds the block at `base` */
  void (*storage_allow)(void* storage);   /* undoes storage_deny (resident again) */
  void* (*wait_begin)(void);              /* about to wait: release the GIL if held; returns a token */
  void (*wait_end)(void* token);          /* the wait is over */
  /* Before each eviction: why nothing may leave now, in words that live for ever (no lock is held); returns NULL, or is
   * NULL, where everything may. */
  const char* (*eviction_veto)(void);
} WeirHost;

/* Reads the options and stores `host` (which must live for ever). No driver call, no thread. Once per process;
 * later calls return WEIR_OK. */
WEIR_API int32_t weir_start(const WeirHost* host, WeirError* error);

/* True when evictions can happen on some device (a cap is set): the observer has to be on. */
WEIR_API int32_t weir_wants_observer(void);

/* First CUDA use: resolves the driver. Called once CUDA has been initialised by torch. */
WEIR_API int32_t weir_init(int32_t device_count, WeirError* error);

/* ---- blocks ---------------------------------------------------------------------------------------------- */

/* `bytes` > 0; the address is aligned to 512 bytes. NULL on failure. Inside an op (weir_op_enter) the block's
 * extent stays pinned until the outermost op of this thread ends (R1). Reuse is in stream order of `stream`. */
WEIR_API void* weir_allocate(int32_t device, uint64_t bytes, void* stream, WeirError* error);

/* The same out of a pool of that device (weir_make_pool). */
WEIR_API void* weir_allocate_in_pool(int32_t device, uint64_t bytes, void* stream, uint32_t pool,
                                     WeirError* error);

/* Never fails, never waits; unknown and NULL addresses are ignored. Returns 1 if the block was Weir's. */
WEIR_API int32_t
weir_release(void* address); /* not weir_free: the preloaded loader exports that name, and it would win */

/* The block that contains `address` was used on `stream`: its bytes are reused only after that stream has passed
 * its free. Interior pointers resolve. Unknown addresses are ignored. `external` is 1 for streams that torch does
 * not own (they may be destroyed: an event is recorded at once). */
WEIR_API void weir_record_stream(void* address, void* stream, int32_t external);

/* Base address and requested bytes of the block that contains `address`; 0 if it is not Weir's. */
WEIR_API int32_t weir_find_block(const void* address, void** base, uint64_t* bytes);

/* What lies at an address, for checks of what a job hands to the driver: the emulated GPU finds this function by name. */
enum {
  WEIR_NOT_MINE = 0,
  WEIR_ALIVE =
      1, /* all `bytes` are in one block that was not freed, or in pages that Weir itself is moving */
  WEIR_END =
      2, /* only if `bytes` is 0 (a mere pointer): one past the last byte of such a block, and in no other */
  WEIR_DEAD = 3 /* in no block: freed, or never handed out */
};
WEIR_API int32_t weir_life_of(const void* address, uint64_t bytes);

/* ---- pools ----------------------------------------------------------------------------------------------- */

/* A new pool of `device`: memory that its blocks leave is reused by its blocks alone. 0 and *error: why not. */
WEIR_API uint32_t weir_make_pool(int32_t device, WeirError* error);
/* From now on each new block of the pool has an extent of its own. */
WEIR_API void weir_keep_blocks_apart(int32_t device, uint32_t pool);
/* The pool's memory goes to the general heap; its blocks that are alive stay valid. */
WEIR_API void weir_end_pool(int32_t device, uint32_t pool);
/* The pool of the block that contains `address`: 0 is the general heap, as for what is not Weir's. */
WEIR_API uint32_t weir_pool_of(const void* address);

/* Another allocator, which the job put into a pool, is about to take `bytes` on the device: makes room for them under the
 * cap, where they count until weir_give_outside. May wait. */
WEIR_API int32_t weir_take_outside(int32_t device, uint64_t bytes, void* stream, WeirError* error);
WEIR_API void weir_give_outside(int32_t device, uint64_t bytes);
/* A block of `bytes` of such an allocator is handed out for `requested` bytes (live = 1), or comes back (live = 0):
 * counted like Weir's own. */
WEIR_API void weir_count_outside(int32_t device, void* address, uint64_t bytes, uint64_t requested,
                                 void* stream, int32_t live);

/* ---- ops ------------------------------------------------------------------------------------------------- */

typedef struct WeirTouch {
  void* address; /* any address inside the block */
  void*
      storage; /* StorageImpl* whose data pointer is the block's base and whose deleter is Weir's, else NULL */
  uint32_t written;  /* 1 if the op may write it (R2) */
  uint32_t evidence; /* 1 if this is an input of a top-level aten op: the block may leave from now on (R1) */
} WeirTouch;

/* A pin-holding op starts on this thread. `name` must live until the matching leave; shown in messages. Nests. What an op of
 * a namespace other than aten pins counts as used on every stream (R9). */
WEIR_API void weir_op_enter(const char* name);
/* The innermost op ends. When it was the outermost, all pins of this thread are released and the extents count as
 * used on the streams they were touched or allocated with. */
WEIR_API void weir_op_leave(void);

/* Makes all blocks resident, or none of them pinned (R11), and pins them until the outermost op ends. Addresses
 * that are not Weir's are skipped. `stream`: where the op will run; fetched bytes are ordered before it.
 * WEIR_OUT_OF_MEMORY: `error` has torch's text plus op, bytes needed and cap. Call between enter and leave. */
WEIR_API int32_t weir_touch(const WeirTouch* touches, size_t count, void* stream, WeirError* error);

/* Like weir_touch but only if every block is resident already: 1 = pinned, 0 = nothing done. Never waits. */
WEIR_API int32_t weir_touch_if_resident(const WeirTouch* touches, size_t count, void* stream);

/* R4: this thread allocates but its ops are not seen (on = 1) or are seen again (on = 0). While any thread is blind
 * nothing is evicted. Called at most once per change of the thread's state. */
WEIR_API void weir_blind_thread(int32_t on);

/* Something that reads the addresses of tensors and never uses them starts (on = 1) or ends (on = 0): a profiler that
 * records shapes or stacks. While any is there no storage is denied. Nests; an end too many is ignored. */
WEIR_API void weir_read_addresses(int32_t on);

/* ---- when ops are seen (R6) */

/* The observer may be switched off: 1, and from now on nothing leaves VRAM until weir_begin_watch. 0: something is not in VRAM, or
 * (if_quiet = 1) may have to leave soon. Holds Weir's locks and one of the plugin's at most; may unpin host memory. */
WEIR_API int32_t weir_end_watch(int32_t if_quiet);
/* The observer is about to be switched on again. All work of the device passes before anything leaves. */
WEIR_API void weir_begin_watch(void);
/* What leaves from now on was given to weir_touch with evidence since. */
WEIR_API void weir_forget_evidence(void);
/* 1: while the observer is off something has changed, so that something may have to leave soon. */
WEIR_API int32_t weir_watch_wanted(void);

/* A pin mark inside an op, for list ops that work chunk by chunk: weir_chunk_end releases the pins taken since the
 * matching weir_chunk_begin (touches and allocations), unless an enclosing op held them before. */
WEIR_API void weir_chunk_begin(void);
WEIR_API void weir_chunk_end(void);

/* A page-in outside any op (data_ptr() taken in Python, R5): resident and pinned for good, for any stream at once. */
WEIR_API int32_t weir_pin_escaped(void* address, void* stream, WeirError* error);
/* As above, without the pin: for callers that only compare identity (checkpoint writers). */
WEIR_API int32_t weir_is_resident(const void* address); /* 1 resident or not Weir's, 0 not resident */

/* Bytes a chunk of a list op may touch at most: a share of the cap (UINT64_MAX without a cap). */
WEIR_API uint64_t weir_chunk_bytes(int32_t device);

/* An op was seen by the observer (counter of the exit line); an event was that holds nothing. */
WEIR_API void weir_count_op(void);
WEIR_API void weir_count_event(void);

/* ---- trace ----------------------------------------------------------------------------------------------- */

typedef struct WeirTraceTensor {
  void* storage; /* address of its storage on the device */
  void* data;    /* its first byte; NULL when its bytes do not lie together */
  uint64_t bytes;
  uint32_t flags; /* trace/format.h, TensorFlags */
  int32_t device;
} WeirTraceTensor;

/* What the plugin tells a trace. No call fails or waits, sum excepted; without a trace (before weir_init, after the disk
 * was full, in a forked child) they do nothing. `name` is a number from name(); kinds and phases: trace/format.h. */
typedef struct WeirTrace {
  int32_t sums;      /* sum() is wanted, for the results of each op */
  int32_t of_native; /* torch's own allocator stays in place; the four calls at the end tell what it does */
  uint32_t (*name)(const char* text);
  void (*op_begin)(uint32_t name, uint32_t kind, int64_t sequence, const WeirTraceTensor* arguments,
                   size_t count);
  void (*op_end)(uint32_t name, const WeirTraceTensor* results, size_t count);
  void (*phase)(uint32_t phase);
  /* Copies the bytes out behind what is queued on `stream`, waits, and records their checksum. */
  void (*sum)(const WeirTraceTensor* result, uint32_t number, void* stream);
  void (*allocated)(int32_t device, void* address, uint64_t bytes, void* stream);
  void (*freed)(void* address);
  void (*refused)(int32_t device, uint64_t bytes);
  /* The most that the allocator counts as allocated and as reserved. */
  void (*peaks)(int32_t device, uint64_t allocated, uint64_t reserved);
} WeirTrace;

/* NULL: no trace is asked for. Known after weir_start. */
WEIR_API const WeirTrace* weir_trace(void);

/* ---- figures --------------------------------------------------------------------------------------------- */

enum { WEIR_ALL = 0, WEIR_SMALL = 1, WEIR_LARGE = 2, WEIR_POOLS = 3 }; /* same order as torch's StatTypes */

typedef struct WeirStat {
  int64_t current, peak, allocated, freed;
} WeirStat;

typedef struct WeirDeviceStats {
  WeirStat allocation[WEIR_POOLS]; /* blocks handed out */
  WeirStat segment[WEIR_POOLS];    /* extents with frames */
  WeirStat active[WEIR_POOLS];     /* blocks handed out or waiting for a recorded stream */
  WeirStat inactive_split[WEIR_POOLS];
  WeirStat allocated_bytes[WEIR_POOLS]; /* logical: evicted blocks count */
  WeirStat reserved_bytes[WEIR_POOLS];  /* frames held */
  WeirStat active_bytes[WEIR_POOLS];
  WeirStat inactive_split_bytes[WEIR_POOLS];
  WeirStat requested_bytes[WEIR_POOLS];
  int64_t num_alloc_retries, num_ooms, num_sync_all_streams, num_device_alloc, num_device_free;
  /* Weir's own */
  uint64_t cap, resident, peak_resident, floor, spilled_ram, evictions, evicted_bytes, fetches, fetched_bytes;
  uint64_t ops_observed, watches; /* of the process: ops that were seen, times that watching began again */
} WeirDeviceStats;

/* This and weir_memory_info: 1 = filled, 0 = Weir has nothing on that device. */
WEIR_API int32_t weir_device_stats(int32_t device, WeirDeviceStats* stats);
WEIR_API void weir_reset_peak_stats(int32_t device);
WEIR_API void weir_reset_accumulated_stats(int32_t device);
/* Total = min(cap, card); free = what could still be handed out without evicting. Asks the driver. */
WEIR_API int32_t weir_memory_info(int32_t device, uint64_t* free_bytes, uint64_t* total_bytes);
/* 1: a job that asks for the memory of its device is told of the cap; 0: of the card (WEIR_SHOW, or no cap is set). */
WEIR_API int32_t weir_shows_cap(int32_t device);
/* Largest request that could be served now without evicting. */
WEIR_API uint64_t weir_largest_free(int32_t device);
/* Kernels of `peer` may use Weir's blocks of `device`, now and from now on. */
WEIR_API int32_t weir_add_peer(int32_t device, int32_t peer, WeirError* error);
/* Another cap for `device`, from now on: what is above it is moved out first. `bytes`: 2 MiB or more; above the card's total it
 * is the total; UINT64_MAX: none. WEIR_OUT_OF_MEMORY: what is in use cannot leave, and the cap stays. */
WEIR_API int32_t weir_set_cap(int32_t device, uint64_t bytes, WeirError* error);
/* The same as a share of the card's total, 0 to 1; 1 is the cap at the start, and nothing is above that. What cannot
 * leave yet stays, with a warning, and nothing more is taken until it has left. */
WEIR_API int32_t weir_set_fraction(int32_t device, double fraction, WeirError* error);
/* Gives cached frames and unused pinned slabs back to the driver. */
WEIR_API void weir_empty_cache(int32_t device);

/* ---- what is where --------------------------------------------------------------------------------------- */

enum { WEIR_BLOCK_FREE = 0, WEIR_BLOCK_ALLOCATED = 1, WEIR_BLOCK_AWAITING_FREE = 2 };
typedef struct WeirBlock {
  uint64_t address, bytes, requested;
  uint64_t number; /* of its allocation on that device, from 1; 0: free */
  int32_t state;
} WeirBlock;

/* allocator/device_snapshot.h says what each is. */
enum {
  WEIR_SEGMENT_RESIDENT = 0,
  WEIR_SEGMENT_CACHED = 1,
  WEIR_SEGMENT_EVICTED = 2,
  WEIR_SEGMENT_UNMAPPED = 3
};
typedef struct WeirSegment {
  uint64_t address, bytes;
  void* stream;
  int32_t state;
  int32_t small;           /* 1: of blocks below 1 MiB */
  const WeirBlock* blocks; /* they tile it, in address order */
  size_t block_count;      /* at least one */
} WeirSegment;

typedef struct WeirSnapshot {
  const WeirSegment* segments; /* in address order */
  size_t segment_count;
} WeirSnapshot;

/* Everything that Weir has on `device`, at one instant; NULL: nothing there. Never waits; no lock is held after the return,
 * and the answer does not change any more. To be given back by weir_drop_snapshot, which takes NULL too. */
WEIR_API const WeirSnapshot* weir_take_snapshot(int32_t device);
WEIR_API void weir_drop_snapshot(const WeirSnapshot* snapshot);

/* One line on the log (level 0 error, 1 warn, 2 info, 3 debug). */
WEIR_API void weir_log(int32_t level, const char* text);
/* The job's CUDA is gone or the process ends: writes the exit line once. */
WEIR_API void weir_exit(void);

#ifdef __cplusplus
}
#endif
#endif /* WEIR_PYTORCH_PLUGIN_CORE_ABI_H_ */
