// Checks for programmer errors. A failed check prints file, line, the condition and what was streamed, in one
// line on stderr, and aborts. Conditions that a user, the driver or the machine can cause are absl::Status,
// never checks.
//   WEIR_CHECK(frames_held <= cap) << "held " << frames_held.count();   always
//   WEIR_DCHECK(...)                                                     debug builds; cheap conditions
//   WEIR_DCHECK_SLOW(IsValid())                                          debug builds; conditions that walk a
//   structure
// Any thread may check. The condition of a disabled check is compiled but not evaluated.
#ifndef WEIR_ALLOCATOR_BASE_CHECK_H_
#define WEIR_ALLOCATOR_BASE_CHECK_H_

#include <sstream>

namespace weir::internal {

class CheckFailure {
 public:
  CheckFailure(const char* file, int line, const char* condition);
  [[noreturn]] ~CheckFailure();  // prints and aborts
  std::ostream& stream() { return text_; }

 private:
  std::ostringstream text_;
};

// Gives both arms of the conditional below the type void; binds weaker than << and stronger than ?:.
struct Voidify {
  void operator&(std::ostream&) const {}
};

}  // namespace weir::internal

#define WEIR_CHECK(condition)          \
  (__builtin_expect(!!(condition), 1)) \
      ? (void)0                        \
      : ::weir::internal::Voidify() &  \
            ::weir::internal::CheckFailure(__FILE__, __LINE__, #condition).stream()

#define WEIR_CHECK_OFF(condition) WEIR_CHECK(true || (condition))

#ifdef NDEBUG
#define WEIR_DCHECK(condition) WEIR_CHECK_OFF(condition)
#define WEIR_DCHECK_SLOW(condition) WEIR_CHECK_OFF(condition)
#else
#define WEIR_DCHECK(condition) WEIR_CHECK(condition)
#define WEIR_DCHECK_SLOW(condition) WEIR_CHECK(condition)
#endif

#endif  // WEIR_ALLOCATOR_BASE_CHECK_H_
