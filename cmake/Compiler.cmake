# Language level, warnings, sanitizers and ccache, the same for every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Dev, Release or Sanitize" FORCE)
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)
  message(FATAL_ERROR "g++ ${CMAKE_CXX_COMPILER_VERSION} is too old: Polyphase needs g++ 12 or clang 14, or newer. "
                      "Run scripts/setup cpp, which installs g++-12, then configure with CXX=g++-12.")
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14)
  message(FATAL_ERROR "clang ${CMAKE_CXX_COMPILER_VERSION} is too old: Polyphase needs g++ 12 or clang 14, or newer.")
endif()

# Dev compiles fast and keeps assertions; the kernels are optimised in every build type (IsaObjects.cmake).
set(CMAKE_CXX_FLAGS_DEV "-O1 -g1 -D_GLIBCXX_ASSERTIONS")
set(CMAKE_CXX_FLAGS_SANITIZE "-O1 -g1 -fno-omit-frame-pointer -D_GLIBCXX_ASSERTIONS")
if(POLYPHASE_SANITIZE MATCHES "thread")
  string(REPLACE "-O1" "-O0" CMAKE_CXX_FLAGS_SANITIZE "${CMAKE_CXX_FLAGS_SANITIZE}")  # races show without optimisation
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG -ffunction-sections -fdata-sections")  # for --gc-sections (Libraries.cmake)

add_library(polyphase_flags INTERFACE)
target_compile_options(polyphase_flags INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor -Woverloaded-virtual -Wextra-semi
  -Wformat=2 -Wundef -Wvla)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Both report correct code of libstdc++ itself once it is inlined (GCC bugs 105329 and 105562 among others).
  target_compile_options(polyphase_flags INTERFACE -Wno-restrict)
  if(POLYPHASE_SANITIZE)
    target_compile_options(polyphase_flags INTERFACE -Wno-maybe-uninitialized)
  endif()
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_compile_options(polyphase_flags INTERFACE -Wno-mismatched-tags)  # struct or class matters to another ABI only
endif()
if(POLYPHASE_WERROR)
  target_compile_options(polyphase_flags INTERFACE -Werror)
endif()

if(POLYPHASE_SANITIZE)
  set(POLYPHASE_SANITIZE_FLAGS -fsanitize=${POLYPHASE_SANITIZE} -fno-sanitize-recover=all)
  add_compile_options(${POLYPHASE_SANITIZE_FLAGS})
  add_link_options(${POLYPHASE_SANITIZE_FLAGS})
  # Sixty programs of 200 MB each: lld links one in a second, ld.bfd in six.
  find_program(POLYPHASE_LLD NAMES ld.lld)
  if(POLYPHASE_LLD AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    add_link_options(-fuse-ld=lld)
  endif()
  if(POLYPHASE_FUZZ)
    # libFuzzer (Fuzz.cmake) is led by which code its input reaches.
    set(POLYPHASE_COVERAGE inline-8bit-counters,pc-table,trace-cmp)
    add_compile_options(-fsanitize-coverage=${POLYPHASE_COVERAGE})
  endif()
endif()

# For code that glues and waits (tests, the command line): the sanitizers see as much without optimisation, in half the time
# to compile.
add_library(polyphase_glue_flags INTERFACE)
target_link_libraries(polyphase_glue_flags INTERFACE polyphase_flags)
if(POLYPHASE_SANITIZE)
  target_compile_options(polyphase_glue_flags INTERFACE -O0)
endif()

find_program(POLYPHASE_CCACHE ccache)
if(POLYPHASE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${POLYPHASE_CCACHE})
endif()
