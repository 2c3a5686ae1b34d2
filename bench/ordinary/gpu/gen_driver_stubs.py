# every function of cuda.h that driver.c lacks: it returns CUDA_ERROR_NOT_SUPPORTED
import re,subprocess,sys
have=set(re.findall(r'^CUresult (cu\w+)\(',open('driver.c').read(),re.M))
names=[l.split()[-1] for l in subprocess.run(['nm','-D','--defined-only',sys.argv[1]+'/lib64/stubs/libcuda.so'],capture_output=True,text=True).stdout.splitlines()]
names=sorted(set(n for n in names if n.startswith('cu') and n not in have))
print('/* generated */\n#include <stdio.h>\n#include <stdlib.h>')
print('static int no(const char *n){ if (getenv("FAKE_VERBOSE")) fprintf(stderr,"fakegpu: driver stub %s\\n",n); return 801; }')
for n in names: print('int %s(void){ return no("%s"); }'%(n,n))
