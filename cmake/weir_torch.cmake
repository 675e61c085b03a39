# The torch minors that Weir is built for: one plugin and one library of emulated kernels for each, from the same sources.
#
# Each minor has a Python environment of its own. The default one's is WEIR_PYTHON; of another it is .venv-MINOR, which
# tools/setup --torch MINOR makes. A minor without its environment is left out.
#
# Of the minors in between only the headers are needed (.headers-MINOR, tools/setup --torch all): their plugins are built, and
# nothing here runs them.
#
# Sets WEIR_TORCH_MINORS (such as "2_15;2_11"), WEIR_TORCH_BUILT (those of which only a plugin is built), WEIR_TORCH_VERSIONS (their names in messages, oldest first) and, for each
# minor, WEIR_TORCH_PYTHON_<minor>, WEIR_TORCH_SITE_<minor> (its site-packages) and weir_torch_headers_<minor> (a target).
set(WEIR_TORCH_DEFAULT 2_15)
set(WEIR_TORCH_OTHERS 2_11)
set(WEIR_TORCH_BETWEEN 2_12 2_13 2_14)

# weir_torch_headers(MINOR INCLUDE CUDA_SITE): a target with torch's headers and those of CUDA in a site-packages folder.
function(weir_torch_headers minor include cuda_site)
  add_library(weir_torch_headers_${minor} INTERFACE)
  target_include_directories(weir_torch_headers_${minor} SYSTEM INTERFACE
    "${include}" "${include}/torch/csrc/api/include" "${cuda_site}/nvidia/cu13/include")
endfunction()

# weir_torch_minor(MINOR PYTHON SITE_PACKAGES)
function(weir_torch_minor minor python site)
  if(NOT EXISTS "${site}/torch/lib/libtorch_cuda.so")
    message(FATAL_ERROR "No CUDA build of torch in ${site}; configure with -DWEIR_BUILD_PLUGIN=OFF to build without.")
  endif()
  foreach(header cuda.h crt/host_config.h)
    if(NOT EXISTS "${site}/nvidia/cu13/include/${header}")
      message(FATAL_ERROR "No ${header} in ${site}/nvidia/cu13/include: tools/setup makes the environment complete.")
    endif()
  endforeach()
  set(WEIR_TORCH_PYTHON_${minor} "${python}" PARENT_SCOPE)
  set(WEIR_TORCH_SITE_${minor} "${site}" PARENT_SCOPE)
  weir_torch_headers(${minor} "${site}/torch/include" "${site}")
endfunction()

set(WEIR_TORCH_MINORS "")
set(WEIR_TORCH_BUILT "")
if(WEIR_BUILD_PLUGIN)
  weir_torch_minor(${WEIR_TORCH_DEFAULT} "${WEIR_PYTHON}" "${WEIR_SITE_PACKAGES}")
  list(APPEND WEIR_TORCH_MINORS ${WEIR_TORCH_DEFAULT})
  foreach(minor ${WEIR_TORCH_OTHERS})
    string(REPLACE "_" "." version "${minor}")
    set(WEIR_PYTHON_${minor} "${CMAKE_SOURCE_DIR}/.venv-${version}/bin/python" CACHE FILEPATH "Python with torch ${version}.")
    if(EXISTS "${WEIR_PYTHON_${minor}}")
      execute_process(
        COMMAND "${WEIR_PYTHON_${minor}}" -c "import sysconfig; print(sysconfig.get_paths()['purelib'])"
        OUTPUT_VARIABLE site OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
      weir_torch_minor(${minor} "${WEIR_PYTHON_${minor}}" "${site}")
      list(APPEND WEIR_TORCH_MINORS ${minor})
    else()
      message(STATUS "torch ${version} is left out: no ${WEIR_PYTHON_${minor}} (tools/setup --torch ${version})")
    endif()
  endforeach()
endif()
if(WEIR_BUILD_PLUGIN)
  foreach(minor ${WEIR_TORCH_BETWEEN})
    string(REPLACE "_" "." version "${minor}")
    if(EXISTS "${CMAKE_SOURCE_DIR}/.headers-${version}/torch/include")
      weir_torch_headers(${minor} "${CMAKE_SOURCE_DIR}/.headers-${version}/torch/include" "${WEIR_SITE_PACKAGES}")
      set(WEIR_TORCH_SITE_${minor} "${CMAKE_SOURCE_DIR}/.headers-${version}")
      list(APPEND WEIR_TORCH_BUILT ${minor})
    endif()
  endforeach()
endif()
set(WEIR_TORCH_VERSIONS ${WEIR_TORCH_MINORS} ${WEIR_TORCH_BUILT})
if(NOT WEIR_TORCH_VERSIONS)
  set(WEIR_TORCH_VERSIONS ${WEIR_TORCH_DEFAULT})
endif()
list(SORT WEIR_TORCH_VERSIONS COMPARE NATURAL)
list(JOIN WEIR_TORCH_VERSIONS ", " WEIR_TORCH_VERSIONS)
string(REPLACE "_" "." WEIR_TORCH_VERSIONS "${WEIR_TORCH_VERSIONS}")
