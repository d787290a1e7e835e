"""What somebody's own words may speak of where they tell of a program on GPUs and of jobs over several: see told.py."""

from __future__ import annotations

_NOT = (
    r"\b(?:not|n[o']t|never|no longer|cannot|can't|isn't|aren't|wasn't|doesn't|don't|didn't|won't|couldn't|unable to|"
    r"fails? to|failed to|failing to)\b"
)

TOPICS_OF_PROGRAMS: dict[str, tuple[str, ...]] = {
    # Who computes.
    "program": (
        r"\b(?:vllm|sglang|py-?torch|torch\w*|libtorch|tensorflow|keras|jax|jaxlib|xla|triton ?server|triton|"
        r"tensorrt(?:-llm)?|onnx ?runtime|ollama|llama[.-]?cpp|ggml|deep ?speed|megatron\S*|nemo|lightning|"
        r"comfy ?ui|whisper\S*|stable[- ]diffusion|transformers|flash[- _]?att\w*|xformers|bitsandbytes|dask|"
        r"rapids|cuml|cudf|numba|cupy|mxnet|paddle\w*|lmcache|tgi|text-generation-inference|kserve|gromacs|lammps|"
        r"namd|nvbandwidth|nccl-tests|deep ?ep|unsloth|axolotl|trl|verl|openrlhf|mmdetection|detectron2|yolo\w*|"
        r"faiss|xgboost|lightgbm|blender|ffmpeg|caffe|darknet|nvidia nim|nims?|isaac \w+|jupyter\w*)\b",
        r"\b(?:training|inference|fine-?tun\w+|model (?:server|loading)|serving) (?:job|run|script|pod|code|server|"
        r"process|container|service)s?\b|\bthe (?:engine|model|trainer|training|script)\b",
    ),
    "collective": (
        r"\b(?:nccl(?:-tests)?|rccl|busbw|bus bandwidth|gloo|all[-_ ]?reduce\w*|all[-_ ]?gather\w*"
        r"|all[-_ ]?to[-_ ]?all\w*|reduce[-_ ]?scatter\w*|"
        r"ddp|fsdp|torchrun|torch\.distributed|horovod|process[-_ ]groups?|collectives?|nvshmem|ucx|deep ?ep|nixl|"
        r"rendezvous|data ?parallel|mpi|openmpi|tensor[-_ ]parallel\w*|pipeline[-_ ]parallel\w*|jax\.distributed|"
        r"distributed (?:training|inference|jobs?|run|learning|data parallel|test)|multi-?gpu (?:training"
        r"|inference))\b",
        r"\branks\b|\brank \d",
    ),
    "several machines": (
        r"\bmulti[- ]?(?:node|host|machine|server)s?\b|\b(?:across|between|over|on|with) (?:the )?(?:two |2 |three "
        r"|3 |"
        r"several |multiple |more than (?:one|1) |different |both |all |many )?(?:nodes|machines|hosts|servers)\b",
        r"\b(?:\d+|two|three|four|eight|sixteen|several|multiple|different|both) (?:\w+ )?(?:nodes|machines|hosts"
        r"|servers|pods|"
        r"instances)\b|\binter-?node\b|\bcross-?node\b|\bnnodes\b|\bother (?:nodes?|workers?|pods?|hosts?)\b|"
        r"\bbetween (?:the )?(?:\w+ ){0,3}(?:pods|workers)\b|\b(?:two|2)[- ]node\b|\bpairs? of nodes\b|"
        r"\bone node\b[^\n]{0,80}\bothers?\b|\bnode[- ]?[0-3]\b[^\n]{0,120}\bnode[- ]?[0-3]\b|\bmore than (?:one|1"
        r"|two|2|three|3) nodes?\b",
    ),
    "several cards": (
        r"\bmulti[- ]?gpus?\b|\b(?:two|2|three|3|four|4|eight|8|several|multiple|both|dual|more than (?:one|1)) "
        r"(?:\w+ ){0,2}(?:GPUs|cards)\b|\btensor[-_ ]parallel\w*\b|\bTP ?=? ?[2-8]\b",
    ),
    "ray": (
        r"\bray(?: (?:cluster|actor|task|worker|serve|head|tune|train|job)s?|\.\w+|::\w+|cluster|job|service)?\b|"
        r"\bkuberay\b|\bnum_gpus\b|\bplacement groups?\b",
    ),
    "launcher": (
        r"\bmpi(?:run|exec)\b|\bmpi[- ]?(?:operator|job|launcher)s?\b|\borte\w*\b|\bprte\w*\b|\bhost ?files?\b"
        r"|\bssh\w*\b|"
        r"\bpmix?\b|\bpytorch[- ]?(?:operator|job)\b|\blauncher\b",
    ),
    # Ways between ranks.
    "way is set": (
        r"\bNCCL_(?:IB|SOCKET|NET|CROSS_NIC|COMM_ID)\w*|\b(?:GLOO|TP)_SOCKET\w*|\bUCX_NET\w*|\bFI_PROVIDER\b|"
        r"\bVLLM_HOST_IP\b|\bMASTER_(?:ADDR|PORT)\b|\brdzv[-_]endpoint\b",
    ),
    "way": (
        r"\b(?:interfaces?|nics?|subnets?|vlans?|firewall\w*|iptables|ufw|security groups?|network ?polic\w+|ports?"
        r"|dns|"
        r"resolv\w+|hostname\w*|ip address\w*|private ip\w*|overlay|cni|calico|cilium|flannel|multus|mtu|routable|"
        r"rout(?:e|es|ed|ing)|docker0|macvlan|ipvlan|headless|bond\d|ipv6|istio|sidecars?|service mesh|rails?|pfc|ecn|"
        r"tcp|sockets?)\b|\bhost ?network\b|_SOCKET_IFNAME\b|\bMASTER_(?:ADDR|PORT)\b|\bnetwork (?:interface|device"
        r"|plugin|"
        r"card|mode|isolation|issue|problem|setup|config\w*)s?\b",
    ),
    "gid": (r"\bGIDs?\b|\bshow_gids\b|\b\w*GID_INDEX\b|\bRoCE ?v[12]\b",),
    "rdma": (
        r"\b(?:RDMA|InfiniBand|RoCE\w*|EFA|HCAs?|mlx5\w*|ConnectX\S*|ib_\w+_(?:bw|lat)|ibverbs|libibverbs|OFED|IB)\b|"
        r"/dev/infiniband\b|\blibfabric\b|\baws-ofi-nccl\b|\bTCPX\w*|\bFasTrak\b|\bGPUDirect[- ]?TCPX?\w*\b"
        r"|\bIBGDA\b|\bNET/\w+",
    ),
    "direct": (
        r"\bGPU ?Direct(?: RDMA| Storage)?\b(?!-?TCP)|\bGDR(?:DMA)?\b|\bnv(?:idia)?[-_]peer_?mem\w*\b|\bdma-?buf\b"
        r"|\bGDRCopy\b|"
        r"\bgdrdrv\b|\bcufile\b|\bnvidia-fs\b",
    ),
    "peer path": (
        r"\bP2P\b|\bsimpleP2P\b|\bp2pBandwidth\w*|\bpeer[- ]to[- ]peer\b|\bpeer access\b|\bPCIe switch\w*|\bACS\b"
        r"|\bNCCL_P2P_DISABLE\b|"
        r"\bcustom[- _]all[-_ ]?reduce\b",
    ),
    "imex": (r"\bIMEX\b|\bNVLink domains\b|\bMNNVL\b|\bNVL ?(?:36|72)\b|\bmulti-?node NVLink\b|\bfabric handles?\b",),
    "multicast": (r"\bNVLS\b|\bNVLink SHARP\b|\bmulti-?cast\b",),
    "processor": (r"\b(?:ARM(?:64|v8)?|aarch64|x86(?:_64)?|amd64|ppc64le)\b",),
    "number format": (r"\b(?:bf16|bfloat16|fp8|fp4|nvfp4|mxfp4|tf32)\b",),
    "built plan": (r"\b(?:TensorRT|TRT)\b[^.;]{0,40}\b(?:engine|plan)s?\b|\bplan files?\b|\.plan\b",),
    "ranks differ": (
        r"\bwhile (?:the )?others?\b|\bdifferent (?:order|collectives?|sizes?|shapes?)\b|\bin another order\b|"
        r"\bskips? (?:an?|the) (?:collective|all_?reduce|barrier|step)\b",
    ),
    "ranks on one card": (
        r"\b(?:two|both|several|all) (?:\w+ )?(?:ranks|processes)\b[^.;]{0,40}\b(?:same (?:device|GPU)|(?:device|GPU"
        r"|cuda:?) ?0)",
    ),
    # Memory.
    "shared memory": (
        r"/dev/shm\b|(?<!/)\bshm\b|\bshm[-_ ]?size\b|--ipc\b|\bipc[:=] ?host\b|\bhostIPC\b",
        r"(?<!CUDA )(?<!resource: )(?<!dynamic )(?<!GPU )(?<!static )\bshared[- ]memory\b(?! (?:per|required"
        r"|carveout|atomics?|bank"
        r"|hardware))",
    ),
    "task limit": (
        r"\bpids?[. ](?:max|limit)\w*|\bulimit -[un]\b|\bnproc\b|\bnofile\b|\bopen files\b|\bfile descriptors?\b|"
        r"\bthreads?\b[^.;]{0,20}\b(?:not|n't) be (?:created|started)\b|\btoo many (?:threads|processes|open files)\b",
    ),
    "locked memory": (
        r"\bmem-?lock\b|\bulimit -l\b|\b(?:max )?locked[- ]memory\b|\bIPC_LOCK\b|\bRLIMIT_MEMLOCK\b|\bmlock\w*\b|"
        r"\bregister(?:ing|s)? (?:the )?memory\b|\bmemory registration\b",
    ),
    "killed for memory": (
        r"\bOOM[- ]?kill\w*|\bout[- ]of[- ]memory killer\b|\bkilled by (?:the )?OOM\b|\bexit code:? 137\b|"
        r"\b(?:host|system|CPU|node|server|container|pod)(?:'s)? (?:RAM|memory)\b[^.;]{0,60}\b(?:exhaust\w*"
        r"|runs? out|ran out|"
        r"full|limit|exceed\w*|not enough|grow\w*|leak\w*|OOM)|\bruns? out of (?:host |system |CPU )?RAM\b",
    ),
    "device memory": (
        r"\b(?:GPU|CUDA|device|video|graphics)[- ](?:memory|RAM)\b|\bGPUs? (?:runs?|ran|goes|went|is"
        r"|are) out of memory\b|\bVRAM\b|\bCUDA OOM\b|\bcuda out of memory\b|"
        r"\bKV[- ]cache\b|\bgpu[-_]memory[-_]utili[sz]ation\b",
    ),
    "full": (
        r"\bout of memory\b|\bOOMs?\b|\b(?:larger|bigger|more) than\b|\b(?:not|n't) (?:have )?enough\b"
        r"|\binsufficient\b|\bexceed\w*\b|"
        r"\b(?:does|do|did|will|would) ?(?:not|n't) fit\b|\bruns? out\b|\bran out\b|\brunning out\b|"
        r"\btoo (?:small|little|low|large|big|much)\b|\b64 ?M(?:i?B)?\b|\bno space\b|\bis full\b|\bcleaned up\b"
        r"|\bfills? up\b",
    ),
    "not given back": (
        r"\b(?:not|n't|never) (?:be |been |being |get |getting )?(?:released?|freed?|free|cleared?|returned"
        r"|reclaimed)\b|"
        r"\b(?:still|remains?|stays?|left) (?:\w+ )?(?:occupied|allocated|held|in use|used)\b|\bzombies?\b"
        r"|\bdefunct\b",
    ),
    # Images and what is in them.
    "image": (
        r"\b(?:container |docker |base )?images?\b|\bDockerfile\b|\bcontainer (?:build|version)\b|\bnvcr\.io\S*",
    ),
    "libraries": (
        r"\b(?:lib)?cudnn\w*|\blibnccl\S*|\b(?:lib)?cublas\w*|\b(?:lib)?nvrtc\w*|\blibcudart\S*"
        r"|\b(?:lib)?nvjitlink\w*|"
        r"\bGLIBC\w*|\blibstdc\S*|\bundefined symbol\b|\bwheels?\b|\bpip\b|\bconda\b|\brequirements\.txt\b|"
        r"\bCUDA (?:toolkit|libraries|runtime library)\b|\bnvcc\b|\bLD_LIBRARY_PATH\b|\bshared object\b|"
        r"\b(?:py)?torch(?:vision|audio)? (?:version )?\d\S*",
    ),
    "one architecture": (
        r"\b(?:one|single|another|other|wrong|different) (?:GPU |CUDA )?(?:architecture|compute capability)\b"
        r"|\b(?:CUDA_DOCKER_ARCH|CMAKE_CUDA_ARCHITECTURES|TORCH_CUDA_ARCH_LIST|CUDA_ARCH\w*)\b",
    ),
    "to be built anew": (
        r"\b(?:re-?(?:built|build\w*|compil\w+|install\w*)|(?:has|have|had|needs?|needed|must) (?:to )?(?:be )?"
        r"(?:built|compiled|installed))\b[^.;]{0,30}\b(?:with|for|against) (?:the )?(?:cu-?blas|cuda|gpu)\b",
    ),
    "names of devices": (
        r"\bCUDA_VISIBLE_DEVICES\b[^.;]{0,60}\b(?:UUIDs?|MIG-\w|GPU-\w)"
        r"|\bUUIDs?\b[^.;]{0,40}\bCUDA_VISIBLE_DEVICES\b",
    ),
    "driver capabilities": (r"\bNVIDIA_DRIVER_CAPABILITIES\b|\bdriver capabilit(?:y|ies)\b",),
    "helps": (
        r"\b(?:solve[sd]?|fix(?:es|ed)?|resolve[sd]?|helps?|helped|cure[sd]?|mend(?:s|ed)?)\b(?! nothing)|\bgoes away\b"
        r"|\bwent away\b",
    ),
    "other release does": (
        r"\b(?:v?\d+(?:\.\d+)+\S*|older|previous|earlier|old) (?:\w+ ){0,3}(?:works?|worked|sees?|did|does|is fine"
        r"|runs?)\b(?! not|n't)",
    ),
    "unfit": (
        r"\bmis-?match\w*|\bconflict\w*|\bincompatib\w+|\b(?:not|n't) (?:be )?(?:compatible|match\w*|found|installed|"
        r"present|included|include|contain|ship\w*|bundled|load\w*)\b|\bmissing\b|\blacks?\b|\bundefined symbol\b|"
        r"\b(?:different|wrong|another|old|older|outdated) (?:\w+ )?versions?\b|\btoo (?:old|new)\b|\bbroken\b|"
        r"\bcannot (?:open|find|load)\b|\bpulls? in\b|\bdowngrad\w+|\breinstall\w*",
    ),
    "built without": (
        r"\b(?:has|with) no CUDA\b|\bCPU(?:-only)? (?:version|build|wheel|variant|only)\b|\+cpu\b|\b(?:not"
        r"|n't) (?:compiled|built) with "
        r"(?:CUDA|GPU)\b|\b(?:compiled|built|installed|installs?|wheel|build) without (?:CUDA|GPU)\b|"
        r"\btorch\.version\.cuda\b[^.;]{0,20}\bNone\b|\b(?:non|without)-?(?:CUDA|GPU) (?:version|build|wheel)\b",
    ),
    "compute level": (
        r"\bsm_?\d{2,3}a?\b|\bcompute[- _]?capabilit\w+|\barch(?:itecture)?[- _]lists?\b|\bTORCH_CUDA_ARCH_LIST\b|"
        r"\bgencode\b|\bkernel image\b|\bcubins?\b|\b(?:Blackwell|Hopper|Ada|Ampere|Turing|Volta|Pascal|Maxwell"
        r"|Kepler)\b",
    ),
    "not for it": (
        r"(?:\bnot|n't|\bno longer|\bnever) (?:\w+ )?(?:support\w*|built|compil\w+|compatible|includ\w+|available|run|"
        r"runs|work|works|listed)\b|\bunsupported\b|\b(?:no|lacks?|without|missing|lacking|dropped"
        r"|drops) (?:\S+ ){0,2}"
        r"(?:support|kernels?|cubins?|binar\w+)\b|\btoo old\b|\bincompatib\w+|\b(?:only|just) (?:\w+ )?(?:supports?"
        r"|has|"
        r"includes?|up to|built|compiled|for)\b|\b(?:has|have|lists?|includes?|supports?|goes)\b[^.;]{0,60}\bonly\b|"
        r"\b(?:requires?|needs?)\b|\brefus\w*|\bfail\w*|\b[Aa]re\b[^.;]{0,60}\bsupported\?",
    ),
    "cuda release": (
        r"\bCUDA[- ](?:version |toolkit |runtime )?v?\d{1,2}(?:\.\d+)?\b|\bcu1[0-3]\d\b|\bcuda:\d+\S*"
        r"|\bcuda-compat\S*|"
        r"\bcuda1[0-3]\.\d\b|\bnewer CUDA\b|\bCUDA versions?\b|\bforward compat\w*",
    ),
    "too old": (
        r"\btoo old\b|\boutdated\b|\bolder\b|\bold (?:\w+ )?driver\b|\binsufficient\b|\b(?:need\w*|requir\w+|wants?"
        r"|expects?) (?:\S+ ){0,3}"
        r"(?:newer|higher|at least|driver|[345]\d\d)\b|\bnewer (?:CUDA|image|version)\b[^.;]{0,40}\bthan\b|"
        r"\b(?:upgrad|updat)\w+ (?:of )?(?:the |my |our )?(?:\w+ ){0,2}drivers?\b|\b(?:not|n't) support CUDA\b|"
        r"\bhas only\b|\bonly supports?\b|\bmax\w* CUDA\b",
    ),
    "storage": (
        r"\bcheck-?points?\b|\bdata ?loaders?\b|\bdownload\w*|\bNFS\b|\bLustre\b|\bdata ?sets?\b|\bfile ?systems?\b",
    ),
    # States.
    "stands still": (
        r"\bhangs?\b|\bhanging\b|\bhung\b|\bstuck\b|\bdead ?locks?\b|\bfreez\w+|\bfrozen\b|\bblocks? (?:forever"
        r"|for ever|"
        r"indefinitely)\b|\bnever (?:ends?|starts?|returns?|finish\w*|complet\w*|continu\w*|comes?|proceeds?)\b|"
        r"\bwait\w* (?:forever|for ever|indefinitely|endlessly)\b|\btime-?outs?\b|\btimes? out\b|\btimed out\b"
        r"|\bno progress\b|"
        r"\b(?:not|n't) (?:proceed|continue|progress|respond|start|finish|move on|get past)\w*\b|\bstall(?:s|ed)\b",
    ),
    "way is barred": (
        r"\bblock(?:s|ed|ing)?\b|\bdrop(?:s|ped)\b|\bfilter(?:s|ed)\b|\bclosed\b|\brefus\w+|\bisolat\w+|\bno route\b"
        r"|\bden(?:y|ies|ied)\b|"
        r"\b(?:not|n't) (?:be )?(?:open|allowed|routed|reachable)\b",
    ),
    "way is wrong": (
        r"\b(?:picks?|chooses?|chose|selects?|uses?|used|binds? to|bound to|takes?) (?:the )?(?:management|wrong"
        r"|first|default|"
        r"slow\w*|docker\w*|loopback|lo\b|127\.|storage|front-?end|overlay|pod network)",
    ),
    "does not join": (
        rf"{_NOT} (?:be |been |being |able to |even |able )?(?:connect\w*|reach\w*|join\w*|resolv\w*|communicat\w*"
        rf"|talk\w*|"
        r"find|found|recogni[sz]e\w*|establish\w*|work\w*|see)\b|\b(?:refus\w+|unreachable|disconnect\w*|"
        r"connection (?:errors?|lost|closed|reset|failures?|issues?|problems?|timeouts?))\b|\bno (?:\w+ )?"
        r"(?:connection|route)s?\b|\bwrong (?:\w+ )?(?:interface|nic|ip|address|port|network|device|gid)\w*|"
        r"\b(?:picks?|chooses?|chose|selects?|uses?) the wrong\b|\ball (?:\w+ )*(?:zero|zeros|empty)\b|\bfail\w*"
        r"|\berrors?\b|\bask\w* for (?:a |the )?password\b",
    ),
    "slow": (
        r"\bslow\w*|\binconsistent\b|\bcollaps\w+|\bhalv\w+|\bonly reach\w*|\breach\w* only\b|\d ?G(?:B|bit)?(?:/s"
        r"|ps)(?: \w+)? only\b|"
        r"\b(?:not as good as|(?:lower|less|worse) than) (?:expected|\w+)|\b(?:low|poor|bad|half|reduced|degraded"
        r"|terrible) (?:\w+ )?(?:bandwidth|busbw|throughput"
        r"|performance|speed)\b|"
        r"\bonly (?:get |see |reach |about |at )*\d[\d.]* ?(?:GB/s|Gb/s|Gbps|Gbit/s|MB/s|GBps)|\b(?:bandwidth|busbw"
        r"|throughput|"
        r"performance|speed)\b[^.;]{0,40}\b(?:drop\w*|low\w*|poor|degrad\w*|half|limited|instead|worse|decreas\w*"
        r"|less)\b|"
        r"\bperformance (?:drop|degradation|regression|issue|problem)s?\b|\bbottleneck\w*",
    ),
    "unused": (
        r"(?:\bnot|n't|\bnever|\bno longer) (?:being |be |get |getting |actually )?(?:used|enabled|using|use|active"
        r"|working|work|"
        r"available|picked|detected|found|recogni[sz]ed|loaded|load|supported)\b|\bdisabled\b|\b(?:falls?|fell"
        r"|falling) back\b|"
        r"\binstead of\b|\b(?:not|n't) (?:been |be )?(?:set up|configured|installed)\b|"
        r"\bno (?:P2P|GPU ?Direct|GDR\w*|RDMA|InfiniBand|EFA|RoCE)\b|\bonly (?:uses?|using) (?:sockets?|TCP|ethernet"
        r"|host)\b|\bmissing\b|\bwithout\b|\bunused\b",
    ),
    "rights": (
        r"\bprivileged\b|\bCAP_\w+|\bSYS_(?:ADMIN|PTRACE|NICE|RESOURCE)\b|\bcapabilit(?:y|ies)\b(?! \d)"
        r"|\bsecurity ?context\b|"
        r"\bseccomp\b|\bpermissions?\b|\bnon-?root\b|\bas root\b|\bnot permitted\b|\bread-?only\b",
    ),
    "fault of code": (
        r"\billegal (?:memory access|instruction|address)\b|\bdevice-side assert\w*|\blaunch failure\b"
        r"|\bmisaligned\b|\bNaNs?\b|"
        r"\bseg(?:mentation )?faults?\b|\bcore dump\w*|\bSIGSEGV\b|\btraceback\b|\bassertion\w*"
        r"|\bCUDA (?:kernel )?errors?\b|"
        r"\bcublas errors?\b|\bcudaError\w*|\bIndexError\b|\bexception\b",
    ),
}
