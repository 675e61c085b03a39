// The pins, edges and waits that keep the bytes right, by name, so that a test build can run without one of them and
// show that a test notices (tests/safeguards). In every other build Without() is a constant.
#ifndef WEIR_ALLOCATOR_BASE_SAFEGUARDS_H_
#define WEIR_ALLOCATOR_BASE_SAFEGUARDS_H_

namespace weir {

// X(name, rule of correctness): one a line, the build reads them.
#define WEIR_SAFEGUARDS(X)        \
  X(PinOfTouched, R1)             \
  X(PinOfAllocated, R1)           \
  X(PinsUntilOutermost, R1)       \
  X(Evidence, R1)                 \
  X(ProducerBeforeCopyOut, R9)    \
  X(CopyOutBeforeUnmap, R9)       \
  X(LastUseBeforeHarvest, R9)     \
  X(LastUseOfFreedKept, R9)       \
  X(OtherStreamJoinsFill, R9)     \
  X(FilledElsewhereKeptApart, R9) \
  X(SlotsUntilCopiedIn, R9)       \
  X(HolesOfDrainingHidden, R9)    \
  X(UnpinIsAUse, R9)              \
  X(OwnStreamIsAUse, R9)          \
  X(RecordedStreamDefersFree, R9) \
  X(UseOnAnyStreamPassed, R9)     \
  X(CopiedInBeforeEscape, R9)     \
  X(EvidenceForgotten, R6)        \
  X(EndOnlyWhenResident, R6)      \
  X(NoMoveUnwatched, R6)          \
  X(UnseenWorkPassed, R6)         \
  X(AllPinsOrNone, R11)           \
  X(WaitingPinnersCounted, R11)   \
  X(StepAside, R11)               \
  X(WaitForPins, R11)             \
  X(UnpinWakes, R11)

// Those of pytorch_plugin/, which has a test build of its own.
#define WEIR_PLUGIN_SAFEGUARDS(X)   \
  X(ArgumentsBroughtBack, R1)       \
  X(PinsUntilOpEnds, R1)            \
  X(NestedIsNoEvidence, R1)         \
  X(FactoryIsNoEvidence, R1)        \
  X(OverloadWithKernelTouches, R1)  \
  X(PinsOfFailedTouch, R1)          \
  X(CollectivesStay, R1)            \
  X(WholeListTouched, R1)           \
  X(PieceTouched, R1)               \
  X(ResidentListPinned, R1)         \
  X(PinsUntilPieceEnds, R1)         \
  X(UnauditedWritesAll, R2)         \
  X(TableWrites, R2)                \
  X(ListOpWritesAll, R2)            \
  X(SparsePartsWritten, R2)         \
  X(NestedTensorWritten, R2)        \
  X(ListsUnwrapped, R4)             \
  X(SparseUnwrapped, R4)            \
  X(CompressedUnwrapped, R4)        \
  X(StoragesTouched, R4)            \
  X(AliasesTouched, R4)             \
  X(BlindThreadStopsEviction, R4)   \
  X(EvictedThrows, R4)              \
  X(StorageAccessHeld, R4)          \
  X(EscapedStay, R5)                \
  X(SafePointsPassed, R6)           \
  X(ForeignKernelOfListTouched, R7) \
  X(TouchOnStreamOfOp, R9)          \
  X(AllocationOnStreamOfThread, R9) \
  X(RecordedStreamReachesCore, R9)  \
  X(RecordedStreamOfPluggable, R9)  \
  X(WaitGivesGilAway, R11)

enum class Safeguard {
#define WEIR_SAFEGUARD_ENUMERATOR(name, rule) k##name,
  WEIR_SAFEGUARDS(WEIR_SAFEGUARD_ENUMERATOR) WEIR_PLUGIN_SAFEGUARDS(WEIR_SAFEGUARD_ENUMERATOR)
#undef WEIR_SAFEGUARD_ENUMERATOR
};

#ifdef WEIR_TEST_SAFEGUARDS
// True for the one that the environment variable TEST_WITHOUT names. An unknown name ends the process.
bool Without(Safeguard safeguard);
#else
constexpr bool Without(Safeguard) { return false; }
#endif

}  // namespace weir

#endif  // WEIR_ALLOCATOR_BASE_SAFEGUARDS_H_
