# Finds what other people wrote and gives every piece one target name. `scripts/setup cpp` installs all of it.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(Python3 COMPONENTS Interpreter REQUIRED)
find_package(Protobuf REQUIRED)
find_package(nlohmann_json REQUIRED)
pkg_check_modules(libzip REQUIRED IMPORTED_TARGET libzip)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)
find_program(POLYPHASE_FLATC flatc REQUIRED)
if(POLYPHASE_PROGRAMS)
  find_package(fmt REQUIRED)
  find_package(CLI11 REQUIRED)
  find_package(PNG REQUIRED)
  pkg_check_modules(sndfile REQUIRED IMPORTED_TARGET sndfile)
endif()

# ONNX's own schema comes with the `onnx` package that requirements/cpp.txt pins; no copy of it lives here.
file(GLOB onnx_proto_found ${CMAKE_SOURCE_DIR}/.venv/lib/python3*/site-packages/onnx/onnx.proto)
list(POP_FRONT onnx_proto_found onnx_proto_first)
if(NOT onnx_proto_first)  # `pip install .` has the package elsewhere
  execute_process(
    COMMAND ${Python3_EXECUTABLE} -c "import importlib.util as u, os; print(os.path.dirname(u.find_spec('onnx').origin) + '/onnx.proto')"
    OUTPUT_STRIP_TRAILING_WHITESPACE OUTPUT_VARIABLE onnx_proto_first ERROR_QUIET)
endif()
set(POLYPHASE_ONNX_PROTO "${onnx_proto_first}" CACHE FILEPATH "onnx.proto of the pinned onnx package")
if(NOT EXISTS "${POLYPHASE_ONNX_PROTO}")
  message(FATAL_ERROR "onnx.proto was not found in .venv: run scripts/setup cpp, or pass -DPOLYPHASE_ONNX_PROTO=FILE "
                      "with the onnx.proto of an installed onnx package.")
endif()

# #include "onnx/onnx.pb.h", for the .cpp files of wire, import/onnx and export alone. Lite: no reflection, a third of the code.
set(onnx_generated ${CMAKE_BINARY_DIR}/generated/onnx_proto)
add_custom_command(
  OUTPUT ${onnx_generated}/onnx/onnx.pb.cc ${onnx_generated}/onnx/onnx.pb.h
  COMMAND ${CMAKE_COMMAND} -E make_directory ${onnx_generated}/onnx
  COMMAND ${CMAKE_COMMAND} -E copy ${POLYPHASE_ONNX_PROTO} ${onnx_generated}/onnx/onnx.proto
  COMMAND protobuf::protoc --proto_path=${onnx_generated} --cpp_out=lite:${onnx_generated} onnx/onnx.proto
  DEPENDS ${POLYPHASE_ONNX_PROTO}
  COMMENT "protoc onnx.proto")
add_library(polyphase_onnx_proto STATIC EXCLUDE_FROM_ALL ${onnx_generated}/onnx/onnx.pb.cc)
target_include_directories(polyphase_onnx_proto SYSTEM PUBLIC ${onnx_generated})
target_link_libraries(polyphase_onnx_proto PUBLIC protobuf::libprotobuf-lite)
target_compile_options(polyphase_onnx_proto PRIVATE -w)
if(POLYPHASE_SANITIZE)
  target_compile_options(polyphase_onnx_proto PRIVATE -O0)  # half a minute less
endif()
