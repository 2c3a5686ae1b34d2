#include <stdio.h>
#include <string.h>
#include "swap/bound.h"
#include "swap/bound_overhead.h"
#include "base/clock.h"
int main(int argc,char**argv){
  for(int a=1;a<argc;a++){ neap_trace*t; neap_error e; if(neap_trace_read(argv[a],NULL,&e,&t)){continue;}
   np_period p; np_period_find(t,NULL,&p); neap_info *inf; neap_info_make(t,512,NULL,&e,&inf); double pl=(double)inf->peak_load; neap_info_free(inf);
   const char*b=strrchr(argv[a],'/'); 
   for(int m=0;m<2;m++){ np_timeline tl; np_timeline_options o={512,1,m?NP_DIRECTIONS_ANY:NP_DIRECTIONS_CAREFUL}; np_timeline_make(&p,&o,NULL,&tl);
    np_link l={50,50,0,0}; 
    printf("%-30s %s:",b?b+1:argv[a],m?"any":"car");
    double eps[3]={0,0.001,0.01};
    for(int q=0;q<3;q++){ uint64_t M; np_bound_peak(&tl,&l,eps[q],&M); double ov; uint64_t t0=np_clock_ns(); np_bound_overhead(&tl,&l,M,&ov); double s=(double)(np_clock_ns()-t0)/1e9; uint64_t lo=M,hi=tl.n_execs?0:0; for(uint32_t k=0;k<tl.n_execs;k++) if(tl.needed.items[k]>hi)hi=tl.needed.items[k]; if(ov>eps[q]*tl.period_ns*1.000001) while(hi-lo>(hi>>11)){uint64_t mid=lo+(hi-lo)/2; double v; np_bound_overhead(&tl,&l,mid,&v); if(v>eps[q]*tl.period_ns) lo=mid; else hi=mid;} printf("  eps %.3f red %.2f ov %.4f true red %.2f (%.3fs)",eps[q],100*(1-(double)M/pl),ov/tl.period_ns,100*(1-(double)lo/pl),s);} 
    printf("\n");
    np_timeline_free(&tl);} 
   np_period_free(&p); neap_trace_free(t);} }
