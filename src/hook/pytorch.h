/* pytorch.h: back to PyTorch's own allocator, where a program asks for what its cudaMallocAsync one has not. */
#ifndef NP_HOOK_PYTORCH_H
#define NP_HOOK_PYTORCH_H

/* A library registers its kernels, called from there: where it is PyTorch's, its allocators are found, before any was asked for
 * anything. */
void np_hook_pytorch_look(const void *caller);

#endif
