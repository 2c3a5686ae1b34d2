/* pytorch.h: back to PyTorch's own allocator, where a program asks for what its cudaMallocAsync one has not. */
#ifndef NP_HOOK_PYTORCH_H
#define NP_HOOK_PYTORCH_H

/* A library with kernels is being loaded: where it is PyTorch, its allocators are found. Costs next to nothing otherwise. */
void np_hook_pytorch_look(void);

#endif
