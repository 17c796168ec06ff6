# Computations on fields, whose kernels exist once per storage (kernels/storage): their OpenCL
# source is compiled after storage/storage.cl, three times.
function(perfkit_field_computation NAME)
  set(PERFKIT_FIELD_STORAGE ${CMAKE_CURRENT_SOURCE_DIR}/storage/storage.cl)
  perfkit_computation(${NAME} ${ARGN})
endfunction()

perfkit_field_computation(conv2d conv2d/module.c conv2d/plan.c conv2d/cpu.c conv2d/reference.c
  conv2d/cudnn.c)
perfkit_field_computation(norm norm/module.c norm/cpu.c)
perfkit_field_computation(activation activation/module.c activation/cpu.c)
perfkit_field_computation(noise noise/module.c noise/cpu.c)

# Their inner loops are what a CPU backend is for; -O2 of older compilers leaves them scalar.
set_source_files_properties(conv2d/cpu.c conv2d/reference.c norm/cpu.c activation/cpu.c noise/cpu.c
  PROPERTIES COMPILE_OPTIONS -O3)
