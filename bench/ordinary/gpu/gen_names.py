import re,sys
t=open(sys.argv[1]+'/include/cupti_driver_cbid.h').read()
print('static const struct { int id; const char *name; } names[] = {')
for m in re.finditer(r'CUPTI_DRIVER_TRACE_CBID_(cu\w+)\s*=\s*(\d+)',t):
    print('    {%s, "%s"},'%(m.group(2),m.group(1)))
print('};')
