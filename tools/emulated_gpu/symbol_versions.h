/* Given to each C++ file of a library that must load where libstdc++ is GCC 11's (GLIBCXX_3.4.29). Newer headers bind
   std::condition_variable::wait to GLIBCXX_3.4.30, whose only news is `noexcept`; the older version is in every
   libstdc++. */
__asm__(
    ".symver _ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE,"
    "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE@GLIBCXX_3.4.11");
