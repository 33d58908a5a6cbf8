// swm_switch(void** save, void* to): keeps the callee-saved registers on the stack that is left,
// stores its stack pointer at *save, and goes on where `to` was left. x86-64, System V.
#if defined(__CET__)
#include <cet.h>
#endif
  .text
  .globl swm_switch
  .hidden swm_switch
  .type swm_switch, @function
swm_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size swm_switch, . - swm_switch
  .section .note.GNU-stack, "", @progbits
