# Compiles one cubin and keeps what the assembler says about registers and spills.
#   cmake -DNVCC=nvcc -DFLAGS="..." -DARCHITECTURE=90 -DINCLUDE=dir,dir -DSOURCE=x.cu -DOUTPUT=x.cubin -P compile_cubin.cmake
separate_arguments(flags UNIX_COMMAND "${FLAGS}")
string(REPLACE "," ";-I;" includes "-I;${INCLUDE}")
execute_process(
  COMMAND ${NVCC} ${flags} -cubin -arch=sm_${ARCHITECTURE} ${includes} -Xptxas -v -MD -MF ${OUTPUT}.d -o ${OUTPUT} ${SOURCE}
  RESULT_VARIABLE status
  OUTPUT_VARIABLE report
  ERROR_VARIABLE report)
file(WRITE "${OUTPUT}.report.txt" "${report}")
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${report}")
endif()
string(REGEX MATCHALL "[^\n]*(warning|[1-9][0-9]* bytes spill)[^\n]*" complaints "${report}")
foreach(line IN LISTS complaints)
  message(STATUS "${SOURCE}: ${line}")
endforeach()
