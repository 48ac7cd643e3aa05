# polyphase_test(NAME n SOURCES ... ROOMS ... LIBS ... LABELS ... TIMEOUT s): one GoogleTest program, one ctest entry, run in the root of the sources.
#
# One entry per program: starting a program per case costs more than most cases do. LABELS threads: the test runs several
# threads, so ThreadSanitizer watches it too (target polyphase_thread_tests builds just those). NEEDS_CPU flag: skipped on a CPU whose
# /proc/cpuinfo lacks that flag.
#
# LABELS meaning: the test asks what something means, never how fast or by which kernel; `make test` runs it under the sanitizers
# alone, and builds target polyphase_optimised_tests (the others, and what the Python tests call) in release.
find_package(GTest REQUIRED)
set(POLYPHASE_SANITIZED 0)
if(POLYPHASE_SANITIZE)
  set(POLYPHASE_SANITIZED 1)  # tests of speed and large suites (tests/suite_size.h) ask for it
endif()
if(POLYPHASE_PCH)
  polyphase_define_precompiled(tests PROGRAMS LIBS polyphase_glue_flags GTest::gtest HEADERS <gtest/gtest.h>)
endif()
add_custom_target(polyphase_thread_tests)
add_custom_target(polyphase_optimised_tests)

function(polyphase_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;TIMEOUT;NEEDS_CPU" "SOURCES;ROOMS;LIBS;LABELS")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_NAME OR NOT arg_SOURCES)
    message(FATAL_ERROR "polyphase_test(NAME n SOURCES ... ROOMS ...): cannot read '${ARGV}'")
  endif()
  set(rooms ${arg_ROOMS})
  list(TRANSFORM rooms PREPEND polyphase_)
  set(target ${arg_NAME}_test)
  add_executable(${target} ${arg_SOURCES})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${target} PRIVATE ${rooms} ${arg_LIBS} polyphase_glue_flags GTest::gtest GTest::gtest_main)
  polyphase_precompiled(${target} tests)
  polyphase_unity(${target})
  polyphase_light(${target})
  target_compile_definitions(${target} PRIVATE POLYPHASE_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
    POLYPHASE_SANITIZED=${POLYPHASE_SANITIZED})
  if(arg_NEEDS_CPU)
    add_test(NAME ${arg_NAME} COMMAND sh -c "grep -qw ${arg_NEEDS_CPU} /proc/cpuinfo || exit 77; exec $0 --gtest_brief=1"
                                      $<TARGET_FILE:${target}>)
    set_tests_properties(${arg_NAME} PROPERTIES SKIP_RETURN_CODE 77)
  else()
    add_test(NAME ${arg_NAME} COMMAND ${target} --gtest_brief=1)
  endif()
  if("threads" IN_LIST arg_LABELS)
    add_dependencies(polyphase_thread_tests ${target})
  endif()
  if(NOT "meaning" IN_LIST arg_LABELS)
    add_dependencies(polyphase_optimised_tests ${target})
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 900)  # ends what hangs; a busy machine under a sanitizer is slow
  endif()
  set_tests_properties(${arg_NAME} PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}"
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} ENVIRONMENT "UBSAN_OPTIONS=print_stacktrace=1")
endfunction()
