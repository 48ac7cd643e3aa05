# What is installed for programs of others: libpolyphase (everything) and libpolyphase_runtime (loads and runs engines; no
# importer, no protobuf), their headers, CMake package and pkg-config files.
#
#   rooms' objects, as the program `polyphase` links them ──▶ libpolyphase.so.0          ◀── api/exports.map decides what
#   the same without import, passes, lower, graph ──────────▶ libpolyphase_runtime.so.0      is visible
#
# Nothing is compiled again: the objects are position independent anyway. With BUILD_SHARED_LIBS=OFF both are static
# archives. Sanitizer builds have no installed libraries: their tests link the rooms.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
option(BUILD_SHARED_LIBS "Shared libpolyphase and libpolyphase_runtime; OFF: static archives" ON)
set(POLYPHASE_RUNTIME_ROOMS base ops plugin kernel memory engine backends runtime api_run)
set(POLYPHASE_COMPILE_ROOMS graph wire import import_compose import_network import_onnx import_torch export passes lower tune api)

# polyphase_library(NAME n TARGET t ROOTS ... ROOMS ... SYSTEM ...): lib<n> of ROOMS, with all of ROOTS and what they reach.
function(polyphase_library)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;EXPORT" "ROOTS;ROOMS;PRIVATE_LIBS;SYSTEM")
  set(target polyphase_lib_${arg_EXPORT})
  set(rooms ${arg_ROOMS})
  list(TRANSFORM rooms PREPEND polyphase_)
  set(objects "")
  if(BUILD_SHARED_LIBS)
    foreach(room IN LISTS arg_ROOTS)
      list(APPEND objects $<TARGET_OBJECTS:polyphase_${room}>)
    endforeach()
    add_library(${target} SHARED ${objects})
    target_link_libraries(${target} PRIVATE ${rooms})
    set(map ${CMAKE_BINARY_DIR}/generated/exports.map)
    target_link_options(${target} PRIVATE -Wl,--version-script=${map} -Wl,-Bsymbolic -Wl,--gc-sections -Wl,--no-undefined)
    set_target_properties(${target} PROPERTIES LINK_DEPENDS ${map} VERSION ${PROJECT_VERSION} SOVERSION ${POLYPHASE_ABI})
  else()
    foreach(room IN LISTS arg_ROOMS)
      get_property(sealed GLOBAL PROPERTY POLYPHASE_SEALED_polyphase_${room})
      list(APPEND objects $<TARGET_OBJECTS:polyphase_${room}> ${sealed})
    endforeach()
    foreach(other IN LISTS arg_PRIVATE_LIBS)
      list(APPEND objects $<TARGET_OBJECTS:${other}>)
    endforeach()
    add_library(${target} STATIC ${objects})
    add_dependencies(${target} ${rooms})
    target_link_libraries(${target} INTERFACE ${arg_SYSTEM} stdc++ m pthread)  # C programs link with the C compiler
  endif()
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${arg_NAME} EXPORT_NAME ${arg_EXPORT} LINKER_LANGUAGE CXX
    ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
  target_include_directories(${target} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

  install(TARGETS ${target} EXPORT Polyphase-${arg_EXPORT}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${arg_EXPORT} NAMELINK_COMPONENT ${arg_EXPORT}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${arg_EXPORT})
  install(EXPORT Polyphase-${arg_EXPORT} NAMESPACE Polyphase:: COMPONENT ${arg_EXPORT}
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Polyphase)

  # The .pc file finds its prefix from where it lies, so that the tree may be moved.
  file(RELATIVE_PATH POLYPHASE_PC_PREFIX /usr/${CMAKE_INSTALL_LIBDIR}/pkgconfig /usr)
  set(POLYPHASE_PC_NAME ${arg_NAME})
  set(POLYPHASE_PC_PRIVATE "-lstdc++ -lm -pthread")
  foreach(library IN LISTS arg_SYSTEM)
    string(PREPEND POLYPHASE_PC_PRIVATE "-l${library} ")
  endforeach()
  if(BUILD_SHARED_LIBS)
    set(POLYPHASE_PC_PRIVATE "")
  endif()
  configure_file(${PROJECT_SOURCE_DIR}/cmake/package/polyphase.pc.in ${CMAKE_BINARY_DIR}/generated/${arg_NAME}.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/generated/${arg_NAME}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT ${arg_EXPORT})
endfunction()

# The C ABI's number: raised when a C function changes or goes (abi/README.md). It is the soname's and the symbols' version.
set(POLYPHASE_ABI 0)
configure_file(${PROJECT_SOURCE_DIR}/src/api/exports.map.in ${CMAKE_BINARY_DIR}/generated/exports.map @ONLY)

polyphase_library(NAME polyphase_runtime EXPORT runtime
  ROOTS api_run ROOMS ${POLYPHASE_RUNTIME_ROOMS} SYSTEM xxhash)
polyphase_library(NAME polyphase EXPORT polyphase
  ROOTS api_run api ROOMS ${POLYPHASE_COMPILE_ROOMS} ${POLYPHASE_RUNTIME_ROOMS}
  PRIVATE_LIBS polyphase_onnx_proto SYSTEM protobuf-lite zip xxhash)

foreach(part runtime polyphase)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/polyphase DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT ${part})
endforeach()
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/package/PolyphaseConfig.cmake.in
  ${CMAKE_BINARY_DIR}/generated/PolyphaseConfig.cmake INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Polyphase)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/generated/PolyphaseConfigVersion.cmake COMPATIBILITY SameMinorVersion)
foreach(part runtime polyphase)
  install(FILES ${CMAKE_BINARY_DIR}/generated/PolyphaseConfig.cmake ${CMAKE_BINARY_DIR}/generated/PolyphaseConfigVersion.cmake
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Polyphase COMPONENT ${part})
endforeach()
