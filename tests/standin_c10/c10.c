/* c10.c: a library by the name of PyTorch's allocator. A program that has it loaded is taken for PyTorch; it does nothing. */
int c10_cuda_is_here(void);
int c10_cuda_is_here(void)
{
    return 1;
}
