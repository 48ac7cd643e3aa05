# polyphase_fuzz(NAME n SOURCES ... ROOMS ... SEEDS folder): random bytes into a reader, by libFuzzer under the sanitizers.
#
# Built only where clang and AddressSanitizer are (preset asan). As a test it runs 10 s from a fixed seed, 10 minutes with
# POLYPHASE_FULL=1. What makes it fail is kept as build/asan/tests/fuzz/<n>.crash-*; give that file to the program to see it again.
function(polyphase_fuzz)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;SEEDS" "SOURCES;ROOMS;LIBS")
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang" OR NOT POLYPHASE_SANITIZE MATCHES "address")
    return()
  endif()
  set(rooms ${arg_ROOMS})
  list(TRANSFORM rooms PREPEND polyphase_)
  set(target fuzz_${arg_NAME})
  add_executable(${target} ${arg_SOURCES})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${target} PRIVATE ${rooms} ${arg_LIBS} polyphase_flags)
  target_link_options(${target} PRIVATE -fsanitize=fuzzer)
  set(found ${CMAKE_CURRENT_BINARY_DIR}/${arg_NAME})
  add_test(NAME ${target} COMMAND sh -c
    "mkdir -p $1; [ \"$POLYPHASE_FULL\" = 1 ] && s=600 || s=10; exec $0 -seed=1 -max_total_time=$s -timeout=10 \
-rss_limit_mb=2500 -verbosity=0 -print_final_stats=1 -artifact_prefix=$1. $1 $2"
    $<TARGET_FILE:${target}> ${found} ${CMAKE_CURRENT_SOURCE_DIR}/${arg_SEEDS})
  set_tests_properties(${target} PROPERTIES TIMEOUT 900 LABELS fuzz
    ENVIRONMENT ASAN_OPTIONS=allocator_may_return_null=1)
endfunction()
