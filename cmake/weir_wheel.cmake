# What goes into the wheel (pyproject.toml, tools/wheel): the component `wheel`, laid out as a build folder is, so that each
# part finds the others the same way: torch_weir/bin/weir, torch_weir/lib, torch_weir/lib/emulated_gpu.
#
# Built by pip, the compile cache of tools/setup is used where there is one.
if(SKBUILD)
  find_program(WEIR_CCACHE ccache)
  if(WEIR_CCACHE)
    foreach(language C CXX)
      set(CMAKE_${language}_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}" CCACHE_NOHASHDIR=1
          "${WEIR_CCACHE}")
    endforeach()
  endif()
endif()

# weir_wheel_parts(): the target `wheel_parts` and the rules that install it, Debian's libraries that it needs included.
# (Debian's archives of Abseil cannot be linked into shared libraries: they are not position independent.)
function(weir_wheel_parts)
  add_custom_target(wheel_parts)
  add_dependencies(wheel_parts product weir_emulated_nvml)
  # The same path in the build and in the wheel: what CMake would change on the way is padded with empty entries, which mean
  # the working folder.
  set_target_properties(weir weir_core weir_emulator weir_emulated_nvml PROPERTIES BUILD_WITH_INSTALL_RPATH TRUE
                        INSTALL_RPATH "$ORIGIN;$ORIGIN/../lib")
  install(TARGETS weir RUNTIME DESTINATION torch_weir/bin COMPONENT wheel)
  foreach(target ${WEIR_LIBRARIES} weir_emulated_nvml)
    if(TARGET ${target})
      set(folder torch_weir/lib)
      if(target MATCHES "emul")
        set(folder torch_weir/lib/emulated_gpu)
      endif()
      install(TARGETS ${target} LIBRARY DESTINATION ${folder} COMPONENT wheel)
    endif()
  endforeach()
  install(CODE "
    execute_process(COMMAND \"${WEIR_PYTHON}\" -B \"${CMAKE_SOURCE_DIR}/tools/gpu_check/bundle.py\"
                            --needed \"\${CMAKE_INSTALL_PREFIX}/torch_weir\" COMMAND_ERROR_IS_FATAL ANY)" COMPONENT wheel)
endfunction()
