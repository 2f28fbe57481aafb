# One library a folder, with the house's warnings and standard. A folder links only what it names, so a dependency that
# points the wrong way does not link.

option(WEFT_TIDY "Run clang-tidy beside the compiler" OFF)
set(WEFT_SANITIZE "" CACHE STRING "Sanitizers, e.g. address,undefined")

add_library(weft_options INTERFACE)
target_compile_features(weft_options INTERFACE cxx_std_20)
# Debian builds SystemC as C++17; a C++20 user must say so, or the library's version symbol is missing at link time.
target_compile_definitions(weft_options INTERFACE SC_CPLUSPLUS=201703L)
target_compile_options(weft_options INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wnon-virtual-dtor
                       -Wold-style-cast -Woverloaded-virtual $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict> -Werror)
target_include_directories(weft_options INTERFACE ${PROJECT_SOURCE_DIR})
if(WEFT_SANITIZE)
  # What they find ends the program. Not in a target with WEFT_GUEST, which other programs load.
  set(sanitized $<NOT:$<BOOL:$<TARGET_PROPERTY:WEFT_GUEST>>>)
  target_compile_options(weft_options INTERFACE
    $<${sanitized}:-fsanitize=${WEFT_SANITIZE}> $<${sanitized}:-fno-sanitize-recover=all> -fno-omit-frame-pointer
    # GCC 12 finds false ones in <regex> once it is instrumented.
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  target_link_options(weft_options INTERFACE $<${sanitized}:-fsanitize=${WEFT_SANITIZE}>)
endif()

# weft_library(name PUBLIC deps... PRIVATE deps...): all .cpp files of the current folder and of those in it.
function(weft_library name)
  cmake_parse_arguments(ARG "" "" "PUBLIC;PRIVATE" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp ${CMAKE_CURRENT_SOURCE_DIR}/*/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
  if(NOT sources)
    add_library(weft_${name} INTERFACE)
    target_link_libraries(weft_${name} INTERFACE weft_options ${ARG_PUBLIC} ${ARG_PRIVATE})
    return()
  endif()
  add_library(weft_${name} STATIC ${sources})
  target_link_libraries(weft_${name} PUBLIC weft_options ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE})
  # Readers, writers and commands spend their time in libraries: half the compile time for the same speed.
  if(name MATCHES "^(cli|traces|workloads)$")
    target_compile_options(weft_${name} PRIVATE $<$<CONFIG:Release>:-O1>)
    target_precompile_headers(weft_${name} PRIVATE <nlohmann/json.hpp> <fmt/format.h> <algorithm> <filesystem>
                              <functional> <map> <string> <vector>)
  endif()
  if(WEFT_TIDY)
    set_target_properties(weft_${name} PROPERTIES CXX_CLANG_TIDY clang-tidy)
  endif()
endfunction()

# weft_test(folder deps...): tests/<folder>/*_test.cpp as one executable; each case is its own process under ctest.
# Suites named *Formula*, *Validation* or *EndToEnd* get that label, all others "unit".
function(weft_test folder)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*_test.cpp)
  if(NOT sources)
    return()
  endif()
  set(target weft_test_${folder})
  add_executable(${target} ${sources} ${CMAKE_CURRENT_SOURCE_DIR}/test_main.cpp)
  target_link_libraries(${target} PRIVATE weft_options ${ARGN} GTest::gtest GTest::gmock PkgConfig::SYSTEMC)
  # Tests are built often and run briefly: little optimisation, and the heavy headers once a folder.
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O0>)
  target_precompile_headers(${target} PRIVATE <gtest/gtest.h> <gmock/gmock.h> <nlohmann/json.hpp> <fmt/format.h>
                            <filesystem> <fstream> <functional> <map> <string> <vector>)
  target_compile_definitions(${target} PRIVATE WEFT_SOURCE_DIR="${PROJECT_SOURCE_DIR}" WEFT_BINARY="$<TARGET_FILE:weft>")
  add_dependencies(${target} weft)
  foreach(label unit formula validation e2e)
    set(filter_unit "-*Formula*:*Validation*:*EndToEnd*")
    set(filter_formula "*Formula*")
    set(filter_validation "*Validation*")
    set(filter_e2e "*EndToEnd*")
    gtest_discover_tests(${target} TEST_FILTER "${filter_${label}}" TEST_LIST ${target}_${label}_list
                         DISCOVERY_TIMEOUT 60 PROPERTIES LABELS ${label} TIMEOUT 900)
  endforeach()
endfunction()

# weft_compile_as_one(name files...): a way that crosses many small functions in these files is inlined. Most of them have
# one caller: left to its own limits, GCC calls each, and passes all through memory.
function(weft_compile_as_one name)
  set_source_files_properties(${ARGN} PROPERTIES UNITY_GROUP hot)
  set_target_properties(weft_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  target_compile_options(weft_${name} PRIVATE $<$<AND:$<CONFIG:Release>,$<CXX_COMPILER_ID:GNU>>:
      --param=max-inline-insns-single=1000 --param=max-inline-insns-auto=400 --param=large-function-growth=2000
      --param=inline-unit-growth=500>)
endfunction()

# Compiles files of the library `size` at a time, those that match the pattern in its folder. Names without a linkage of
# their own, in unnamed namespaces, have to differ among them.
function(weft_compile_together name size pattern)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${pattern})
  set(index 0)
  foreach(source IN LISTS sources)
    math(EXPR group "${index} / ${size}")
    string(MAKE_C_IDENTIFIER "${pattern}${group}" group)
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group})
    math(EXPR index "${index} + 1")
  endforeach()
  set_target_properties(weft_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()
