# polyphase_precompiled(TARGET kind): the headers that most files include are parsed once for all targets of a kind.
#
#   headers of the kind ──▶ polyphase_pch_<kind>: one .pch ──▶ every file of every target of that kind
#
# Without optimisation half of the time to compile a dozen files of glue (Unity.cmake) goes into the same forty headers, a
# quarter of preset asan; with g++ -O1 each compilation saves one and a half to two and a half seconds of eight to twenty. The presets
# that build everything do this (POLYPHASE_PCH); dev, clang and clang-tidy see that each file includes what it needs. A
# kind is a set of headers and one set of flags: compilers refuse a .pch made with other flags (g++ takes -O1 for -O2, not -Os), so
# targets and files with flags of their own (kernels, fuzzers) have none. PROGRAMS: a kind for executables; the others are for
# libraries.
option(POLYPHASE_PCH "Parse the headers that most files include only once (precompiled headers)" OFF)

if(POLYPHASE_PCH AND POLYPHASE_CCACHE AND CMAKE_CXX_COMPILER_LAUNCHER STREQUAL POLYPHASE_CCACHE)
  # What ccache asks for to keep what was compiled with a .pch; it compares the .pch itself.
  set(CMAKE_CXX_COMPILER_LAUNCHER
    ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${POLYPHASE_CCACHE})
endif()

set(POLYPHASE_PCH_STANDARD
  <algorithm> <array> <charconv> <cmath> <cstdint> <cstring> <functional> <limits> <list> <map> <memory> <numeric> <optional> <set>
  <span> <string> <string_view> <unordered_map> <utility> <variant> <vector>)
set(POLYPHASE_PCH_ROOMS base/dim.h base/tensor.h ops/op.h ops/registry.h graph/graph.h kernel/row.h)
list(TRANSFORM POLYPHASE_PCH_ROOMS PREPEND ${PROJECT_SOURCE_DIR}/src/)

function(polyphase_define_precompiled kind)
  cmake_parse_arguments(PARSE_ARGV 1 arg "PROGRAMS;SMALL" "" "HEADERS;LIBS")
  set(target polyphase_pch_${kind})
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/pch.cpp CONTENT "// A target needs a source.\n")
  add_library(${target} OBJECT EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/generated/pch.cpp)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(${target} PRIVATE ${arg_LIBS})
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")  # the same headers give the same bytes
  endif()
  if(arg_SMALL)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-Os>)
  endif()
  if(arg_PROGRAMS)  # CMake compiles those with -fPIE and libraries with -fPIC
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${target} PRIVATE -fPIE)
  endif()
  target_precompile_headers(${target} PRIVATE ${POLYPHASE_PCH_STANDARD} ${POLYPHASE_PCH_ROOMS} ${arg_HEADERS})
endfunction()

if(POLYPHASE_PCH)
  polyphase_define_precompiled(loops LIBS polyphase_flags)
  polyphase_define_precompiled(small SMALL LIBS polyphase_flags)
  polyphase_define_precompiled(glue LIBS polyphase_glue_flags)
endif()

# Each .pch is built only where a target reuses it. Of a target's kinds the last counts. Without sanitizers glue has the flags of
# loops; with them small has those of its room.
function(polyphase_precompiled target kind)
  if(NOT POLYPHASE_PCH OR (kind STREQUAL small AND POLYPHASE_SANITIZE))
    return()
  endif()
  if(kind STREQUAL glue AND NOT POLYPHASE_SANITIZE)
    set(kind loops)
  endif()
  set_target_properties(${target} PROPERTIES PRECOMPILE_HEADERS_REUSE_FROM polyphase_pch_${kind})
endfunction()
