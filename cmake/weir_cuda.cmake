# CUDA and NVTX headers, taken from the wheels that torch depends on (nvidia/cu13/include beside torch).
# No system CUDA toolkit is looked for: a machine may have another version, or none.
execute_process(
  COMMAND "${WEIR_PYTHON}" -c "import sysconfig; print(sysconfig.get_paths()['purelib'])"
  OUTPUT_VARIABLE WEIR_SITE_PACKAGES OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE _rc)
if(NOT _rc EQUAL 0)
  message(FATAL_ERROR "WEIR_PYTHON=${WEIR_PYTHON} does not run. tools/setup makes the environment (.venv).")
endif()
set(WEIR_CUDA_INCLUDE "${WEIR_SITE_PACKAGES}/nvidia/cu13/include")
if(NOT EXISTS "${WEIR_CUDA_INCLUDE}/cuda.h" OR NOT EXISTS "${WEIR_CUDA_INCLUDE}/nvtx3")
  message(FATAL_ERROR "No CUDA headers in ${WEIR_CUDA_INCLUDE}: the wheels that torch depends on carry them.")
endif()
# cuda_runtime.h, which torch's headers include, needs crt/: the runtime's wheel lacks it, Triton's has it.
if(NOT EXISTS "${WEIR_CUDA_INCLUDE}/crt/host_config.h")
  message(FATAL_ERROR "No crt/host_config.h in ${WEIR_CUDA_INCLUDE}: tools/setup links it there from Triton's wheel.")
endif()
add_library(weir_cuda_headers INTERFACE)
add_library(weir::cuda_headers ALIAS weir_cuda_headers)
target_include_directories(weir_cuda_headers SYSTEM INTERFACE "${WEIR_CUDA_INCLUDE}")
