# polyphase_room(NAME n SOURCES ... ROOMS ... LIBS ... [GLUE]): the static library polyphase_<n> of one room of src/.
#
# SOURCES is an explicit, sorted list (none: a room of headers). ROOMS are the rooms that the table in ARCHITECTURE.md lets
# it include, so what is included wrongly also fails to link. LIBS are other people's libraries, for its own .cpp files. GLUE: it has
# no loops over elements worth optimising under a sanitizer.
function(polyphase_room)
  cmake_parse_arguments(PARSE_ARGV 0 arg "GLUE" "NAME" "SOURCES;ROOMS;LIBS")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_NAME)
    message(FATAL_ERROR "polyphase_room(NAME n SOURCES ... ROOMS ... LIBS ...): cannot read '${ARGV}'")
  endif()
  set(sorted ${arg_SOURCES})
  list(SORT sorted)
  if(NOT "${sorted}" STREQUAL "${arg_SOURCES}")
    message(FATAL_ERROR "room ${arg_NAME}: SOURCES must be sorted: ${sorted}")
  endif()

  set(rooms ${arg_ROOMS})
  list(TRANSFORM rooms PREPEND polyphase_)
  set(target polyphase_${arg_NAME})
  if(arg_SOURCES)
    add_library(${target} STATIC ${arg_SOURCES})
    target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
    set(kind loops)
    set(flags polyphase_flags)
    if(arg_GLUE)
      set(kind glue)
      set(flags polyphase_glue_flags)
    endif()
    target_link_libraries(${target} PUBLIC ${rooms} PRIVATE ${flags} ${arg_LIBS})
    polyphase_precompiled(${target} ${kind})
    polyphase_unity(${target})
  else()
    add_library(${target} INTERFACE)
    target_include_directories(${target} INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
    target_link_libraries(${target} INTERFACE ${rooms})
  endif()
endfunction()

# polyphase_light(TARGET...): code that runs once per model or test. Release compiles it with -O1, which takes the compiler a third
# less time; `polyphase compile` takes as long as with -O2.
function(polyphase_light)
  foreach(target IN LISTS ARGN)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  endforeach()
endfunction()

# polyphase_options_of_files(TARGET OPTIONS FILE...): compiles these files of a target with options of their own: one file that
# includes them all where others are compiled so (Unity.cmake).
function(polyphase_options_of_files target options)
  set(compiled ${ARGN})
  if(POLYPHASE_UNITY)
    set(compiled ${CMAKE_CURRENT_BINARY_DIR}/${target}_with_options.cpp)
    set(includes "")
    foreach(file IN LISTS ARGN)
      string(APPEND includes "#include \"${CMAKE_CURRENT_SOURCE_DIR}/${file}\"\n")
    endforeach()
    file(CONFIGURE OUTPUT ${compiled} CONTENT "${includes}" @ONLY)
    target_sources(${target} PRIVATE ${compiled})
    set_source_files_properties(${ARGN} PROPERTIES HEADER_FILE_ONLY ON)
  endif()
  set_source_files_properties(${compiled} PROPERTIES COMPILE_OPTIONS "${options}" SKIP_PRECOMPILE_HEADERS ON)
endfunction()

# polyphase_small(TARGET) or polyphase_small(TARGET FILE...): code that runs once per load or call, not per element. In Release it is
# compiled for size, which halves it: libpolyphase_runtime has 5 MB to live in.
function(polyphase_small target)
  if(ARGN)
    polyphase_options_of_files(${target} "$<$<CONFIG:Release>:-Os>" ${ARGN})
  else()
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-Os>)
    polyphase_precompiled(${target} small)
  endif()
endfunction()
