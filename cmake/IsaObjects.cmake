# polyphase_isa_objects(TARGET t CLUSTER c SOURCES ... TABLE symbol): the kernels of one instruction-set cluster.
#
#   a.cpp b.cpp ──(flags of the cluster)──▶ a.o b.o ──ld -r──▶ one.o ──objcopy──▶ <t>_<c>.o with ONE global symbol
#
# The same sources are compiled once per cluster, with POLYPHASE_CLUSTER=<cluster>, and the result is added to the target.
# Every symbol but <symbol>_<cluster> (default polyphase_cpu_rows_<cluster>) becomes local. Without that the linker would
# keep one copy of each inline function of the whole program, and that may be the one with AVX-512 in it.
# The kernels are optimised in every build type but Sanitize. A test reads the symbols of every such object.
set(isa_avx2 -mavx2 -mfma -mf16c -mbmi -mbmi2)
set(isa_avx512 ${isa_avx2} -mavx512f -mavx512bw -mavx512vl -mavx512dq -mprefer-vector-width=512)
set(POLYPHASE_ISA_scalar -O2)  # for CPUs without AVX2, so the last percent matters less than half the size
set(POLYPHASE_ISA_avx2 ${isa_avx2})
set(POLYPHASE_ISA_avx2_vnni ${isa_avx2} -mavxvnni)
set(POLYPHASE_ISA_avx512 ${isa_avx512})
set(POLYPHASE_ISA_avx512_vnni ${isa_avx512} -mavx512vnni)
set(POLYPHASE_ISA_avx512_bf16 ${isa_avx512} -mavx512bf16)
set(POLYPHASE_ISA_avx512_fp16 ${isa_avx512} -mavx512fp16)
set(POLYPHASE_ISA_amx ${isa_avx512} -mavx512bf16 -mamx-tile -mamx-bf16)
# What `native` takes instead where the CPU has it.
set(POLYPHASE_ISA_WIDER_scalar avx2)
set(POLYPHASE_ISA_WIDER_avx2 avx512)
# What /proc/cpuinfo calls a cluster's last instructions.
set(POLYPHASE_ISA_FLAG_scalar fpu)
set(POLYPHASE_ISA_FLAG_avx2 avx2)
set(POLYPHASE_ISA_FLAG_avx512 avx512vl)
set(POLYPHASE_ISA_FLAG_avx512_bf16 avx512_bf16)
set(POLYPHASE_ISA_FLAG_amx amx_bf16)

if(POLYPHASE_SANITIZE)
  # -O3 takes the compiler three times as long to instrument. So does asking of every pointer whether it is null, whether a sum with it
  # wraps around and how large its object is, of which kernels have thousands; where one leads out of its memory, AddressSanitizer
  # sees what is read or written there.
  set(POLYPHASE_ISA_COMMON -O1 -fno-sanitize=pointer-overflow,null,object-size)
  set(POLYPHASE_ISA_scalar "")
else()
  set(POLYPHASE_ISA_COMMON -O3)
endif()
list(APPEND POLYPHASE_ISA_COMMON -ffp-contract=fast -fno-math-errno -fno-trapping-math)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Static locals of inline functions would be "unique" symbols, which objcopy cannot make local.
  # Copies of whole kernels for single constants made the objects a third larger and nothing faster.
  list(APPEND POLYPHASE_ISA_COMMON -fno-gnu-unique -fno-ipa-cp-clone)
  if(NOT POLYPHASE_SANITIZE)
    # Unrolls whole loops of a constant count, whose vectors then stay in registers, where a file asks for -O2 as well.
    list(APPEND POLYPHASE_ISA_COMMON -fpeel-loops)
    list(APPEND POLYPHASE_ISA_scalar -fno-peel-loops)
  endif()
endif()
if(NOT POLYPHASE_SANITIZE)
  # Kernels throw nothing and nothing is thrown through them: tables to unwind them are 70 KB that nobody reads.
  list(APPEND POLYPHASE_ISA_COMMON -U_GLIBCXX_ASSERTIONS -fno-exceptions -fno-asynchronous-unwind-tables)
endif()
if(POLYPHASE_COVERAGE)
  list(APPEND POLYPHASE_ISA_COMMON -fno-sanitize-coverage=${POLYPHASE_COVERAGE})
endif()

# GNU binutils also beside clang: lld has no --force-group-allocation, which dissolves the COMDAT groups of inline functions.
find_program(POLYPHASE_LD NAMES ld.bfd REQUIRED)
find_program(POLYPHASE_OBJCOPY NAMES x86_64-linux-gnu-objcopy objcopy REQUIRED)
find_program(POLYPHASE_NM NAMES nm REQUIRED)

# Whether the CPU at hand has the cluster's instructions; true where nothing tells.
function(polyphase_runs_here cluster out)
  set(${out} TRUE PARENT_SCOPE)
  if(DEFINED POLYPHASE_ISA_FLAG_${cluster} AND EXISTS /proc/cpuinfo)
    file(STRINGS /proc/cpuinfo lines REGEX "^flags.* ${POLYPHASE_ISA_FLAG_${cluster}}( |$)" LIMIT_COUNT 1)
    if(NOT lines)
      set(${out} FALSE PARENT_SCOPE)
    endif()
  endif()
endfunction()

option(POLYPHASE_WATCH_ALL "AddressSanitizer watches the kernels of all clusters that run here, not only the widest" OFF)

# Whether a sanitizer has something to see in the cluster's kernels. What never runs needs no watching: two minutes of a processor for
# each build. Of those that run it is the widest, which sessions run: threads meet in the same way in all clusters, and kernels are the
# same templates (preset asan-all watches them all).
function(polyphase_is_watched cluster out)
  polyphase_runs_here(${cluster} watched)
  if((POLYPHASE_SANITIZE MATCHES thread OR NOT POLYPHASE_WATCH_ALL) AND DEFINED POLYPHASE_ISA_WIDER_${cluster})
    polyphase_runs_here(${POLYPHASE_ISA_WIDER_${cluster}} wider)
    if(wider)
      set(watched FALSE)
    endif()
  endif()
  set(${out} ${watched} PARENT_SCOPE)
endfunction()

function(polyphase_isa_objects)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "TARGET;CLUSTER;TABLE" "SOURCES")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCES OR NOT DEFINED POLYPHASE_ISA_${arg_CLUSTER})
    message(FATAL_ERROR "polyphase_isa_objects(TARGET t CLUSTER c SOURCES ...): cannot read '${ARGV}'")
  endif()
  if(NOT arg_TABLE)
    set(arg_TABLE polyphase_cpu_rows)
  endif()
  set(symbol ${arg_TABLE}_${arg_CLUSTER})
  set(name ${arg_TARGET}_${arg_CLUSTER})

  add_library(${name} OBJECT ${arg_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(${name} PRIVATE polyphase_flags)
  target_compile_definitions(${name} PRIVATE POLYPHASE_CLUSTER=${arg_CLUSTER})
  target_compile_options(${name} PRIVATE ${POLYPHASE_ISA_COMMON} ${POLYPHASE_ISA_${arg_CLUSTER}})
  polyphase_is_watched(${arg_CLUSTER} watched)
  polyphase_runs_here(${arg_CLUSTER} runs)
  if(POLYPHASE_SANITIZE AND NOT watched)
    target_compile_options(${name} PRIVATE -fno-sanitize=all)
    if(NOT runs OR POLYPHASE_SANITIZE MATCHES thread)
      target_compile_options(${name} PRIVATE -O0)
      target_compile_definitions(${name} PRIVATE POLYPHASE_INLINES_NOTHING)
      set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)  # most of that time is headers
    endif()
  endif()

  set(joined ${CMAKE_CURRENT_BINARY_DIR}/${name}.joined.o)
  set(sealed ${CMAKE_CURRENT_BINARY_DIR}/${name}.o)
  add_custom_command(
    OUTPUT ${sealed}
    COMMAND ${POLYPHASE_LD} -r --force-group-allocation -o ${joined} $<TARGET_OBJECTS:${name}>
    COMMAND ${POLYPHASE_OBJCOPY} --keep-global-symbol=${symbol} ${joined} ${sealed}
    DEPENDS ${name} $<TARGET_OBJECTS:${name}>
    COMMAND_EXPAND_LISTS VERBATIM
    COMMENT "Sealing ${name}")
  set_source_files_properties(${sealed} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  target_sources(${arg_TARGET} PRIVATE ${sealed})
  set_property(GLOBAL APPEND PROPERTY POLYPHASE_SEALED_${arg_TARGET} ${sealed})  # a static library of it asks

  if(POLYPHASE_TESTS)
    set(sanitized "")
    if(POLYPHASE_SANITIZE)
      set(sanitized --sanitized)
    endif()
    add_test(NAME house_isa_${name}
      COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/house/check_isa_object.py
              --nm ${POLYPHASE_NM} --table ${symbol} ${sanitized} ${sealed})
  endif()
endfunction()

# polyphase_isa_test(NAME n SOURCES ... CLUSTERS ...): a GoogleTest program per cluster, built as a whole with its flags.
# It is skipped on a CPU without the cluster, before it starts: even its static initialisers may use the instructions.
function(polyphase_isa_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME" "SOURCES;CLUSTERS;LIBS")
  foreach(cluster IN LISTS arg_CLUSTERS)
    set(name ${arg_NAME}_${cluster})
    polyphase_test(NAME ${name} SOURCES ${arg_SOURCES} LIBS ${arg_LIBS} NEEDS_CPU ${POLYPHASE_ISA_FLAG_${cluster}})
    target_compile_definitions(${name}_test PRIVATE POLYPHASE_CLUSTER=${cluster})
    target_compile_options(${name}_test PRIVATE ${POLYPHASE_ISA_COMMON} ${POLYPHASE_ISA_${cluster}})
    set_target_properties(${name}_test PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)  # flags of its own
  endforeach()
endfunction()
