/* topics.c: short answers to what people ask first. The documents have the long ones.
 *
 * Lists that the library has (states, departures) are taken from its own tables, so that they cannot differ. */
#include "topics.h"

#include <string.h>

#include "neap.h"

#define STATE_LINE(id, word, meaning) "    " word ": " meaning "\n"
#define DEPARTURE_LINE(id, meaning) "    " meaning "\n"

const topic all_topics[] = {
    {"limit", "how much device memory may be held, and what can be asked for",
     "The limit is the most device memory that neap holds. It is about the footprint: what the device really gives\n"
     "away, holes between blocks included. It is not about the load, the sum of live blocks, which is lower.\n"
     "\n"
     "    --limit 8GiB   in bytes: holds from the first allocation on\n"
     "    --limit 70%    of the peak load: holds from the first plan on, since the peak is not known before\n"
     "    --overhead 1%  of neap run: the lowest limit that costs no more time than this\n"
     "\n"
     "Without a plan, a limit in bytes is held by moving the least recently used blocks to the host when room is\n"
     "needed, and back when work uses them. That is slow, and lasts for the first iterations only. With a plan, "
     "blocks\n"
     "leave in the time between two uses and are back before the second.\n"
     "\n"
     "The floor is what the most demanding piece of work needs at once: no limit below it can be held. load_min is "
     "the\n"
     "peak when every candidate is swapped once. In a running program a limit below load_min is raised to it, or a "
     "few\n"
     "per cent above; one line of the log says so.\n"
     "\n"
     "What a limit would cost is told beforehand, from a recording:\n"
     "\n"
     "    neap swap --limit 70% FILE   the least overhead that was found, beside a bound\n"
     "    neap swap FILE               the lowest limit that costs no time\n"
     "    neap swap --sweep FILE       the whole curve, for every method\n"
     "\n"
     "These are plans on paper. A running program needs more than they do:\n"
     "\n"
     "    neap swap --run --limit 70% FILE     what neap run would plan, and what that costs\n"
     "    neap swap --run --overhead 1% FILE   the lowest limit that neap run can hold at that cost\n"},

    {"oom", "out of memory: what to try, in this order",
     "Without changing the program:\n"
     "\n"
     "    neap run -- python train.py                  no fragmentation: PyTorch often holds 1.1 to 1.9 times what\n"
     "                                                 it needs at once\n"
     "    neap run --limit 20GB -- python train.py     holds no more than that, from the first allocation on: blocks\n"
     "                                                 that are not needed for a while go to the host\n"
     "    neap run --limit 70% -- python train.py      the same, relative to what the program needs at once\n"
     "\n"
     "A limit in bytes, a little below what the device has free, is the one that works where the program does not fit\n"
     "at all. It needs pinned host memory for what is away, and costs time: neap help overhead.\n"
     "\n"
     "Who holds the memory? PyTorch can write down what it allocated, also when it runs out:\n"
     "\n"
     "    torch.cuda.memory._record_memory_history()\n"
     "    ... torch.cuda.memory._dump_snapshot(\"snapshot.pickle\")\n"
     "\n"
     "    neap import snapshot.pickle -o oom.neap.gz\n"
     "    neap info oom.neap.gz                        the largest blocks at the peak, and the code that made them\n"
     "    neap plan oom.neap.gz                        what a plan would hold, and what other allocators do\n"},

    {"footprint", "what the device holds, and how it differs from the load",
     "The footprint is the device memory that is really taken: from the first byte of a plan to its last, holes "
     "between\n"
     "blocks included. The load is the sum of the blocks that are alive, and the peak load the highest that it gets: "
     "no\n"
     "footprint is below it, unless blocks leave for the host (neap help limit).\n"
     "\n"
     "    footprint / peak load = 1      nothing is lost: what neap plan aims at, and mostly reaches and proves\n"
     "    footprint / peak load = 1.3    30 % is lost to holes (neap help fragmentation)\n"
     "\n"
     "    neap plan FILE   the footprint of a plan, and of other allocators on the same trace\n"},

    {"fragmentation", "why an allocator holds more than the program needs",
     "Blocks of many sizes come and go. An allocator that does not know what comes next leaves holes: free bytes "
     "between\n"
     "live blocks, of no use to the next request, which is larger. PyTorch's caching allocator also rounds sizes up, "
     "and\n"
     "keeps freed segments by size. So it can run out of memory with gigabytes \"reserved but unallocated\".\n"
     "\n"
     "A program that repeats itself needs no guess: neap plans the place of every block of an iteration beforehand, "
     "and\n"
     "the footprint is the peak load in most programs.\n"
     "\n"
     "    neap run -- python train.py   without fragmentation, nothing swapped\n"
     "    neap plan FILE                what each allocator holds, from a recording or a snapshot\n"},

    {"doa", "the paper's scores, by which blocks are chosen to leave: doa, aoa, wdoa, swdoa, bo",
     "SmartPool's paper ranks the candidates for swapping, each a block in a gap between two of its uses, by a score. "
     "The\n"
     "highest leave first, until the load is below the limit:\n"
     "\n"
     "    doa    duration of absence: the time between the two uses, less the two copies\n"
     "    aoa    area of absence: doa times the block's bytes\n"
     "    wdoa   weighted: the area under the load curve between the two uses\n"
     "    swdoa  submodular: wdoa on the load as it is after every choice made before\n"
     "    bo     a weighted sum of the four, whose weights Bayesian optimisation tunes\n"
     "\n"
     "    neap swap --method doa --limit 70% FILE   one of them\n"
     "    neap swap --sweep FILE                    all of them, beside neap's own search and a bound\n"
     "\n"
     "neap's default is search, which costs less time at every limit.\n"},

    {"overhead", "what swapping costs, and which figure is which",
     "The overhead is (time of an iteration with the plan - without) / without. 5 % means that an iteration of 100 ms\n"
     "takes 105. There are three figures:\n"
     "\n"
     "    simulated   by neap swap: what a plan costs on a link of known speed, from recorded times\n"
     "    bound       no plan of swaps at this limit has less; it does not cover recomputing or reordering\n"
     "    measured    in a running program: the median planned iteration against the undisturbed one\n"
     "\n"
     "The measured one can be negative: the iterations before the plan ran in a general pool, which is slower. Where "
     "it\n"
     "is above 1 %, other plans are tried on the program itself and the fastest stays.\n"
     "\n"
     "Each byte that leaves goes over the link twice. If the work between the two uses takes longer than the copies "
     "and\n"
     "the link is free, it costs nothing. That is why there is a lowest limit without overhead, and why it depends on\n"
     "the link: neap swap --link compares.\n"},

    {"departures", "what happens when a program does not do what was planned",
     "A plan is followed event by event. An event that is not the planned one is a departure. It ends nothing but the\n"
     "plan's turn: neap waits for the work under way, what is absent comes back when it is used, new blocks take free\n"
     "pages, and no address changes. At the next start of a known iteration the plan goes on.\n"
     "\n"
     "The kinds that are counted:\n"
     "\n" NEAP_DEPARTURE_MAP(DEPARTURE_LINE) "\n"
                                             "A few departures are ordinary: an evaluation, a step that logs, a last "
                                             "batch that is smaller. An iteration that\n"
                                             "comes a second time gets a plan of its own. A program that has changed "
                                             "for good is planned anew. One that departs\n"
                                             "in every iteration gains nothing; mostly its threads allocate in another "
                                             "order each time, or its sizes vary.\n"},

    {"plan", "what a plan is, and the way to one",
     "A plan says where every block of an iteration stands in device memory, and, under a limit, which blocks leave "
     "for\n"
     "the host, when, and when they return. It is made from one iteration that was seen twice, and followed in all "
     "that\n"
     "come after. A block's address never changes. What the program computes does not change by a bit.\n"
     "\n"
     "A running program is in one of these states:\n"
     "\n" NEAP_STATE_MAP(STATE_LINE) "\n"
                                     "Every plan is shown beside a bound: the footprint is never below the peak load, "
                                     "and the search says so where it has\n"
                                     "proved that no placement is lower. An independent checker passes every plan "
                                     "before it is used or printed.\n"
                                     "\n"
                                     "With a folder for plans (--plan-cache, NEAP_PLAN_CACHE) the next run of the same "
                                     "program starts on its plan.\n"},

    {"period", "what counts as an iteration, and how it is found",
     "The period is the run of events (malloc, free, work) that repeats and leaves the live blocks as it found them: "
     "one\n"
     "iteration of training. Nothing marks it in the program. It is found while events come in, mostly at the end of "
     "the\n"
     "second iteration.\n"
     "\n"
     "Equal layers or time steps inside an iteration are no period: they do not leave the live blocks as they were, "
     "or\n"
     "explain less. A loop that does something else every third time has a period of three iterations; neap info "
     "names\n"
     "them. Which blocks work uses is no part of the comparison, since recordings from below a framework see a few "
     "uses\n"
     "that did not happen; those are called doubtful, and no plan is made from them.\n"
     "\n"
     "    neap info FILE   the period of a recording, or that there is none (exit code 1)\n"},

    {"verify", "how to be sure that no use of a block was missed",
     "Beneath an unchanged program, neap sees which blocks a kernel uses by the addresses among its parameters. A "
     "kernel\n"
     "that finds addresses in tables in device memory can use a block that no parameter names. If that block is away,\n"
     "the result is wrong.\n"
     "\n"
     "neap verify compares: the program as it is must print the same twice, and then once more while everything is\n"
     "overwritten, before every launch, that the launch is not seen to use. If it does, nothing was missed. A program\n"
     "that is not deterministic cannot be judged so; fix its seeds first. It speaks for the work that ran, not for\n"
     "another model or other settings.\n"},

    {"limitations", "what neap cannot do",
     "It helps programs that repeat themselves. Where allocations differ in every iteration it changes nothing.\n"
     "\n"
     "A block that one piece of work needs cannot be absent while it runs: the floor stays. Nothing is recomputed,\n"
     "reordered or compressed.\n"
     "\n"
     "Beneath unchanged CUDA programs:\n"
     "\n"
     "    Memory must come from the CUDA runtime (cudaMalloc, cudaMallocAsync), as PyTorch's does.\n"
     "    Uses are seen by a profiling library that has one client at a time: another profiler and neap exclude\n"
     "    each other. Where sight is lost, everything comes back, and swapping stops.\n"
     "    What a CUDA graph, another process or a communication library holds stays where it is.\n"
     "    Tables of addresses that kernels build in device memory are not seen: see neap help verify.\n"
     "    Blocks below 256 KiB take no part in the plan.\n"
     "\n"
     "Threads that race to allocate make every iteration different. A forked child does not use the device through "
     "neap.\n"
     "Plans of neap swap are simulated from recorded times, for one stream of work.\n"
     "\n"
     "Linux only.\n"},

    {"environment", "variables that are read",
     "    NEAP_PLAN_CACHE    folder in which plans are kept from run to run; none unless set\n"
     "    NEAP_HOOK_LIBRARY  the library for neap run, record and verify, where it is not at its place\n"
     "    NEAP_CUPTI         NVIDIA's profiling library, where it is not found\n"
     "    NEAP_CUDA_DRIVER   a CUDA driver in place of libcuda.so.1\n"
     "    NO_COLOR           no colour, whatever its value\n"
     "    TERM               \"dumb\": no colour\n"
     "    LC_ALL, LANG       bars in eighths of a character where the locale is UTF-8\n"
     "    XDG_RUNTIME_DIR, XDG_CACHE_HOME\n"
     "                       see neap help files\n"
     "\n"
     "neap run, record and verify tell the library that they put in front of a program what to do by these. Their "
     "options\n"
     "set them; by hand they are needed only where a program is started without the command:\n"
     "\n"
     "    NEAP_HOOK          run, record or verify; without it the library does nothing at all\n"
     "    NEAP_LIMIT         a size such as 8GiB, or a share of the peak load such as 70%\n"
     "    NEAP_OVERHEAD      a share that swapping may cost, such as 1%: the lowest limit at that cost is found\n"
     "    NEAP_MIN_BLOCK     bytes: smaller blocks take no part in the plan; 256 KiB unless set\n"
     "    NEAP_MARGIN        launches that a block stays after its last seen use, and is back before the next\n"
     "    NEAP_PLAN_SECONDS  for planning, beside the program; 2 unless set\n"
     "    NEAP_TELL_LIMIT    1: the program is told that the device has no more memory than the limit\n"
     "    NEAP_KEEP_BACKEND  1: PyTorch keeps the allocator that neap sees into, where it has an error for what is "
     "asked, too\n"
     "    NEAP_CUPTI_ALONE   1: no other subscriber of CUPTI is allowed, also where CUPTI can have several\n"
     "    NEAP_RECORD        file for the trace\n"
     "    NEAP_REPORT        file for the report at the end; standard error unless set, none where it is \"-\"\n"
     "    NEAP_REPORT_JSON   1: the report is one JSON document\n"
     "    NEAP_LIVE          1: one line on a terminal that updates in place\n"
     "    NEAP_LOG           none, warn, info or debug\n"
     "\n"
     "The command's own, not to be set by hand: NEAP_PID, NEAP_VERIFIED, NEAP_VERIFY_LAUNCHES, NEAP_VERIFY_BLOCKS,\n"
     "NEAP_VERIFY_TELL.\n"},

    {"files", "what is read and written",
     "    *.neap, *.neap.gz  traces: text, gzip'd or not, told by content and not by name\n"
     "    *.csv              placement problems: id,lower,upper,size[,offset]\n"
     "    *.neap-plan        kept plans, one for a program, its command line, machine, device and limit\n"
     "    $XDG_CACHE_HOME/neap/verified, ~/.cache/neap/verified\n"
     "                       which programs neap verify has passed for\n"
     "    $XDG_RUNTIME_DIR/neap/PID.sock, /tmp/neap-UID/PID.sock\n"
     "                       where neap top finds running programs of the same user\n"
     "    ../lib/neap/libneap_hook.so\n"
     "                       from the command's own folder: what neap run puts in front of a program\n"
     "\n"
     "Kept plans may be deleted at any time. One that does not belong, or is damaged, is refused in one line.\n"
     "\n"
     "\"-\" as FILE is standard input. What neap writes appears whole or not at all: a full disk leaves the file that "
     "was\n"
     "there. docs/trace-format.md and docs/plan-format.md in the source tree describe the formats.\n"},

    {"exit-codes", "how neap leaves",
     "    0  good\n"
     "    1  the answer is no: the trace never repeats, no plan within the limit was found, runs that must\n"
     "       be alike differ. With --json there is a document all the same\n"
     "    2  bad usage or input, or the answer could not be written; one line on standard error says what\n"
     "       is wrong\n"
     "\n"
     "neap run and neap record become the program: its exit code is theirs. 126 and 127 mean that it could not be run, "
     "or\n"
     "was not found; 2 that neap could not begin.\n"},

    {NULL, NULL, NULL},
};

const topic *topics_find(const char *name)
{
    for (const topic *t = all_topics; t->name; t++) {
        if (strcmp(t->name, name) == 0) {
            return t;
        }
    }
    return NULL;
}
