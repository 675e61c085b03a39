// The trace file (`.wtr`), byte by byte. What the recorder writes and the reader reads is defined here and nowhere else.
//
// All numbers are little endian. A file is a header and then frames, each whole in itself: what was written before a crash
// can be read, and nothing at the end of the file is needed.
//
// header, 128 bytes
//     0   8  magic, "WEIRTRC\n"
//     8   4  version: 1. A reader reads the versions it knows, and refuses others by number
//    12   4  bytes of the header: 128
//    16   4  process id
//    20   4  clock of all times: ClockKind
//    24   8  that clock when the trace began, ns
//    32   8  the wall clock at the same moment, ns since 1970
//    40  24  rank, text, padded with zeros
//    64  64  host, text, padded with zeros
// frame, 16 bytes and what follows them
//     0   4  magic, "WFRM"
//     4   4  compressed bytes: the length of the zstd frame (with zstd's checksum) that follows
//     8   4  bytes of strings in it, at most kMostStringBytes
//    12   4  records in it, at most kMostRecords
//   The zstd frame holds the strings, then the records.
// string: number (4), bytes of text (2), text (UTF-8, no terminator). A string is defined once, in the frame of its first use
//   or before it. Number 0 is never defined: "no name".
// record, 32 bytes, in the order in which things happened in the process
//     0   8  time, ns
//     8   8  address   |
//    16   8  amount    |  by kind, see Kind
//    24   4  number    |
//    28   2  thread: 1 and up in order of appearance; kManyThreads for all from there on
//    30   1  kind
//    31   1  detail, by kind
#ifndef WEIR_TRACE_FORMAT_H_
#define WEIR_TRACE_FORMAT_H_

#include <bit>
#include <cstddef>
#include <cstdint>

namespace weir::trace {

static_assert(std::endian::native == std::endian::little, "records are written as they lie in memory");

inline constexpr char kMagic[8] = {'W', 'E', 'I', 'R', 'T', 'R', 'C', '\n'};
inline constexpr char kFrameMagic[4] = {'W', 'F', 'R', 'M'};
inline constexpr uint32_t kVersion = 1;
inline constexpr uint32_t kMostRecords = 8192;
inline constexpr uint32_t kMostStringBytes = 1 << 20;
inline constexpr uint32_t kMostCompressedBytes = 2 << 20;  // of a frame
inline constexpr uint32_t kMostStrings = 1 << 16;          // in a file; what comes later has number 0
inline constexpr uint16_t kMostTextBytes = 1024;           // longer text is cut
inline constexpr uint16_t kManyThreads = 0xffff;

struct FileHeader {
  char magic[8];
  uint32_t version;
  uint32_t header_bytes;
  uint32_t process;
  uint32_t clock;
  uint64_t start_ns;
  uint64_t wall_ns;
  char rank[24];
  char host[64];
};
static_assert(sizeof(FileHeader) == 128);

struct FrameHeader {
  char magic[4];
  uint32_t compressed_bytes;
  uint32_t string_bytes;
  uint32_t records;
};
static_assert(sizeof(FrameHeader) == 16);

enum class ClockKind : uint32_t {
  kMachine = 0,  // monotonic
  kVirtual = 1,  // of an emulated GPU (docs/virtual-clock.md): each thread has a time of its own
};

// What a record tells, and what its fields mean. A kind that a reader does not know is skipped.
enum class Kind : uint8_t {
  kThread = 1,       // a thread's first record. amount: its id in the system
  kAllocate = 2,     // address; amount: bytes asked for; number: name of the stream; detail: device
  kFree = 3,         // address. Stands before any reuse of it
  kOutOfMemory = 4,  // an allocation or an op was refused. amount: bytes asked for; detail: device
  kOpBegin =
      5,  // number: name; detail: OpKind; address: autograd's sequence number; amount: Tensors that follow
  kTensor =
      6,  // of the op whose OpBegin or OpEnd stands before. address: of its storage; amount: bytes of the tensor;
          // detail: TensorFlags
  kOpEnd = 7,   // number: name; amount: Tensors that follow, the results
  kEvict = 8,   // has left VRAM. address, amount: bytes; detail: device
  kFetch = 9,   // is on its way back. address, amount: bytes; detail: device
  kWait = 10,   // a thread has waited, until now. amount: ns; detail: WaitCause
  kPhase = 11,  // detail: Phase, of the whole process from now on
  kSum =
      12,  // address; amount: XXH3 (64 bits) of the bytes of a result; number: which result. After its OpEnd
  kLost = 13,  // amount: records that were dropped here because the disk did not keep up
  kEnd = 14,   // the last record of a trace that was ended in order
  kPeaks =
      15,  // what the allocator itself counts, since the job began. address: most bytes allocated; amount: most bytes
           // reserved; detail: device
};
inline constexpr size_t kKinds = 16;  // 0 is none

enum class OpKind : uint8_t {
  kOperator = 0,
  kBackwardNode = 1,  // "autograd::engine::evaluate_function: ..." and the node itself
  kUserRange = 2,     // record_function, "Optimizer.step#..."
};

enum TensorFlags : uint8_t {
  kWritten = 1,   // the schema says that the op writes it
  kResult = 2,    // returned
  kLeaf = 4,      // takes gradients and was made by no op: a parameter
  kDerived = 8,   // autograd knows the op that made it
  kFromHost = 16  // the op also reads a tensor in CPU memory
};

// As far as torch shows it while the job runs; the reader tells forward from the rest.
enum class Phase : uint8_t { kOutside = 0, kBackward = 1, kOptimizer = 2 };

enum class WaitCause : uint8_t {
  kStreams = 0,  // until streams have passed their last use of memory that is wanted
  kCopyOut = 1,  // until what is evicted has been copied out
  kCopyIn = 2,   // until RAM is free again from which something is copied in
  kTurn = 3,     // until another thread has made its room
  kPins = 4,     // until an op of another thread ends
};
inline constexpr size_t kWaitCauses = 5;

struct Record {
  uint64_t time_ns = 0;
  uint64_t address = 0;
  uint64_t amount = 0;
  uint32_t number = 0;
  uint16_t thread = 0;
  Kind kind{};
  uint8_t detail = 0;
};
static_assert(sizeof(Record) == 32);

}  // namespace weir::trace

#endif  // WEIR_TRACE_FORMAT_H_
