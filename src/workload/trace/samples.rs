// A few lines or records of every format, for the unit tests and for the mutations of `tests/fuzz_traces.rs`, which
// includes this file: it imports nothing.

pub const CAPTURED: &[u8] = b"time_us,rwbs,sector,nsect,comm
0,RAM,4104,8,ext4lazyinit
63,WS,4456448,32,filebench
301,WSM,3932160,8,jbd2/loop3-8
900,FWFSM,3932168,8,jbd2/loop3-8
950,FWS,0,0,jbd2/loop3-8
960,D,8,16,fstrim
";
pub const OPERATIONS: &[u8] = b"time_ns,device,action,offset_bytes,length_bytes,content,stream
5,0,write,4096,8192,journal,3
9,1,flush,0,0,data,0
12,0,discard,0,512,data,0
";
pub const MSR: &[u8] = b"128166372011600556,mds,0,Write,3201662976,20480,45361
128166372011600626,mds,1,Read,4096,512,100
128166372011600627,mds,0,Write,0,4096,7
";
pub const SPC: &[u8] = b"0,303567,3584,w,0.000000
1,55590,3072,R,0.026214,extra
";
pub const ALIBABA: &[u8] = b"419,W,8792731648,16384,1577808144360767
725,R,8192,4096,1577808144360792
";
pub const TENCENT: &[u8] = b"1538323200,6338688,8,1,1627
1538323201,16,1,0,1283
";
pub const SYSTOR: &[u8] = b"Timestamp,Response,IOType,LUN,Offset,Size
1456095145.133076000,0.000806000,R,0,899056122368,131072
1456095145.134076000,,W,4,512,1024
";
pub const VSCSI_CSV: &[u8] = b"1,5633898,2a,512,42932745
1,5633900,28,4096,8
";
pub const BLKPARSE: &[u8] = b"259,0    1       11    42.543705759  6570  Q  WS 3932216 + 8 [dd]
259,0    1       12    42.543705800  6570  G  WS 3932216 + 8 [dd]
259,0    1       13    42.543705900  6570  D  WS 3932216 + 8 [dd]
259,0    1       14    42.543706000     0  C  WS 3932216 + 8 [0]
259,0    1       15    42.543706759  6570  Q FWS [jbd2/pmem0-8]
259,1    1       16    42.543707759  6570  Q   D 16 + 8 [fstrim]
259,0    1       17    42.543708000  6570  U   N [dd] 1
259,0    1       18    42.543708100  6570  A  WS 3932216 + 8 <- (259,2) 8
259,0    1       19    42.543708759  6570  Q WSM 8 + 8 [jbd2/pmem0-8]
CPU1 (pmem0):
 Reads Queued:           0,        0KiB\t Writes Queued:           3,       12KiB
";
pub const FTRACE: &[u8] = b"# tracer: nop
        postgres-27714   [001] ..... 1115.496319: block_bio_queue: 7,1 WS 854160 + 112 [postgres]
        postgres-27714   [001] ..... 1115.496319: block_rq_issue: 7,1 WS 57344 () 854160 + 112 [postgres]
 jbd2/loop1-8-999   [000] ..... 1115.496320: block_bio_queue: 7,1 FF 18446744073709551615 + 0 [jbd2/loop1-8]
 jbd2/loop1-8-999   [000] ..... 1115.496321: block_bio_queue: 7,2 WSM 8 + 8 [jbd2/loop1-8]
";
pub const PERF: &[u8] = b"fio  1234 [000]  1000.000000: block:block_rq_issue: 8,0 R 4096 () 1000 + 8 [fio]
\tffffffff81100000 blk_mq_start_request+0x10 ([kernel.kallsyms])
fio  1234 [001]  1000.000500:          1 block:block_rq_issue: 8,0 WS 8192 () 2000 + 16 none,0,0 [fio]
kworker/0:1H  99 [001]  1000.000600: block:block_rq_issue: 8,0 FF 0 () 18446744073709551615 + 0 [kworker/0:1H]
swapper  0 [000]  1000.001000: block:block_rq_complete: 8,0 R () 1000 + 8 [0]
";
pub const NVME: &[u8] = b"# tracer: nop
  raft-35708   [000] .....  9203.271124: nvme_setup_cmd: nvme0: disk=nvme0n1, qid=1, cmdid=53265, nsid=1, flags=0x0, meta=0x0, cmd=(nvme_cmd_write slba=498455552, len=7, ctrl=0x4000, dsmgmt=0, reftag=0)
  raft-35708   [000] .....  9203.271125: nvme_setup_cmd: nvme1: disk=nvme1n1, qid=2, cmdid=1, nsid=1, flags=0x0, meta=0x0, cmd=(nvme_cmd_read slba=8, len=0, ctrl=0x0, dsmgmt=0, reftag=0)
  raft-35708   [000] .....  9203.271126: nvme_setup_cmd: nvme0: disk=nvme0n1, qid=1, cmdid=2, nsid=1, flags=0x0, meta=0x0, cmd=(nvme_cmd_flush cdw10=00 00 00 00)
  raft-35708   [000] .....  9203.271126: nvme_setup_cmd: nvme0: qid=0, cmdid=2, nsid=1, flags=0x0, meta=0x0, cmd=(nvme_admin_identify cns=1, ctrlid=0)
  raft-35708   [000] .....  9203.271126: nvme_setup_cmd: nvme0: disk=nvme0n1, qid=1, cmdid=3, nsid=1, flags=0x0, meta=0x0, cmd=(nvme_cmd_dsm nr=1, attributes=4)
  <idle>-0     [000] d.h1.  9203.271127: nvme_sq: nvme0: disk=nvme0n1, qid=1, head=676, tail=676
  raft-35708   [000] .....  9203.271127: nvme_setup_cmd: nvme0: disk=nvme0n1, qid=1, cmdid=4, nsid=1, flags=0x0, meta=0x0, cmd=(nvme_cmd_write_zeroes slba=16, len=255, ctrl=0x0, dsmgmt=0, reftag=0)
";
pub const NVME_RAW: &[u8] = b"raft 35708 [000]  9203.271124: nvme:nvme_setup_cmd: [FAILED TO PARSE] disk=nvme0n1 ctrl_id=0 qid=1 opcode=1 flags=0 fctype=0 cid=53265 nsid=1 metadata=0 cdw10=ARRAY[00, d4, b5, 1d, 00, 00, 00, 00, 07, 00, 00, 40, 00, 00, 00, 00, 00, 00, 00, 00, 00, 00, 00, 00]
raft 35708 [000]  9203.271125: nvme:nvme_setup_cmd: [FAILED TO PARSE] disk=nvme1n1 ctrl_id=1 qid=2 opcode=0x2 flags=0 fctype=0 cid=1 nsid=1 metadata=0 cdw10=ARRAY[08, 00, 00, 00, 00, 00, 00, 00, 00, 00, 00, 00, 00, 00, 00, 00, 00, 00, 00, 00, 00, 00, 00, 00]
raft 35708 [000]  9203.271126: nvme:nvme_setup_cmd: [FAILED TO PARSE] disk=nvme0n1 ctrl_id=0 qid=1 opcode=0 flags=0 fctype=0 cid=2 nsid=1 metadata=0 cdw10=ARRAY[00, 00, 00, 00, 00, 00, 00, 00, 00, 00, 00, 00, 00, 00, 00, 00, 00, 00, 00, 00, 00, 00, 00, 00]
raft 35708 [000]  9203.271127: nvme:nvme_setup_cmd: [FAILED TO PARSE] disk=nvme0n1 ctrl_id=0 qid=1 opcode=8 flags=0 fctype=0 cid=4 nsid=1 metadata=0 cdw10=ARRAY[10, 00, 00, 00, 00, 00, 00, 00, ff, 00, 00, 00, 00, 00, 00, 00, 00, 00, 00, 00, 00, 00, 00, 00]
";
pub const BIOSNOOP: &[u8] = b"TIME(s)     COMM           PID     DISK      T SECTOR     BYTES    LAT(ms)
0.000004    supervise      1950    xvda1     W 13092560   4096       0.74
0.000178    Web Content    1950    nvme0n1   R 16         512        0.61
0.001469    jbd2/xvda1-8   1956    xvda1     W 24         8192       1.24
";
pub const BIOSNOOP_C: &[u8] = b"TIME(s)     COMM           PID     DISK    T    SECTOR     BYTES   QUE(ms) LAT(ms)
0.000004    supervise      1950    xvda1   WS   13092560   4096      0.010   0.740
0.000178    Web Content    1950    nvme0n1 RA   16         512      -1.000   0.610
0.001469    jbd2/xvda1-8   1956    xvda1   FWFSM 24         8192      0.020   1.240
0.002004    kworker/0:1H   99      xvda1   FF   0          0         0.000   0.500
0.003004    fstrim         7       xvda1   DS   0          1048576   0.000   0.500
";
pub const THESIOS: &[u8] = b"filename,file_offset,application,c_time,io_zone,redundancy_type,op_type,service_class,from_flash_cache,cache_hit,request_io_size_bytes,disk_io_size_bytes,response_io_size_bytes,start_time,disk_time,simulated_disk_start_time,simulated_latency
1f2e,8192,spanner,1705000000,WARM,REPLICATED,WRITE,LATENCY_SENSITIVE,0,-1,4096,0,0,1705276800.5,0,0,0.0004
77aa,1048576,9c0d,1704000000,COLD,ERASURE_CODED,READ,OTHER,0,0,513,4096,513,1705276800.5015,0.004,1705276800.502,0.005
1f2e,0,spanner,1705000000,WARM,REPLICATED,READ,OTHER,0,1,4096,0,4096,1705276800.6,0,0,0.0001
";
pub const TECTONIC: &[u8] =
    b"# block_id io_offset io_size op_time op_name user_namespace user_name rs_shard_id op_count host_name
2147 4096 131072 1570000000.25 2 1 40 0 1 900
99 0 513 1570000000.5 4 1 40 0 1
2147 8192 4096 1570000000.5 5 1 40 0
";
pub const CACHELIB: &[u8] = b"key,op,size,op_count,key_size
1668757755,SET,82,1,40
1668757755,GET,0,1,40
";
/// A text that is read by the columns `time=1,op=3,offset=4,size=5,unit=sector,device=2`, and not recognised.
pub const COLUMNS: &[u8] = b"10.5,sda,W,8,16
10.5005,sdb,R,1,1
10.501,sda,flush,0,0
# a comment
10.502,sda,TRIM,0,2048
";
pub const FIO_V2: &[u8] = b"fio version 2 iolog
/dev/sdb add
/data/a file add
/dev/sdb open
/dev/sdb write 4096 8192
/dev/sdb wait 250 0
/data/a file read 0 512
/dev/sdb sync 0 0
/data/a file trim 4096 4096
/dev/sdb close
";
pub const FIO_V3: &[u8] = b"fio version 3 iolog
0 /data/f add
0 /data/f open
373 /data/f write 491520 4096
375 /data/f read 0 4096
376 /data/f sync
380 /data/f close
";
pub const FIU: &[u8] = b"89968195792462 20782 gzip 283193184 8 R 6 0 56f11b711d91a065a2b6458eca924523
89968195792502 20783 two words 16 16 W 6 1 0cc175b9c0f1b6a831c399e269772661
";
pub const DISKSIM: &[u8] = b"7961.833 0 20228336 8 0
7962.333\t20\t576560\t5\t1
";
pub const MQSIM: &[u8] = b"938513000 4 264719034 16 0
938828000 3 197570570 16 1
";
pub const MIDAS: &[u8] = b"0.146559796 1 1 4096 
0.237636796 0 5 8192 
0.237642796 3 6 8192 
";
pub const STRACE: &[u8] =
    br#"27714 1699.000000 openat(AT_FDCWD</w>, "base/16384", O_RDWR|O_CREAT, 0600) = 5</pg/base/16384>
27714 1699.123456 pwrite64(5</pg/base/16384>, ""..., 8192, 40960) = 8192
27714 1699.123556 write(5</pg/base/16384>, "a, b\")"..., 100) = 100
27714 1699.123656 lseek(5</pg/base/16384>, 4096, SEEK_SET) = 4096
27714 1699.123756 read(5</pg/base/16384>, ""..., 8192) = 8192
27714 1699.123800 dup(5</pg/base/16384>) = 6</pg/base/16384>
27714 1699.123856 write(6</pg/base/16384>, ""..., 10) = 10
27715 1699.124000 openat(AT_FDCWD</w>, "log", O_WRONLY|O_APPEND) = 7</pg/log>
27715 1699.124056 fstat(7</pg/log>, {st_mode=S_IFREG|0644, st_size=1000, ...}) = 0
27715 1699.124100 write(7</pg/log>,  <unfinished ...>
27714 1699.124150 fsync(5</pg/base/16384>) = 0
27715 1699.124156 <... write resumed>"x", 50) = 50
27715 1699.124200 write(7</pg/log>, "y", 5) = 5
27715 1699.124300 fallocate(7</pg/log>, FALLOC_FL_KEEP_SIZE|FALLOC_FL_PUNCH_HOLE, 0, 512) = 0
27715 1699.124400 write(8<TCP:[10.0.0.1:1->10.0.0.2:2]>, "y", 5) = 5
27715 1699.124500 read(7</pg/log>, 0x7ffe, 5) = -1 EBADF (Bad file descriptor)
27715 1699.124600 +++ exited with 0 +++
"#;
pub const FILEBENCH: &[u8] = br#"set $dir=/data
define fileset name=bigfileset,path=$dir,size=16k,entries=1000
define process name=filereader,instances=1
{
  thread name=filereaderthread,memsize=10m,instances=16
  {
    flowop deletefile name=deletefile1,filesetname=bigfileset
  }
}
run 60
"#;

pub fn vscsi() -> Vec<u8> {
    let mut bytes = Vec::new();
    let records = [
        (512u32, 0x2a_u16, 42_932_745u64, 5_633_898_000u64),
        (8192, 0x28, 96, 5_633_899_500),
        (4096, 0x8a, 1 << 22, 5_633_899_600),
    ];
    for (number, (length, command, sector, time_us)) in (0u32..).zip(records) {
        bytes.extend(number.to_le_bytes());
        bytes.extend(length.to_le_bytes());
        bytes.extend(1u32.to_le_bytes());
        bytes.extend(command.to_le_bytes());
        bytes.extend(0x0100u16.to_le_bytes());
        bytes.extend(sector.to_le_bytes());
        bytes.extend(time_us.to_le_bytes());
    }
    bytes
}

pub fn oracle_general() -> Vec<u8> {
    let mut bytes = Vec::new();
    for (time, object, next) in [(5u32, 77u64, 3i64), (5, 78, -1), (6, 79, -1), (9, 77, -1)] {
        bytes.extend(time.to_le_bytes());
        bytes.extend(object.to_le_bytes());
        bytes.extend(4096u32.to_le_bytes());
        bytes.extend(next.to_le_bytes());
    }
    bytes
}

/// libCacheSim's format, of version 2 to 8.
pub fn lcs(version: u8) -> Vec<u8> {
    let magic = 0x1234_5678_9abc_def0_u64.to_le_bytes();
    let mut bytes = vec![0; 8192];
    bytes[..8].copy_from_slice(&magic);
    bytes[8] = version;
    bytes[8184..].copy_from_slice(&magic);
    // write, read, set, delete
    for (time, object, size, operation, tenant) in
        [(7u32, 8u64, 4096u32, 13u32, 0u32), (7, 16, 513, 12, 70_000), (9, 8, 512, 13, 0), (9, 0, 8192, 9, 0)]
    {
        bytes.extend(time.to_le_bytes());
        bytes.extend(object.to_le_bytes());
        bytes.extend(size.to_le_bytes());
        if version > 2 {
            bytes.extend([0; 4]);
        }
        bytes.extend((operation | tenant << 8).to_le_bytes());
        if version > 2 {
            bytes.extend(3600u32.to_le_bytes());
        }
        bytes.extend((-1i64).to_le_bytes());
        let features = if version > 3 { 1 << (version - 4) } else { 0 };
        bytes.extend(std::iter::repeat_n(0xab, 4 * features));
    }
    bytes
}

/// The log of device mapper's log-writes.
pub fn log_writes(sector_bytes: u32) -> Vec<u8> {
    let sector = sector_bytes as usize;
    let mut bytes = Vec::new();
    bytes.extend(0x006a_7366_7773_6872_u64.to_le_bytes());
    bytes.extend(1u64.to_le_bytes());
    bytes.extend(5u64.to_le_bytes());
    bytes.extend(sector_bytes.to_le_bytes());
    bytes.resize(sector, 0);
    // A write, a flush, a write of metadata that flushes first, a mark, a discard.
    for (first, sectors, flags, text) in
        [(16u64, 3u64, 2u64, &b""[..]), (0, 0, 1, b""), (8, 1, 1 | 16, b""), (0, 0, 8, b"mark"), (0, 1 << 31, 4, b"")]
    {
        let start = bytes.len();
        bytes.extend(first.to_le_bytes());
        bytes.extend(sectors.to_le_bytes());
        bytes.extend(flags.to_le_bytes());
        bytes.extend((text.len() as u64).to_le_bytes());
        bytes.extend(text);
        bytes.resize(start + sector, 0);
        let written = if flags & 4 == 0 { sectors as usize * sector } else { 0 };
        bytes.resize(bytes.len() + written, 0x55);
    }
    bytes
}

pub fn blktrace(version: u8, big_endian: bool) -> Vec<u8> {
    // Categories: write, flush, sync, queue, issue, notify, metadata, discard.
    type Record = (u64, u64, u32, u64, u32, u32, &'static [u8]);
    let records: [Record; 6] = [
        (0, 0, 0, 1 << 26, 6570, 0, b"jbd2/pmem0-8\0\0\0\0"),
        (5000, 3_932_216, 4096, 1 | 1 << 17 | 1 << 28, 6570, 259 << 20, b""),
        (5500, 3_932_216, 8192, 7 | 1 << 17, 6570, 259 << 20, b"x"),
        (6000, 64, 4096, 1 | 1 << 17 | 1 << 18 | 1 << 28, 1, 259 << 20, b"seven b"),
        (6500, 64, 4096, 4 | 1 << 17, 1, 259 << 20, b""),
        (7000, 8, 8192, 1 | 1 << 17 | 1 << 29, 1, 259 << 20 | 1, b""),
    ];
    let mut bytes = Vec::new();
    let word = |value: u64, width: usize| -> Vec<u8> {
        if big_endian { value.to_be_bytes()[8 - width..].to_vec() } else { value.to_le_bytes()[..width].to_vec() }
    };
    for (number, (time, sector, length, action, process, device, following)) in (0u64..).zip(records) {
        bytes.extend(word(0x6561_7400 | u64::from(version), 4));
        bytes.extend(word(number, 4));
        bytes.extend(word(time, 8));
        bytes.extend(word(sector, 8));
        bytes.extend(word(u64::from(length), 4));
        if version == 7 {
            bytes.extend(word(action, 4));
            bytes.extend(word(u64::from(process), 4));
        } else {
            bytes.extend(word(u64::from(process), 4));
            bytes.extend(word(action, 8));
        }
        bytes.extend(word(u64::from(device), 4));
        bytes.extend(word(0, 4));
        bytes.extend(word(0, 2));
        bytes.extend(word(following.len() as u64, 2));
        if version == 8 {
            bytes.extend([0; 12]);
        }
        bytes.extend(following);
    }
    bytes
}

/// Every sample, by the name of its format.
pub fn all() -> Vec<(&'static str, Vec<u8>)> {
    let text: [(&str, &[u8]); 26] = [
        ("captured", CAPTURED),
        ("operations", OPERATIONS),
        ("msr", MSR),
        ("spc", SPC),
        ("alibaba", ALIBABA),
        ("tencent", TENCENT),
        ("systor17", SYSTOR),
        ("vscsi-csv", VSCSI_CSV),
        ("blkparse", BLKPARSE),
        ("ftrace", FTRACE),
        ("ftrace", PERF),
        ("nvme-512", NVME),
        ("nvme-512", NVME_RAW),
        ("biosnoop", BIOSNOOP),
        ("biosnoop", BIOSNOOP_C),
        ("fio-v2", FIO_V2),
        ("fio-v3", FIO_V3),
        ("fiu", FIU),
        ("disksim", DISKSIM),
        ("mqsim", MQSIM),
        ("midas", MIDAS),
        ("strace", STRACE),
        ("filebench", FILEBENCH),
        ("thesios", THESIOS),
        ("tectonic", TECTONIC),
        ("cachelib", CACHELIB),
    ];
    let mut all: Vec<_> = text.into_iter().map(|(name, bytes)| (name, bytes.to_vec())).collect();
    all.push(("vscsi", vscsi()));
    all.push(("oracle-general", oracle_general()));
    all.extend([2, 3, 5].map(|version| ("lcs", lcs(version))));
    all.push(("dm-log-writes", log_writes(512)));
    all.extend(
        [(7, false), (7, true), (8, false), (8, true)].map(|(version, order)| ("blktrace", blktrace(version, order))),
    );
    all
}
