# polyphase_fuzz(NAME n SOURCES ... ROOMS ... LIBS ... SEEDS folder): random bytes into a reader, by libFuzzer under the sanitizers.
#
# Built where clang and AddressSanitizer are. In preset asan it runs every seed and 3 s of random changes to them from a fixed
# seed, unguided: coverage would make everything compile longer. In preset fuzz coverage leads it, for 10 s, or for
# POLYPHASE_FUZZ_SECONDS (1200 with POLYPHASE_FULL=1). What makes it fail is kept as build/PRESET/tests/fuzz/<n>.crash-*; give that
# file to the program to see it again.
add_custom_target(polyphase_fuzzers)

function(polyphase_fuzz)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;SEEDS" "SOURCES;ROOMS;LIBS")
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang" OR NOT POLYPHASE_SANITIZE MATCHES "address")
    return()
  endif()
  set(rooms ${arg_ROOMS})
  list(TRANSFORM rooms PREPEND polyphase_)
  set(target fuzz_${arg_NAME})
  add_executable(${target} ${arg_SOURCES})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${target} PRIVATE ${rooms} ${arg_LIBS} polyphase_flags)
  target_link_options(${target} PRIVATE -fsanitize=fuzzer)
  add_dependencies(polyphase_fuzzers ${target})
  set(found ${CMAKE_CURRENT_BINARY_DIR}/${arg_NAME})
  set(seconds 3)
  if(NOT POLYPHASE_FUZZ)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)  # libFuzzer wants something to be covered
  else()
    set(seconds "\${POLYPHASE_FUZZ_SECONDS:-$([ \"$POLYPHASE_FULL\" = 1 ] && echo 1200 || echo 10)}")
  endif()
  add_test(NAME ${target} COMMAND sh -c
    "mkdir -p $1; exec $0 -seed=1 -max_total_time=${seconds} -timeout=10 -max_len=65536 \
-rss_limit_mb=2500 -verbosity=0 -print_final_stats=1 -artifact_prefix=$1. $1 $2"
    $<TARGET_FILE:${target}> ${found} ${CMAKE_CURRENT_SOURCE_DIR}/${arg_SEEDS})
  set_tests_properties(${target} PROPERTIES TIMEOUT 7200 LABELS fuzz
    ENVIRONMENT ASAN_OPTIONS=allocator_may_return_null=1)
endfunction()
