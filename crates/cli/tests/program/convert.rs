//! `flashpath convert`.

use super::bench::{Bench, DRIVE, HEADER};

#[test]
fn a_trace_that_goes_to_parquet_and_back_is_the_same() {
    let bench = Bench::new();
    bench.write("t.txt", "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n");
    let mut text = String::new();
    for n in 0..3000u64 {
        let kind = if n % 3 == 0 { "Read" } else { "Write" };
        let time = 128166372003061629 + n * 317;
        text.push_str(&format!("{time},usr,0,{kind},{},{},1331\n", n * 7919 % 2000 * 4096, 4096 * (1 + n % 4)));
    }
    bench.write("t.txt", text);
    for (from, to) in [("t.txt", "a.csv"), ("a.csv", "b.parquet"), ("b.parquet", "c.csv"), ("c.csv", "d.csv.gz")] {
        let answer = bench.flashpath(&["convert", from, to]);
        assert_eq!((answer.code, answer.stdout.as_str()), (Some(0), ""), "{answer:?}");
        assert!(answer.stderr.contains("3000 operations") && answer.stderr.contains(&format!("wrote {to}")));
    }
    let read = |name: &str| std::fs::read_to_string(bench.path(name)).unwrap();
    assert!(read("a.csv").starts_with(HEADER));
    assert_eq!(read("a.csv"), read("c.csv"));
    let first = bench.json("t.txt", DRIVE, &["--repeat", "9"]);
    for name in ["a.csv", "b.parquet", "d.csv.gz"] {
        let result = bench.json(name, DRIVE, &["--repeat", "9"]);
        for part in ["flash", "wear", "ledger", "write_amplification"] {
            assert_eq!(result[part], first[part], "{name} {part}");
        }
    }
}

#[test]
fn a_conversion_that_fails_leaves_everything_as_it_was() {
    let bench = Bench::new();
    bench.write_trace("t.csv", 5000);
    bench.write("noise", "this is\nno trace\n");
    assert_eq!(bench.flashpath(&["convert", "t.csv", "whole.csv.gz"]).code, Some(0));
    let whole = std::fs::read(bench.path("whole.csv.gz")).unwrap();
    bench.write("cut.csv.gz", &whole[..whole.len() - 100]);
    std::fs::create_dir(bench.path("directory.csv")).unwrap();
    let before = (bench.files(), std::fs::read(bench.path("t.csv")).unwrap());
    for (from, to, expected) in [
        ("t.csv", "./t.csv", "is the input trace"),
        ("t.csv", "nowhere/o.csv", "cannot write it"),
        ("t.csv", "directory.csv", "cannot write it"),
        ("t.csv", "o.txt", "NAME.parquet"),
        ("noise", "o.csv", "unknown format"),
        ("cut.csv.gz", "o.csv", "cut.csv.gz"),
        ("cut.csv.gz", "o.parquet", "cut.csv.gz"),
        ("missing", "o.csv", "missing"),
    ] {
        bench.refuses(&["convert", from, to], &[expected]);
        assert_eq!((bench.files(), std::fs::read(bench.path("t.csv")).unwrap()), before, "{from} to {to}");
    }
}

/// A drive of MQSim, as far as the path needs it.
const CONFIGURATION: &str = "<Execution_Parameter_Set><Device_Parameter_Set>
<Memory_Type>FLASH</Memory_Type><Caching_Mechanism>SIMPLE</Caching_Mechanism>
<Data_Cache_Capacity>1048576</Data_Cache_Capacity><Data_Cache_DRAM_Data_Rate>800</Data_Cache_DRAM_Data_Rate>
<Ideal_Mapping_Table>true</Ideal_Mapping_Table><CMT_Capacity>2097152</CMT_Capacity>
<Plane_Allocation_Scheme>CWDP</Plane_Allocation_Scheme><Overprovisioning_Ratio>0.2</Overprovisioning_Ratio>
<GC_Exec_Threshold>0.001</GC_Exec_Threshold><GC_Block_Selection_Policy>GREEDY</GC_Block_Selection_Policy>
<Flash_Channel_Count>1</Flash_Channel_Count><Flash_Channel_Width>1</Flash_Channel_Width>
<Channel_Transfer_Rate>333</Channel_Transfer_Rate><Chip_No_Per_Channel>1</Chip_No_Per_Channel>
<Flash_Parameter_Set><Flash_Technology>SLC</Flash_Technology><CMD_Suspension_Support>NONE</CMD_Suspension_Support>
<Page_Read_Latency_LSB>25000</Page_Read_Latency_LSB><Page_Read_Latency_CSB>25000</Page_Read_Latency_CSB>
<Page_Read_Latency_MSB>25000</Page_Read_Latency_MSB><Page_Program_Latency_LSB>200000</Page_Program_Latency_LSB>
<Page_Program_Latency_CSB>200000</Page_Program_Latency_CSB><Page_Program_Latency_MSB>200000</Page_Program_Latency_MSB>
<Block_Erase_Latency>1500000</Block_Erase_Latency><Block_PE_Cycles_Limit>100000</Block_PE_Cycles_Limit>
<Die_No_Per_Chip>1</Die_No_Per_Chip><Plane_No_Per_Die>1</Plane_No_Per_Die><Block_No_Per_Plane>256</Block_No_Per_Plane>
<Page_No_Per_Block>64</Page_No_Per_Block><Page_Capacity>4096</Page_Capacity></Flash_Parameter_Set>
</Device_Parameter_Set></Execution_Parameter_Set>";

#[test]
fn a_drive_of_mqsim_is_a_path_that_runs() {
    let bench = Bench::new();
    bench.write("ssdconfig.xml", CONFIGURATION);
    let answer = bench.flashpath(&["convert", "ssdconfig.xml"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(
        answer.stderr.contains("a flow with Device_Level_Data_Caching_Mode=TURNED_OFF bypasses the cache"),
        "{answer:?}"
    );
    let path = answer.stdout.trim();
    assert!(path.starts_with("cache:size=1048576,access=2560ns/page:export=80%,victim=greedy,reserve=16,ahead=0/nand:size=67108864,page=4K,"), "{path}");
    let result = bench.json("uniform:writes=2x", path, &["--fill"]);
    assert!(result["write_amplification"]["total"].as_f64().unwrap() > 1.0, "{result}");
    assert_eq!(bench.flashpath(&["convert", "ssdconfig.xml", "drive.path"]).code, Some(0));
    assert_eq!(std::fs::read_to_string(bench.path("drive.path")).unwrap().trim(), path);
    bench.refuses(&["convert", "ssdconfig.xml", "./ssdconfig.xml"], &["would replace it"]);
    bench.write("workload.xml", "<MQSim_IO_Scenarios></MQSim_IO_Scenarios>");
    bench.refuses(&["convert", "workload.xml"], &["ssdconfig.xml"]);
    bench.write_trace("t.csv", 10);
    bench.refuses(&["convert", "t.csv"], &["no file to write"]);
}
