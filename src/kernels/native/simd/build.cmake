# The vector loops once more for AVX2 and FMA; table.cpp chooses at run time.
file(GLOB simd_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.cpp)
list(FILTER simd_sources EXCLUDE REGEX "/table\\.cpp$")
set_source_files_properties(${simd_sources} PROPERTIES COMPILE_OPTIONS "-Wno-psabi")
target_compile_options(penstock_kernels PRIVATE $<$<CONFIG:Release>:-O3>)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  add_library(penstock_kernels_avx2 OBJECT ${simd_sources})
  target_include_directories(penstock_kernels_avx2 PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_compile_options(penstock_kernels_avx2 PRIVATE -mavx2 -mfma $<$<CONFIG:Release>:-O3>)
  target_compile_definitions(penstock_kernels_avx2 PRIVATE PENSTOCK_SIMD=avx2)
  target_link_libraries(penstock_kernels_avx2 PRIVATE OpenMP::OpenMP_CXX)
  target_sources(penstock_kernels PRIVATE $<TARGET_OBJECTS:penstock_kernels_avx2>)
  set_property(SOURCE ${CMAKE_CURRENT_LIST_DIR}/table.cpp
               APPEND PROPERTY COMPILE_DEFINITIONS PENSTOCK_HAS_AVX2_BUILD)

  # What is written for AVX-512 alone, and what serves any width of vectors.
  file(GLOB wide_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/../wide/*.cpp
       ${CMAKE_CURRENT_LIST_DIR}/winograd*.cpp)
  add_library(penstock_kernels_avx512 OBJECT ${wide_sources})
  target_include_directories(penstock_kernels_avx512 PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_compile_options(penstock_kernels_avx512 PRIVATE
    -mavx512f -mavx512vl -mavx512bw -mavx512dq -mfma -Wno-psabi $<$<CONFIG:Release>:-O3>)
  target_compile_definitions(penstock_kernels_avx512 PRIVATE PENSTOCK_SIMD=avx512)
  target_link_libraries(penstock_kernels_avx512 PRIVATE OpenMP::OpenMP_CXX)
  target_sources(penstock_kernels PRIVATE $<TARGET_OBJECTS:penstock_kernels_avx512>)
  set_property(SOURCE ${CMAKE_CURRENT_LIST_DIR}/../wide_table.cpp
               APPEND PROPERTY COMPILE_DEFINITIONS PENSTOCK_HAS_AVX512_BUILD)
endif()
